# SPDX-License-Identifier: BSD-3-Clause
# Where the values of a VM's counters come from. Programs link source_SRC; what needs no allocation
# and no C library is source_free_SRC.

source_free_SRC := $(addprefix guest-drivers/source/,source.c device.c driver.c)
source_SRC := $(source_free_SRC) $(addprefix guest-drivers/source/,file.c open.c text.c windows.c)

UNIT_TESTS += source
unit_source_SRC := $(wildcard tests/unit/source_*.c) $(source_SRC) $(driver_host_SRC)
unit_source_CFLAGS := $(DRIVERS_INCLUDE) -D_GNU_SOURCE

FUZZ_TARGETS += source
fuzz_source_SRC := tests/fuzz/source.c $(source_SRC)
fuzz_source_CFLAGS := $(DRIVERS_INCLUDE)
fuzz_source_FLAGS := -max_len=2048
