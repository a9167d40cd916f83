# SPDX-License-Identifier: BSD-3-Clause
filter_SRC := $(wildcard hv/filter/*.c)
FREESTANDING += $(filter_SRC)

UNIT_TESTS += filter
unit_filter_SRC := $(wildcard tests/unit/filter_*.c) $(filter_SRC) $(wildcard hv/model/*.c)

FUZZ_TARGETS += filter
fuzz_filter_SRC := tests/fuzz/filter.c $(filter_SRC)
