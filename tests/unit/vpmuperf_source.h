/* SPDX-License-Identifier: BSD-3-Clause */
/* A source whose every answer a test sets. */
#ifndef TEST_VPMUPERF_SOURCE_H
#define TEST_VPMUPERF_SOURCE_H

#include "guest-drivers/vpmuperf/publish.h"

enum { TEST_PROCESSORS = 8 };

struct test_source {
    struct source source;
    struct source_facts facts;
    struct source_processor processors[TEST_PROCESSORS];
    int look_result, read_result;
};

/** A VM of so many processors, each with instructions, cycles and branches that are backed. */
void test_source_init(struct test_source *test, uint32_t processors);

/** The record of an event. */
struct source_record *test_record(struct test_source *test, uint32_t processor, uint32_t event);

/** Lets every backed counter go on by so much. */
void test_count(struct test_source *test, uint32_t event, uint64_t by);

#endif
