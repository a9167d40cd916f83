/* SPDX-License-Identifier: BSD-3-Clause */
/* Work in ring 3 of which every count is known. */
#ifndef NT_USER_WORK_H
#define NT_USER_WORK_H

#include <stdint.h>

/*
 * For thread_run_user(): MOV, a loop of two instructions, RET, and the INT by
 * which ring 3 is left. The IRETQ that enters it counts for ring 0.
 */
uint64_t user_work(uint64_t rounds);

#define USER_INSTRUCTIONS(rounds) (2 * (rounds) + 3)
#define USER_BRANCHES(rounds) ((rounds) + 2)

#endif
