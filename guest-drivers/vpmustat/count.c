/* SPDX-License-Identifier: BSD-3-Clause */
#include "count.h"

#include <stdlib.h>
#include <string.h>

#include "system.h"

enum { NO_COUNT = 125, NOT_RUN = 127, LIST_MS = 20 };

static int fail(FILE *err, const struct source_error *error)
{
    char text[256];

    fprintf(err, "vpmustat: %s\n", source_error_text(error, text, sizeof(text)));
    return NO_COUNT;
}

/* ---- One event ---- */

struct count count_nothing(void)
{
    return (struct count){.state = VPMU_COUNTER_GRANTED};
}

/* Which state a sum has, of two: what is worse for the reader. */
static uint32_t worse(uint32_t a, uint32_t b)
{
    static const uint8_t rank[VPMU_COUNTER_STATES] = {
        [VPMU_COUNTER_GRANTED] = 0,  [VPMU_COUNTER_BACKED] = 1,  [VPMU_COUNTER_UNSUPPORTED] = 2,
        [VPMU_COUNTER_FILTERED] = 3, [VPMU_COUNTER_STARVED] = 4, [VPMU_COUNTER_REVOKED] = 5,
        [VPMU_COUNTER_ABSENT] = 6,
    };

    return rank[b] > rank[a] ? b : a;
}

static uint64_t add_known(uint64_t sum, uint64_t before, uint64_t after, bool from_zero)
{
    if (sum == SOURCE_NOT_KNOWN || after == SOURCE_NOT_KNOWN)
        return SOURCE_NOT_KNOWN;
    if (from_zero)
        return sum + after;
    return before == SOURCE_NOT_KNOWN || after < before ? SOURCE_NOT_KNOWN : sum + after - before;
}

static uint64_t difference(uint64_t before, uint64_t after, uint64_t width)
{
    return width < 64 ? (after - before) & ((1ull << width) - 1) : after - before;
}

void count_add(struct count *count, const struct source_record *before,
               const struct source_record *after, bool from_zero, uint64_t width)
{
    bool good =
        after && source_has_value(after) && (from_zero || (before && source_has_value(before)));
    uint32_t state = !after                                         ? VPMU_COUNTER_ABSENT
                     : !good && after->state == VPMU_COUNTER_BACKED ? VPMU_COUNTER_GRANTED
                                                                    : after->state;

    count->state = worse(count->state, state);
    if (good) {
        count->value += difference(from_zero ? 0 : before->value, after->value, width);
        count->has_value = true;
    }
    if (count->state != VPMU_COUNTER_BACKED)
        count->has_value = false;
    if (after) {
        count->enabled_ns = add_known(count->enabled_ns, before ? before->enabled_ns : 0,
                                      after->enabled_ns, from_zero);
        count->backed_ns = add_known(count->backed_ns, before ? before->backed_ns : 0,
                                     after->backed_ns, from_zero);
    }
}

/* ---- All processors at a moment ---- */

struct moment {
    struct source_facts facts;
    struct source_processor *processors;
};

static int look(struct source *source, struct moment *moment)
{
    moment->processors = NULL;
    if (source_look(source, &moment->facts) < 0)
        return -1;
    moment->processors = calloc((size_t)moment->facts.processors + 1, sizeof(*moment->processors));
    if (!moment->processors) {
        source->error = (struct source_error){.what = "out of memory"};
        return -1;
    }
    for (uint32_t i = 0; i < moment->facts.processors; i++) {
        if (source_read(source, i, &moment->processors[i]) < 0) {
            free(moment->processors);
            moment->processors = NULL;
            return -1;
        }
    }
    return 0;
}

static uint64_t width_of(const struct source_facts *facts, const struct source_record *record)
{
    uint64_t width =
        record && record->counter >= VPMU_FIRST_FIXED ? facts->fixed_width : facts->gp_width;

    return width && width < 64 ? width : 64;
}

static const struct source_record *at(const struct moment *moment, uint32_t processor,
                                      uint32_t event)
{
    return processor < moment->facts.processors ? source_find(&moment->processors[processor], event)
                                                : NULL;
}

/* The event on processors first to last. */
static struct count count_between(const struct moment *before, const struct moment *after,
                                  bool from_zero, uint32_t event, uint32_t first, uint32_t last)
{
    struct count count = count_nothing();

    for (uint32_t i = first; i <= last; i++) {
        const struct source_record *record = at(after, i, event);
        count_add(&count, at(before, i, event), record, from_zero, width_of(&after->facts, record));
    }
    return count;
}

static void report_count(struct report *report, uint32_t event, const struct count *count)
{
    struct source_record times = {.enabled_ns = count->enabled_ns, .backed_ns = count->backed_ns};
    uint64_t per_mille = source_backed_per_mille(&times);

    if (count->has_value)
        report_number(report, count->value);
    else
        report_none(report);
    report_words(report, source_event_name(event));
    report_words(report, source_state_name(count->state));
    if (per_mille != SOURCE_NOT_KNOWN)
        report_decimal(report, per_mille, 1);
    else
        report_none(report);
}

static const struct report_column count_columns[] = {{"processor", REPORT_NUMBER},
                                                     {"count", REPORT_NUMBER},
                                                     {"event", REPORT_WORDS},
                                                     {"state", REPORT_WORDS},
                                                     {"backed %", REPORT_NUMBER}};

