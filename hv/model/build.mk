# SPDX-License-Identifier: BSD-3-Clause
model_SRC := $(wildcard hv/model/*.c)
FREESTANDING += $(model_SRC)
