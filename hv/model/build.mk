# SPDX-License-Identifier: BSD-3-Clause
model_SRC := $(wildcard hv/model/*.c)
FREESTANDING += $(model_SRC)

UNIT_TESTS += model
unit_model_SRC := $(wildcard tests/unit/model_*.c) $(model_SRC)

FUZZ_TARGETS += model
fuzz_model_SRC := tests/fuzz/model.c $(model_SRC)
