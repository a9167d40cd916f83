# SPDX-License-Identifier: BSD-3-Clause
arbiter_SRC := $(wildcard hv/arbiter/*.c)
FREESTANDING += $(arbiter_SRC)
