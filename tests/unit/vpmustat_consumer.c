/* SPDX-License-Identifier: BSD-3-Clause */
/* sets and query against the double of the consumer routines that Wine's tests have too. */

#include "guest-drivers/vpmustat/consumer.h"
#include "vpmustat_test.h"

#define PERF_ROUTINE(name, parameters) uint32_t name parameters;
#include "guest-drivers/vpmustat/routines.def"
#undef PERF_ROUTINE

static const struct perf_routines all = {
#define PERF_ROUTINE(name, parameters) .name = name,
#include "guest-drivers/vpmustat/routines.def"
#undef PERF_ROUTINE
};

static uint32_t slept;

static void sleep_ms(uint32_t ms)
{
    slept += ms;
}

static int run(const struct perf_routines *routines, const char *line, char *query,
               struct output *output)
{
    struct arguments arguments;
    int status;

    cr_assert_eq(parse_line(line, &arguments), 0, "%s", line);
    arguments.query = query;
    output_open(output);
    status =
        query ? consumer_query(routines, &arguments, sleep_ms, output->out_file, output->err_file)
              : consumer_sets(routines, &arguments, output->out_file, output->err_file);
    output_close(output);
    return status;
}

Test(vpmustat_consumer, sets_of_every_kind_in_words)
{
    static const char *const parts[] = {
        "counter set  Double Single\n",
        "local name   Doppel Einzeln\n",
        "guid         {76543210-BA98-FEDC-0000-000000000001}\n",
        "instances    single instance\n",
        "instances    multiple instances\n",
        "instances    single instance, aggregate of several providers\n",
        "instances    multiple instances, aggregate of several providers\n",
        "instances    single instance, aggregate with history\n",
        "instances    multiple instances, aggregate by instance\n",
        "instances    unknown kind\n",
        "detail       advanced\n",
        "provider     perflib double\n",
        "   1  rate per second        Instructions\n",
        "   3  average per operation  IPC\n",
    };
    struct output output;

    cr_assert_eq(run(&all, "sets", NULL, &output), 0, "%s", output.err);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        cr_assert(has(output.out, parts[i]), "%s in %s", parts[i], output.out);
    output_free(&output);
    cr_assert_eq(run(&all, "sets -o csv", NULL, &output), 0);
    cr_assert(has(output.out, "\"Double, of \"\"tomorrow\"\"\",Doppel von morgen,"
                              "{76543210-BA98-FEDC-0000-000000000007},unknown kind,advanced,"
                              "perflib double,,,,\r\n"),
              "%s", output.out);
    cr_assert(has(output.out, ",Instructions,Befehle\r\n"));
    output_free(&output);
}

static const struct {
    const char *query, *csv;
} queries[] = {
    {"Double Single\\Instructions", ",Instructions,100,rate per second\r\n"},
    {"doppel einzeln\\befehle", ",Instructions,100,rate per second\r\n"},
    {"{76543210-ba98-fedc-0000-000000000001}\\State", ",State,2,value\r\n"},
    {"Double Single", ",Instructions,100,rate per second\r\n,State,2,value\r\n,IPC,0,average per "
                      "operation\r\n"},
    {"Double Multi\\Instructions", "0,Instructions,100,rate per second\r\n1,Instructions,1100,rate "
                                   "per second\r\n_Total,Instructions,2100,rate per second\r\n"},
    {"\\Double Multi(_Total)\\State", "_Total,State,2,value\r\n"},
    {"Double Multi(1)", "1,Instructions,1100,rate per second\r\n1,State,2,value\r\n1,IPC,1,average "
                        "per operation\r\n"},
};

Test(vpmustat_consumer, query_names_sets_instances_and_counters)
{
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        char query[100], expected[400];
        struct output output;

        snprintf(query, sizeof(query), "%s", queries[i].query);
        snprintf(expected, sizeof(expected), "instance,counter,value,type\r\n%s", queries[i].csv);
        cr_assert_eq(run(&all, "query x -o csv", query, &output), 0, "%s: %s", query, output.err);
        cr_assert_str_eq(output.out, expected, "%s: %s", query, output.out);
        output_free(&output);
    }
}

Test(vpmustat_consumer, two_looks_give_a_rate)
{
    char query[] = "Double Multi(1)";
    struct output output;

    slept = 0;
    cr_assert_eq(run(&all, "query x -i 2 -o csv", query, &output), 0);
    cr_assert_eq(slept, 2000);
    cr_assert_str_eq(output.out,
                     "instance,counter,value,per second,type\r\n"
                     "1,Instructions,2200,550.000,rate per second\r\n"
                     "1,State,2,,value\r\n1,IPC,1,,average per operation\r\n",
                     "%s", output.out);
    output_free(&output);
}

Test(vpmustat_consumer, what_cannot_be_had_is_said)
{
    static const struct {
        const char *query, *lie, *err;
    } rows[] = {
        {"Nothing", "", "no counter set is called \"Nothing\""},
        {"{76543210-BA98-FEDC-0000-0000000000FF}", "", "no such counter set (4200)"},
        {"Double Single\\Speed", "", "\"Double Single\" has no counter called \"Speed\""},
        {"Double Single(0)", "", "has no instances"},
        {"Double Single(", "", "SET[(INSTANCE)][\\COUNTER] is expected"},
        {"Double Multi(7)", "", "no instance has data"},
        {"Double Multi", "empty", "no instance has data"},
        {"Double Multi", "error", "the provider: not found (1168)"},
        {"{76543210-BA98-FEDC-0000-000000000001}", "truncated",
         "the registration of a set: byte 24: more counters than the block has room for"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char query[100];
        struct output output;

        setenv("PERFLIB_DOUBLE", rows[i].lie, 1);
        snprintf(query, sizeof(query), "%s", rows[i].query);
        cr_assert_eq(run(&all, "query x", query, &output), 1, "%s", query);
        cr_assert(has(output.err, rows[i].err), "%s: %s", query, output.err);
        cr_assert_str_empty(output.out);
        output_free(&output);
    }
}

Test(vpmustat_consumer, every_missing_routine_is_named)
{
    static const struct perf_routines none;
    struct perf_routines wine = {.PerfOpenQueryHandle = PerfOpenQueryHandle};
    char query[] = "x";
    struct output output;

    cr_assert_eq(run(&none, "sets", NULL, &output), 1);
    cr_assert(has(output.err, "this system has no PerfEnumerateCounterSet\n"));
    cr_assert(has(output.err, "this system has no PerfQueryCounterSetRegistrationInfo\n"));
    output_free(&output);
    cr_assert_eq(run(&wine, "query x", query, &output), 1);
    cr_assert(has(output.err, "this system has no PerfAddCounters\n"));
    cr_assert_not(has(output.err, "PerfOpenQueryHandle\n"));
    output_free(&output);
}
