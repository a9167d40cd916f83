# SPDX-License-Identifier: BSD-3-Clause
PROGRAMS += bench-arbiter
prog_bench-arbiter_SRC := tests/bench/arbiter.c $(wildcard hv/arbiter/*.c)
bench_NEEDS += $(BUILD)/bin/bench-arbiter
