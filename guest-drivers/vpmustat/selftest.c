/* SPDX-License-Identifier: BSD-3-Clause */
#include "selftest.h"

#include <inttypes.h>
#include <string.h>

enum finding {
#define SELFTEST_FINDING(name, text) FINDING_##name,
#include "findings.def"
#undef SELFTEST_FINDING
    FINDINGS,
};

static const char *const finding_texts[FINDINGS] = {
#define SELFTEST_FINDING(name, text) text,
#include "findings.def"
#undef SELFTEST_FINDING
};

enum { ITERATIONS = 100000, THREAD_ROUNDS = 1000000, PASSED = 0, WRONG = 1, NOT_TRIED = 2 };

struct finding_state {
    bool tried;
    uint32_t count; /* how often it was found */
    char where[64]; /* first */
};

struct test {
    const struct source_device *device;
    const struct arguments *arguments;
    FILE *out, *err;
    struct report checks; /* with -A */
    struct finding_state findings[FINDINGS];
    struct vpmu_info info;
    struct vpmu_grant grant;
    uint64_t not_backed;
};

static int fail(const struct test *test, const char *what, uint32_t status)
{
    const struct source_error error = {.what = what, .status = status};
    char text[200];

    fprintf(test->err, "vpmustat: %s\n", source_error_text(&error, text, sizeof(text)));
    return NOT_TRIED;
}

static void tried(struct test *test, enum finding finding)
{
    test->findings[finding].tried = true;
}

static void found(struct test *test, enum finding finding, const char *where)
{
    struct finding_state *state = &test->findings[finding];

    state->tried = true;
    if (!state->count++)
        snprintf(state->where, sizeof(state->where), "%s", where);
}

/* ---- The checks of VERIFY ---- */

static const struct {
    uint32_t flag;
    enum finding finding;
    const char *words;
} flag_rows[] = {
    {VPMU_CHECK_NOT_ENUMERATED, FINDING_ABSENT, "CPUID does not list it"},
    {VPMU_CHECK_FAULT, FINDING_ABSENT, "its registers fault"},
    {VPMU_CHECK_NOT_KEPT, FINDING_ABSENT, "its control drops writes"},
    {VPMU_CHECK_NO_EVENT, FINDING_UNSUPPORTED, "CPUID lacks the event"},
    {VPMU_CHECK_GLOBAL_CLEAR, FINDING_GLOBAL_CLEAR, "off in GLOBAL_CTRL"},
    {VPMU_CHECK_RDPMC_FAULT, FINDING_RDPMC_FAULT, "RDPMC faults"},
    {VPMU_CHECK_RDPMC_WRONG, FINDING_RDPMC_WRONG, "RDPMC disagrees"},
    {VPMU_CHECK_NO_INTERRUPT, FINDING_NO_INTERRUPT, "no interrupt"},
};

static const struct {
    uint32_t state;
    enum finding finding;
} state_rows[] = {
    {VPMU_COUNTER_ABSENT, FINDING_ABSENT},
    {VPMU_COUNTER_STARVED, FINDING_STARVED},
    {VPMU_COUNTER_FILTERED, FINDING_FILTERED},
    {VPMU_COUNTER_UNSUPPORTED, FINDING_UNSUPPORTED},
};

static void remarks_of(const struct vpmu_check *check, char *to, size_t size)
{
    size_t used = 0;

    to[0] = 0;
    for (size_t i = 0; i < sizeof(flag_rows) / sizeof(flag_rows[0]) && used < size; i++) {
        if (check->flags & flag_rows[i].flag)
            used += (size_t)snprintf(to + used, size - used, "%s%s", used ? ", " : "",
                                     flag_rows[i].words);
    }
}

static void report_check(struct report *report, uint32_t processor, const struct vpmu_check *check)
{
    char remarks[200];

    report_number(report, processor);
    report_number(report, check->counter);
    report_words(report, source_event_name(check->event));
    report_words(report, source_state_name(check->state));
    report_number(report, check->expected);
    report_number(report, check->counted);
    remarks_of(check, remarks, sizeof(remarks));
    report_words(report, remarks);
}

