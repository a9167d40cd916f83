// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/lease.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hv/cli/answer.h"

const struct lease_meaning lease_meanings[LEASE_WORDS] = {
    [LEASE_REVOKED] = {"revoked", TABLE_BAD, "has lost its counters"},
    [LEASE_SHORT] = {"short", TABLE_BAD,
                     "no longer fits beside what others take without asking: its counters can "
                     "stand still"},
    [LEASE_STARVED] = {"starved", TABLE_BAD,
                       "reports counters that stand still: somebody has them without asking"},
    [LEASE_YIELDING] = {"yielding", TABLE_WARNING,
                        "is giving way to a profiler, and will have fewer counters"},
    [LEASE_HELD] = {"held", TABLE_WARNING,
                    "is held for its holder, who has not come back since vpmud was restarted"},
    [LEASE_OBSERVED] = {"observed", TABLE_WARNING, "is there without having asked"},
    [LEASE_RESERVED] = {"reserved", TABLE_PLAIN, "is reserved for a VM that has not come yet"},
    [LEASE_REDUCED] = {"reduced", TABLE_WARNING, "has fewer counters than it asked for"},
    [LEASE_GRANTED] = {"granted", TABLE_GOOD, "has the counters that it asked for"},
};

static bool is(struct json_object *lease, const char *key, const char *text)
{
    return !strcmp(answer_text(lease, key), text);
}

static bool is_starved(struct json_object *lease)
{
    return answer_number(answer_object(answer_object(lease, "report"), "states"), "starved") > 0;
}

static bool is_reduced(struct json_object *lease)
{
    const struct vpmu_amount need = answer_amount(lease, "need");
    const struct vpmu_amount granted = answer_amount(lease, "granted");

    return granted.gp < need.gp || need.fixed & ~granted.fixed;
}

enum lease_word lease_word(struct json_object *lease)
{
    const bool holds[LEASE_WORDS] = {
        [LEASE_REVOKED] = answer_flag(lease, "revoked") || is(lease, "lease_state", "revoked"),
        [LEASE_SHORT] = answer_flag(lease, "short") || is(lease, "lease_state", "short"),
        [LEASE_STARVED] = is_starved(lease),
        [LEASE_YIELDING] = is(lease, "lease_state", "yielding"),
        [LEASE_HELD] = is(lease, "state", "held"),
        [LEASE_OBSERVED] = is(lease, "state", "observed"),
        [LEASE_RESERVED] = is(lease, "state", "reserved"),
        [LEASE_REDUCED] = is_reduced(lease),
        [LEASE_GRANTED] = true,
    };
    int word = 0;

    while (!holds[word])
        word++;
    return (enum lease_word)word;
}

bool lease_is_vm(struct json_object *lease)
{
    return is(lease, "binding", "vcpu");
}

void lease_add_word(struct table *table, struct json_object *lease)
{
    const struct lease_meaning *meaning = &lease_meanings[lease_word(lease)];

    table_add(table, meaning->mark, "%s", meaning->word);
}

static const struct table_column holder_columns[] = {
    {"LEASE", TABLE_RIGHT, TABLE_WHOLE},         {"STATE", TABLE_LEFT, TABLE_WHOLE},
    {"HAS", TABLE_RIGHT, TABLE_WHOLE},           {"PID", TABLE_RIGHT, TABLE_WHOLE},
    {"PROCESSORS", TABLE_LEFT, TABLE_CUT_FIRST}, {"HOLDER", TABLE_LEFT, TABLE_CUT},
};

struct table *holders_new(void)
{
    return table_new(holder_columns, G_N_ELEMENTS(holder_columns));
}

void holders_add(struct table *table, struct json_object *lease)
{
    const unsigned long long pid = answer_number(lease, "pid");
    char text[AMOUNT_TEXT];

    table_add(table, TABLE_PLAIN, "%llu", (unsigned long long)answer_number(lease, "id"));
    lease_add_word(table, lease);
    table_add(table, TABLE_PLAIN, "%s", amount_text(answer_amount(lease, "granted"), text));
    if (pid)
        table_add(table, TABLE_PLAIN, "%llu", pid);
    else
        table_add(table, TABLE_PLAIN, "-");
    table_add(table, TABLE_PLAIN, "%s", answer_text(lease, "processors"));
    table_add(table, TABLE_PLAIN, "%s", answer_text(lease, "name"));
}

const char *amount_text(struct vpmu_amount amount, char text[AMOUNT_TEXT])
{
    snprintf(text, AMOUNT_TEXT, "%u+%d", amount.gp, __builtin_popcount(amount.fixed));
    return text;
}

struct vpmu_amount use_left(struct json_object *row)
{
    const struct vpmu_amount has = answer_amount(row, "capacity");
    const struct vpmu_amount wide = answer_amount(row, "cpu_wide");
    const struct vpmu_amount vcpu = answer_amount(row, "vcpu");
    const unsigned taken = (unsigned)wide.gp + vcpu.gp;

    return (struct vpmu_amount){.gp = (uint16_t)(taken < has.gp ? has.gp - taken : 0),
                                .fixed = (uint16_t)(has.fixed & ~(wide.fixed | vcpu.fixed))};
}

const char *duration_text(int64_t ms, char text[DURATION_TEXT])
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}};
    size_t i = 0;

    while (i < 3 && ms < units[i].ms)
        i++;
    if (i == 3)
        snprintf(text, DURATION_TEXT, "%lld s", (long long)(ms < 0 ? 0 : ms / 1000));
    else
        snprintf(text, DURATION_TEXT, "%lld %s %lld %s", (long long)(ms / units[i].ms),
                 units[i].name, (long long)(ms % units[i].ms / units[i + 1].ms), units[i + 1].name);
    return text;
}

int64_t wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}
