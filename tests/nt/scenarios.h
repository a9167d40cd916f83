/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NT_SCENARIOS_H
#define NT_SCENARIOS_H

struct scenario {
    const char *name;
    void (*run)(void); /* in a thread of the system process */
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

#endif
