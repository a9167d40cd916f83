/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NT_SCENARIOS_H
#define NT_SCENARIOS_H

struct scenario {
    const char *name;
    void (*run)(void); /* in a thread of the system process */
};

struct driver;

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

/** Loads a driver that must load; reports it. */
struct driver *scenario_load(const char *module);

/** Lets a test driver run a section, as a user program of its own, and reports its rows. */
void scenario_section(const char *device, unsigned section);

/* vpmu_test.c, vpmu_requests.c, source_test.c, clients_test.c, demo.c */
void vpmu_counts(void);
void vpmu_cleared(void);
void vpmu_off(void);
void vpmu_beside_others(void);
void vpmu_periods(void);
void vpmu_profiling(void);
void vpmu_requests(void);
void vpmu_failures(void);
void vpmu_source(void);
void vpmu_source_off(void);
void vpmu_source_device(void);
void vpmu_clients(void);
void vpmu_clients_amd(void);
void vpmu_demo(void);

/* loader_test.c */
void loader(void);

#endif
