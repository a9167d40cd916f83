/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting a program and listing events over a file; the self-test over the driver itself. */

#include "guest-drivers/vpmustat/count.h"

#include <unistd.h>

#include "driver_fake.h"
#include "guest-drivers/vpmustat/selftest.h"
#include "vpmustat_test.h"

/* ---- The rules of a sum ---- */

static struct source_record record(uint32_t state, uint64_t value)
{
    return (struct source_record){.event = VPMU_EVENT_CYCLES,
                                  .state = state,
                                  .value = value,
                                  .enabled_ns = SOURCE_NOT_KNOWN,
                                  .backed_ns = SOURCE_NOT_KNOWN};
}

enum { B = VPMU_COUNTER_BACKED, G = VPMU_COUNTER_GRANTED, S = VPMU_COUNTER_STARVED };

Test(vpmustat_count, no_sum_hides_what_did_not_count)
{
    static const struct {
        uint32_t before, after, second; /* states; second: of another processor */
        bool from_zero, has_value;
        uint32_t state;
    } rows[] = {
        {B, B, B, false, true, B},  {G, B, B, true, true, B},  {G, B, B, false, true, B},
        {G, B, G, false, false, G}, {B, B, G, false, true, B}, {B, S, B, false, false, S},
        {B, B, S, false, false, S}, {G, G, G, true, false, G},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct count count = count_nothing();
        struct source_record before = record(rows[i].before, 10), after = record(rows[i].after, 15);
        struct source_record other = record(rows[i].second, 7);

        count_add(&count, &before, &after, rows[i].from_zero, 48);
        count_add(&count, &other, &other, rows[i].from_zero, 48);
        cr_assert_eq(count.has_value, rows[i].has_value, "row %zu", i);
        cr_assert_eq(count.state, rows[i].state, "row %zu: %u", i, count.state);
    }
}

Test(vpmustat_count, a_counter_that_is_gone_is_absent)
{
    struct count count = count_nothing();
    struct source_record before = record(B, 10);

    count_add(&count, &before, NULL, false, 48);
    cr_assert_eq(count.state, VPMU_COUNTER_ABSENT);
    cr_assert_not(count.has_value);
}

Test(vpmustat_count, differences_are_taken_modulo_the_width)
{
    struct count count = count_nothing();
    struct source_record before = record(B, (1ull << 48) - 3), after = record(B, 4);

    count_add(&count, &before, &after, false, 48);
    cr_assert_eq(count.value, 7);
}

/* ---- A program, over a file that it changes ---- */

static char path[] = "vpmustat-XXXXXX";

static void write_state(const char *text)
{
    FILE *file = fopen(path, "wb");

    fputs(text, file);
    fclose(file);
}

#define VM "vm processors=2 gp_width=48\n"
#define LINE(cpu, state, value, enabled, backed)                                                   \
    "counter processor=" #cpu " counter=0 event=instructions state=" state " value=" #value        \
    " enabled_ns=" #enabled " backed_ns=" #backed "\n"

static int count(const char *options, const char *before, const char *shell, struct output *output)
{
    static char *program[] = {"sh", "-c", NULL, NULL};
    char from[64], copy[400];
    struct arguments arguments;
    int status;

    if (!strchr(path, '/') && access(path, F_OK) != 0)
        close(mkstemp(path));
    write_state(before);
    snprintf(from, sizeof(from), "file:%s", path);
    snprintf(copy, sizeof(copy), shell, path);
    cr_assert_eq(parse_line(options, &arguments), 0);
    program[2] = copy;
    arguments.program = program;
    arguments.source = from;
    output_open(output);
    status = count_program(&arguments, output->out_file, output->err_file);
    output_close(output);
    unlink(path);
    return status;
}