static void judge(struct test *test, uint32_t processor, const struct vpmu_check *check)
{
    char where[64];

    snprintf(where, sizeof(where), "processor %" PRIu32 ", counter %" PRIu32 ", %s", processor,
             check->counter, source_event_name(check->event));
    for (size_t i = 0; i < sizeof(state_rows) / sizeof(state_rows[0]); i++) {
        if (check->state == state_rows[i].state)
            found(test, state_rows[i].finding, where);
    }
    for (size_t i = 0; i < sizeof(flag_rows) / sizeof(flag_rows[0]); i++) {
        /* What makes a state has been found by the state. */
        if (check->flags & flag_rows[i].flag && flag_rows[i].finding != FINDING_ABSENT &&
            flag_rows[i].finding != FINDING_UNSUPPORTED)
            found(test, flag_rows[i].finding, where);
    }
    if (test->arguments->apart)
        report_check(&test->checks, processor, check);
}

static int verify_processor(struct test *test, uint32_t processor)
{
    static struct vpmu_verification verification;
    uint32_t flags = test->grant.flags & VPMU_GRANT_OVERFLOW ? VPMU_VERIFY_INTERRUPT : 0;
    uint32_t status = device_verify(test->device, processor, ITERATIONS, flags, &verification);

    if (status)
        return fail(test, "cannot verify the counters", status);
    if (verification.count > VPMU_MAX_CHECKS)
        return fail(test, "the driver answers with too many checks", 0);
    for (uint32_t i = 0; i < verification.count; i++)
        judge(test, processor, &verification.checks[i]);
    test->not_backed |= verification.not_backed;
    return PASSED;
}

static int verify_all(struct test *test)
{
    int status = PASSED;

    for (enum finding i = FINDING_ABSENT; i < FINDING_NO_INTERRUPT; i++)
        tried(test, i);
    if (test->grant.flags & VPMU_GRANT_OVERFLOW)
        tried(test, FINDING_NO_INTERRUPT);
    for (uint32_t i = 0; i < test->info.processors && status == PASSED; i++)
        status = verify_processor(test, i);
    return status;
}

/* ---- Thread profiling ---- */

static void thread_work(void)
{
    for (volatile uint32_t i = 0; i < THREAD_ROUNDS; i++)
        ;
}

/* Each round is at least one instruction of user mode. The kernel keeps 32 bits of a difference. */
static void judge_thread(struct test *test, uint64_t counted)
{
    char where[64];

    tried(test, FINDING_THREAD);
    snprintf(where, sizeof(where), "%" PRIu64 " instructions of at least %d", counted,
             THREAD_ROUNDS);
    if (counted < THREAD_ROUNDS)
        found(test, FINDING_THREAD, where);
}

static void profile_thread(struct test *test, selftest_profile *profile, uint32_t counter)
{
    uint64_t bit = 1ull << counter, counted;
    struct vpmu_profile standing;
    const char *what = "vpmu.sys: PROFILE";
    uint32_t error =
        device_program(test->device, counter, VPMU_EVENT_INSTRUCTIONS, VPMU_COUNT_USER);

    if (!error)
        error = device_start(test->device, bit);
    if (!error)
        error = device_profile(test->device, bit, VPMU_PROFILE_USER_RDPMC, &standing);
    if (!error && profile(thread_work, &counted, &what, &error) == 0) {
        judge_thread(test, counted);
        return;
    }
    fprintf(test->err, "vpmustat: thread profiling is not tried: %s (0x%08" PRIX32 ")\n", what,
            error);
}

