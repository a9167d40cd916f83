# SPDX-License-Identifier: BSD-3-Clause
# The blocks of perflib V2, without Windows.

perflib_SRC := $(addprefix guest-drivers/perflib/,block.c write.c words.c)

UNIT_TESTS += perflib
unit_perflib_SRC := $(wildcard tests/unit/perflib_*.c) $(perflib_SRC)
unit_perflib_CFLAGS := -D_GNU_SOURCE

FUZZ_TARGETS += perflib
fuzz_perflib_SRC := tests/fuzz/perflib.c $(perflib_SRC)
fuzz_perflib_FLAGS := -max_len=2048
