# SPDX-License-Identifier: BSD-3-Clause
FUZZ_TARGETS += arbiter
fuzz_arbiter_SRC := tests/fuzz/arbiter.c tests/unit/arbiter_history.c tests/unit/arbiter_naive.c $(wildcard hv/arbiter/*.c)
fuzz_arbiter_FLAGS := -max_len=4096

FUZZ_TARGETS += admission
fuzz_admission_SRC := tests/fuzz/admission.c tests/unit/admission_history.c tests/unit/admission_naive.c $(wildcard hv/arbiter/*.c)
fuzz_admission_FLAGS := -max_len=4096