/* ReadThreadProfilingData executes RDPMC in user mode, so a counter on which it does not fault. */
static void try_thread(struct test *test, selftest_profile *profile)
{
    uint64_t good = test->grant.granted & ~test->not_backed & ((1ull << VPMU_FIRST_FIXED) - 1);

    if (!profile)
        return;
    if (!good || test->findings[FINDING_RDPMC_FAULT].count) {
        fprintf(test->err, "vpmustat: thread profiling is not tried: no counter is fit for it\n");
        return;
    }
    profile_thread(test, profile, (uint32_t)__builtin_ctzll(good));
}

/* ---- The whole ---- */

static void judge_probes(struct test *test)
{
    tried(test, FINDING_HELD);
    for (uint32_t i = 0; i < 64; i++) {
        char where[64];
        if (!(test->grant.probed >> i & 1) || !test->grant.probe_status[i])
            continue;
        snprintf(where, sizeof(where), "counter %" PRIu32 ": 0x%08" PRIX32, i,
                 (uint32_t)test->grant.probe_status[i]);
        found(test, FINDING_HELD, where);
    }
}

static int run(struct test *test, selftest_profile *profile)
{
    uint32_t status = device_info(test->device, &test->info);
    int result;

    if (status)
        return fail(test, "cannot ask the driver", status);
    tried(test, FINDING_NO_PMU);
    if (!test->info.gp_counters && !test->info.fixed_counters)
        found(test, FINDING_NO_PMU, "CPUID lists none");
    status = device_acquire(test->device, 0, &test->grant);
    if (status) {
        if (device_grant(test->device, &test->grant) == 0)
            judge_probes(test);
        return fail(test, "cannot take the counters", status);
    }
    judge_probes(test);
    result = verify_all(test);
    if (result == PASSED)
        try_thread(test, profile);
    device_release(test->device);
    return result;
}

static const struct report_column finding_columns[] = {{"found", REPORT_WORDS},
                                                       {"what", REPORT_WORDS},
                                                       {"times", REPORT_NUMBER},
                                                       {"where first", REPORT_WORDS}};

static int report_findings(const struct test *test)
{
    /* A line of text has no room for where; it goes below. */
    bool text = test->arguments->format == REPORT_TEXT;
    struct report report;

    report_begin(&report, test->out, test->arguments->format, finding_columns, text ? 2 : 4);
    for (enum finding i = 0; i < FINDINGS; i++) {
        const struct finding_state *state = &test->findings[i];
        report_words(&report, !state->tried ? "not tried" : state->count ? "YES" : "no");
        report_words(&report, finding_texts[i]);
        if (text)
            continue;
        report_number(&report, state->count);
        report_words(&report, state->where);
    }
    if (report_end(&report) < 0)
        return -1;
    for (enum finding i = 0; text && i < FINDINGS; i++) {
        if (test->findings[i].count)
            fprintf(test->out, "  %s:\n    %" PRIu32 " times, first: %s\n", finding_texts[i],
                    test->findings[i].count, test->findings[i].where);
    }
    return 0;
}

static const struct report_column check_columns[] = {
    {"processor", REPORT_NUMBER}, {"counter", REPORT_NUMBER},  {"event", REPORT_WORDS},
    {"state", REPORT_WORDS},      {"expected", REPORT_NUMBER}, {"counted", REPORT_NUMBER},
    {"remarks", REPORT_WORDS}};

static bool found_any(const struct test *test)
{
    for (enum finding i = 0; i < FINDINGS; i++) {
        if (test->findings[i].count)
            return true;
    }
    return false;
}

int selftest(const struct source_device *device, selftest_profile *profile,
             const struct arguments *arguments, FILE *out, FILE *err)
{
    struct test test = {.device = device, .arguments = arguments, .out = out, .err = err};
    int result, printed;

    if (arguments->apart)
        report_begin(&test.checks, out, arguments->format, check_columns, 7);
    result = run(&test, profile);
    printed = arguments->apart ? report_end(&test.checks) : report_findings(&test);
    if (printed < 0)
        return NOT_TRIED;
    return result == PASSED && found_any(&test) ? WRONG : result;
}
