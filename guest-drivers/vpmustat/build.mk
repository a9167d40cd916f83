# SPDX-License-Identifier: BSD-3-Clause
# vpmustat for Windows; what in it needs no Windows runs in unit tests.

vpmustat_SRC := $(addprefix guest-drivers/vpmustat/,arguments.c report.c count.c consumer.c selftest.c) \
	$(perflib_SRC) $(source_SRC)

EXES += vpmustat
exe_vpmustat_SRC := $(vpmustat_SRC) guest-drivers/vpmustat/main.c guest-drivers/vpmustat/windows.c
exe_vpmustat_LIBS := -ladvapi32

UNIT_TESTS += vpmustat
unit_vpmustat_SRC := $(wildcard tests/unit/vpmustat_*.c) $(vpmustat_SRC) guest-drivers/vpmustat/posix.c \
	tests/wine/perflib_double.c \
	$(driver_host_SRC)
unit_vpmustat_CFLAGS := $(DRIVERS_INCLUDE) -D_GNU_SOURCE
