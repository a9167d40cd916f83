# SPDX-License-Identifier: BSD-3-Clause
UNIT_TESTS += arbiter
unit_arbiter_SRC := $(wildcard tests/unit/arbiter_*.c) $(wildcard hv/arbiter/*.c)
unit_arbiter_CFLAGS := -Wno-missing-field-initializers # table rows end where nothing more is to say

UNIT_TESTS += admission
unit_admission_SRC := $(wildcard tests/unit/admission_*.c) $(wildcard hv/arbiter/*.c)
unit_admission_CFLAGS := -Wno-missing-field-initializers # as above
