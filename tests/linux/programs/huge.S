/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop again, with more than 2^32 instructions. */
#define LONG 400000000
#include "loop.S"
