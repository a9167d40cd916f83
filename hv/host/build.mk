# SPDX-License-Identifier: BSD-3-Clause
# What this machine has and who holds it; users add host_SRC, host_CFLAGS and host_LIBS.
host_SRC := $(wildcard hv/host/*.c)
host_CFLAGS = -D_GNU_SOURCE $(shell pkg-config --cflags glib-2.0 json-c) -Wno-unused-parameter # callbacks
host_LIBS = $(shell pkg-config --libs glib-2.0 json-c)

UNIT_TESTS += host
unit_host_SRC = $(wildcard tests/unit/host_*.c) $(host_SRC)
unit_host_CFLAGS = $(host_CFLAGS) -Wno-missing-field-initializers # table rows end where nothing more is to say
unit_host_LIBS = $(host_LIBS)

FUZZ_TARGETS += host
fuzz_host_SRC = tests/fuzz/host.c $(host_SRC)
fuzz_host_CFLAGS = $(host_CFLAGS)
fuzz_host_LIBS = $(host_LIBS)
fuzz_host_FLAGS := -max_len=8192
