# SPDX-License-Identifier: BSD-3-Clause
validity_SRC := hv/validity/validity.c
FREESTANDING += $(validity_SRC)

UNIT_TESTS += validity
unit_validity_SRC := tests/unit/validity.c $(validity_SRC)
unit_validity_CFLAGS := -D_POSIX_C_SOURCE=200809L -Wno-missing-field-initializers -Wno-override-init