Test(vpmustat_count, a_program_that_counts)
{
    struct output output;
    int status = count("-a -e instructions -- x",
                       VM LINE(0, "backed", 100, 50, 50) LINE(1, "backed", 1000, 0, 0),
                       "sed -i 's/value=100 enabled_ns=50 backed_ns=50/value=175 enabled_ns=150 "
                       "backed_ns=100/; s/value=1000 /value=1001 /' %s; exit 7",
                       &output);

    cr_assert_eq(status, 7, "the program's own status: %s", output.err);
    cr_assert_str_eq(output.out,
                     "  count  event         state   backed %\n"
                     "     76  instructions  backed      50.0\n",
                     "%s", output.out);
    cr_assert(has(output.err, "another owns the counters"));
    output_free(&output);
}

Test(vpmustat_count, apart_and_in_json)
{
    struct output output;

    cr_assert_eq(count("-a -A -o json -e instructions,cycles -- x",
                       VM LINE(0, "backed", 5, -, -) LINE(1, "starved", 0, 10, 0),
                       "sed -i 's/value=5/value=6/; s/enabled_ns=10/enabled_ns=20/' %s", &output),
                 0, "%s", output.err);
    cr_assert_str_eq(output.out,
                     "[\n {\"processor\": 0, \"count\": null, \"event\": \"cycles\", \"state\": "
                     "\"absent\", \"backed %\": null},\n"
                     " {\"processor\": 0, \"count\": 1, \"event\": \"instructions\", \"state\": "
                     "\"backed\", \"backed %\": null},\n"
                     " {\"processor\": 1, \"count\": null, \"event\": \"cycles\", \"state\": "
                     "\"absent\", \"backed %\": null},\n"
                     " {\"processor\": 1, \"count\": null, \"event\": \"instructions\", \"state\": "
                     "\"starved\", \"backed %\": 0.0}\n]\n",
                     "%s", output.out);
    output_free(&output);
}

Test(vpmustat_count, what_cannot_be_counted)
{
    struct output output;

    cr_assert_eq(count("-C 2 -- x", VM, "true %s", &output), 125);
    cr_assert(has(output.err, "there is no processor 2"));
    output_free(&output);
    cr_assert_eq(count("-- x", "rubbish\n", "true %s", &output), 125);
    cr_assert(has(output.err, "line 1: a line begins with vm, counter or #"));
    output_free(&output);
    cr_assert_eq(count("-- x", VM, "rm %s", &output), 125);
    cr_assert(has(output.err, "the file cannot be opened"));
    output_free(&output);
}

Test(vpmustat_count, list)
{
    struct arguments arguments;
    struct output output;
    char line[100];

    close(mkstemp(path));
    write_state(VM LINE(0, "backed", 5, -, -) LINE(1, "filtered", 0, -, -));
    snprintf(line, sizeof(line), "list -o csv --source file:%s", path);
    cr_assert_eq(parse_line(line, &arguments), 0);
    output_open(&output);
    cr_assert_eq(count_list(&arguments, output.out_file, output.err_file), 0);
    output_close(&output);
    unlink(path);
    cr_assert(has(output.out, "event,state,backed\r\n"));
    cr_assert(has(output.out, "instructions,filtered,no\r\n"), "%s", output.out);
    cr_assert(has(output.out, "llc-misses,absent,no\r\n"));
    output_free(&output);
}

/* ---- The self-test ---- */

static uint32_t request(void *context, uint32_t code, const void *in, uint32_t in_size, void *out,
                        uint32_t out_size)
{
    uint32_t written;

    return (uint32_t)fake_request(context, code, in, in_size, out, out_size, &written);
}

static int test_machine(const char *line, selftest_profile *profile, struct output *output)
{
    static char client;
    const struct source_device device = {.request = request, .context = &client};
    struct arguments arguments;
    int status;

    cr_assert_eq(parse_line(line, &arguments), 0);
    output_open(output);
    status = selftest(&device, profile, &arguments, output->out_file, output->err_file);
    output_close(output);
    cr_assert_eq(fake_live(), 0, "the counters are given back");
    return status;
}

