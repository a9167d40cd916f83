# SPDX-License-Identifier: BSD-3-Clause
FUZZ_TARGETS += arbiter
fuzz_arbiter_SRC := tests/fuzz/arbiter.c tests/unit/arbiter_history.c tests/unit/arbiter_naive.c $(wildcard hv/arbiter/*.c)
fuzz_arbiter_FLAGS := -max_len=4096