static int report_counts(const struct arguments *arguments, const struct moment *moments,
                         bool from_zero, FILE *out)
{
    uint32_t first = arguments->everywhere ? 0 : arguments->processor;
    uint32_t last = arguments->everywhere ? moments[1].facts.processors - 1 : first;
    uint32_t step = arguments->apart ? 1 : last - first + 1;
    struct report report;

    report_begin(&report, out, arguments->format, count_columns + !arguments->apart,
                 5 - !arguments->apart);
    for (uint32_t i = first; i <= last; i += step) {
        for (uint32_t left = arguments->events; left; left &= left - 1) {
            uint32_t event = (uint32_t)__builtin_ctz(left);
            struct count count =
                count_between(&moments[0], &moments[1], from_zero, event, i, i + step - 1);
            if (arguments->apart)
                report_number(&report, i);
            report_count(&report, event, &count);
        }
    }
    return report_end(&report);
}

/* ---- A program ---- */

static void say_what(const struct arguments *arguments, bool own, FILE *err)
{
    static const char *const modes[] = {"", "user mode", "kernel mode", "user and kernel mode"};

    if (!own)
        fprintf(err, "vpmustat: another owns the counters: what it counts is shown\n");
    else if (arguments->everywhere)
        fprintf(err, "vpmustat: %s of all processors\n", modes[arguments->modes]);
    else
        fprintf(err, "vpmustat: %s of processor %u, where the program runs\n",
                modes[arguments->modes], arguments->processor);
}

static int count_with(const struct arguments *arguments, struct source *source,
                      struct moment *moments, FILE *out, FILE *err)
{
    uint32_t placed;
    const char *error;
    uint64_t start;
    int status = 0, taken = source_take(source, arguments->events, arguments->modes, &placed);

    if (taken < 0 || look(source, &moments[0]) < 0)
        return fail(err, &source->error);
    if (!moments[0].facts.processors ||
        (!arguments->everywhere && arguments->processor >= moments[0].facts.processors)) {
        fprintf(err, "vpmustat: there is no processor %u\n", arguments->processor);
        return NO_COUNT;
    }
    start = system_now_ns();
    if (system_run(arguments->program,
                   arguments->everywhere ? SYSTEM_ANYWHERE : arguments->processor, &status,
                   &error) < 0) {
        fprintf(err, "vpmustat: %s: %s\n", arguments->program[0], error);
        return NOT_RUN;
    }
    start = system_now_ns() - start;
    if (look(source, &moments[1]) < 0)
        return fail(err, &source->error);
    say_what(arguments, taken == 0, err);
    if (report_counts(arguments, moments, taken == 0, out) < 0)
        return NO_COUNT;
    fprintf(err, "vpmustat: %.3f s elapsed\n", (double)start / 1e9);
    return status;
}

int count_program(const struct arguments *arguments, FILE *out, FILE *err)
{
    struct source_error error;
    struct source *source = source_open(arguments->source, &error);
    struct moment moments[2] = {0};
    int status;

    if (!source)
        return fail(err, &error);
    status = count_with(arguments, source, moments, out, err);
    free(moments[0].processors);
    free(moments[1].processors);
    source_close(source);
    return status;
}

/* ---- list ---- */

/* The counts of events from when the source was opened; *placed: those that had a counter. */
static int list_round(const struct arguments *arguments, uint32_t events, struct count *counts,
                      uint32_t *placed, struct source_error *error)
{
    struct source *source = source_open(arguments->source, error);
    struct moment moment = {0};
    int taken;

    *placed = 0;
    if (!source)
        return -1;
    taken = source_take(source, events, VPMU_COUNT_USER | VPMU_COUNT_KERNEL, placed);
    if (taken == 0)
        system_sleep_ms(LIST_MS);
    if (taken < 0 || look(source, &moment) < 0) {
        *error = source->error;
        source_close(source);
        return -1;
    }
    for (uint32_t event = 0; event < VPMU_EVENTS; event++) {
        if (events >> event & 1 && moment.facts.processors)
            counts[event] =
                count_between(&moment, &moment, true, event, 0, moment.facts.processors - 1);
    }
    free(moment.processors);
    source_close(source);
    return taken;
}

static const struct report_column list_columns[] = {
    {"event", REPORT_WORDS}, {"state", REPORT_WORDS}, {"backed", REPORT_WORDS}};

int count_list(const struct arguments *arguments, FILE *out, FILE *err)
{
    struct count counts[VPMU_EVENTS] = {0};
    uint32_t left = SOURCE_ALL_EVENTS, placed;
    struct source_error error = {0};
    struct report report;
    int taken;

    /* As many as there are counters at a time, until none of those that are left finds one. */
    do {
        taken = list_round(arguments, left, counts, &placed, &error);
        left &= ~placed;
    } while (taken == 0 && placed && left);
    if (taken < 0 && left == SOURCE_ALL_EVENTS) {
        fail(err, &error);
        return 1;
    }
    if (taken == 1)
        fprintf(err, "vpmustat: another owns the counters: only what it counts is known\n");
    report_begin(&report, out, arguments->format, list_columns, 3);
    for (uint32_t event = 0; event < VPMU_EVENTS; event++) {
        report_words(&report, source_event_name(event));
        report_words(&report, source_state_name(counts[event].state));
        report_words(&report, counts[event].has_value ? "yes" : "no");
    }
    return report_end(&report) < 0;
}