static int profile_short(void (*work)(void), uint64_t *counted, const char **what, uint32_t *error)
{
    (void)what;
    (void)error;
    cr_assert(fake.user_rdpmc[0], "RDPMC works in user mode");
    cr_assert_eq(fake.standing_count, 1, "the kernel has the counter to profile");
    work();
    *counted = 5;
    return 0;
}

static int profile_missing(void (*work)(void), uint64_t *counted, const char **what,
                           uint32_t *error)
{
    (void)work;
    (void)counted;
    (void)error;
    *what = "this system has no EnableThreadProfiling";
    return -1;
}

Test(vpmustat_selftest, a_good_machine)
{
    struct output output;

    fake_intel(2, 4, 3);
    cr_assert_eq(test_machine("selftest", profile_missing, &output), 0, "%s%s", output.out,
                 output.err);
    cr_assert_not(has(output.out, "YES"), "%s", output.out);
    cr_assert(has(output.out, "  no         a counter stands still or loses events\n"));
    cr_assert(has(output.out, "  not tried  a profiled thread reads less"));
    cr_assert(has(output.err, "this system has no EnableThreadProfiling"));
    output_free(&output);
}

Test(vpmustat_selftest, each_silent_failure_is_found)
{
    static const struct {
        uint64_t starved, rdpmc_faults, drops;
        uint32_t denied;
        bool loses_interrupts;
        const char *finding;
    } rows[] = {
        {.starved = 2, .finding = "YES,a counter stands still or loses events,"},
        {.rdpmc_faults = 1, .finding = "YES,RDPMC faults: thread profiling would stop the system,"},
        {.drops = 1, .finding = "YES,a granted counter does not exist,"},
        {.denied = 0xc4, .finding = "YES,\"the host denies an event, which reads as 0\","},
        {.loses_interrupts = true,
         .finding = "YES,an overflow does not reach the handler: sampling is silent,"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct output output;

        fake_intel(2, 4, 3);
        fake.starved = rows[i].starved;
        fake.rdpmc_faults = rows[i].rdpmc_faults;
        fake.drops = rows[i].drops;
        fake.denied = rows[i].denied;
        fake.loses_interrupts = rows[i].loses_interrupts;
        cr_assert_eq(test_machine("selftest -o csv", NULL, &output), 1, "row %zu", i);
        cr_assert(has(output.out, rows[i].finding), "row %zu: %s", i, output.out);
        output_free(&output);
    }
}

Test(vpmustat_selftest, a_thread_that_reads_too_little)
{
    struct output output;

    fake_intel(2, 4, 3);
    cr_assert_eq(test_machine("selftest -o csv", profile_short, &output), 1, "%s", output.err);
    cr_assert(has(output.out, "YES,a profiled thread reads less than it has done,1,5 instructions"),
              "%s%s", output.out, output.err);
    output_free(&output);
}

Test(vpmustat_selftest, where_it_cannot_be_tried)
{
    struct output output;

    fake_intel(2, 4, 3);
    fake.taken = UINT64_MAX;
    cr_assert_eq(test_machine("selftest -o csv", NULL, &output), 2);
    cr_assert(has(output.out, "YES,somebody else holds counters,7,counter 0: 0xC000009A"), "%s",
              output.out);
    cr_assert(has(output.err, "cannot take the counters: somebody else holds the counters"));
    output_free(&output);
}

Test(vpmustat_selftest, each_check_with_A)
{
    struct output output;

    fake_intel(2, 4, 3);
    fake.starved = 2;
    cr_assert_eq(test_machine("selftest -A -o csv", NULL, &output), 1);
    cr_assert(has(output.out, "processor,counter,event,state,expected,counted,remarks\r\n"));
    cr_assert(has(output.out, "\r\n3,1,instructions,starved,"), "%s", output.out);
    cr_assert(has(output.out, "\r\n0,32,instructions,backed,"));
    output_free(&output);
}
