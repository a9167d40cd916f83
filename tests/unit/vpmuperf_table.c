/* SPDX-License-Identifier: BSD-3-Clause */
/* counters.def: what CTRPP would check of it, and that the manifest says the same. */

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest-drivers/source/source.h"
#include "guest-drivers/vpmuperf/manifest.h"
#include "guest-drivers/vpmuperf/publish.h"

static const struct counter_row *row_of(const struct counter_set *set, uint32_t id)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->rows[i].id == id)
            return &set->rows[i];
    }
    return NULL;
}

static void check_text(const char *text)
{
    cr_assert(strlen(text) > 0 && strlen(text) < 1024, "the schema's limit: %s", text);
    cr_assert_null(strpbrk(text, "&<>\""), "to be quoted in XML: %s", text);
    for (const char *c = text; *c; c++)
        cr_assert(isprint((unsigned char)*c));
}

Test(vpmuperf_table, ids_names_and_symbols_are_unique)
{
    for (uint32_t s = 0; s < COUNTER_SETS; s++) {
        const struct counter_set *set = &counter_sets[s];
        cr_assert_gt(set->count, 0, "NumCounters 0 is refused");
        for (uint32_t i = 0; i < set->count; i++) {
            cr_assert_neq(set->rows[i].id, 0);
            cr_assert_neq(set->rows[i].id, 0xffffffffu, "PERF_WILDCARD_COUNTER");
            for (uint32_t j = 0; j < i; j++) {
                cr_assert_neq(set->rows[i].id, set->rows[j].id);
                cr_assert_str_neq(set->rows[i].name, set->rows[j].name);
                cr_assert_str_neq(set->rows[i].symbol, set->rows[j].symbol);
            }
        }
    }
    cr_assert_str_neq(counter_sets[0].name, counter_sets[1].name);
    cr_assert_neq(memcmp(&counter_sets[0].guid, &counter_sets[1].guid, 16), 0);
    cr_assert_neq(memcmp(&counter_sets[0].guid, &counter_provider, 16), 0);
    cr_assert_neq(memcmp(&counter_sets[1].guid, &counter_provider, 16), 0);
}

Test(vpmuperf_table, fractions_have_a_base_and_nothing_else_has)
{
    for (uint32_t s = 0; s < COUNTER_SETS; s++) {
        for (uint32_t i = 0; i < counter_sets[s].count; i++) {
            const struct counter_row *row = &counter_sets[s].rows[i];
            const struct counter_row *base = row_of(&counter_sets[s], row->base);
            cr_assert_eq(row->type == COUNTER_FRACTION, base != NULL, "%s", row->name);
            cr_assert_eq(row->base == 0, base == NULL, "%s: its base is not in the set", row->name);
            if (base)
                cr_assert_eq(base->type, COUNTER_BASE, "%s", row->name);
            cr_assert_eq(row->type == COUNTER_RATE, row->event != VPMU_NONE, "%s", row->name);
            cr_assert(row->scale >= -10 && row->scale <= 10, "PERF_COUNTER_INFO.Scale");
            check_text(row->name);
            check_text(row->help);
        }
        check_text(counter_sets[s].name);
        check_text(counter_sets[s].help);
    }
}

Test(vpmuperf_table, the_help_names_every_state)
{
    const char *help = counter_sets[SET_PROCESSOR].rows[PROCESSOR_STATE].help;
    char text[40];

    for (uint32_t state = 0; state < VPMU_COUNTER_STATES; state++) {
        snprintf(text, sizeof(text), "%u %s", state, source_state_name(state));
        cr_assert_not_null(strstr(help, text), "%s", text);
    }
    help = counter_sets[SET_VM].rows[VM_EVENT_CLASS].help;
    for (uint32_t i = 0; i < VPMU_EVENT_CLASSES; i++) {
        snprintf(text, sizeof(text), "%u %s", i, source_class_name(i));
        cr_assert_not_null(strstr(help, text), "%s", text);
    }
}

Test(vpmuperf_table, guids_are_written_in_the_usual_order)
{
    char text[39];

    cr_assert_str_eq(counter_guid_text(&counter_provider, text),
                     "{cb5a3ddb-ae3e-47e0-bdd4-a2b59c7d4085}");
}

static char *manifest_text(void)
{
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    manifest_write(file, "some.exe");
    fclose(file);
    return text;
}

static uint32_t occurrences(const char *text, const char *what)
{
    uint32_t count = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        count++;
    return count;
}

Test(vpmuperf_table, the_manifest_says_what_the_rows_say)
{
    char *text = manifest_text(), wanted[400], guid[39];
    uint32_t counters = 0;

    cr_assert_eq(occurrences(text, "applicationIdentity=\"some.exe\""), 1);
    cr_assert_eq(occurrences(text, counter_guid_text(&counter_provider, guid)), 1);
    for (uint32_t s = 0; s < COUNTER_SETS; s++) {
        const struct counter_set *set = &counter_sets[s];
        cr_assert_eq(occurrences(text, counter_guid_text(&set->guid, guid)), 1);
        counters += set->count;
        for (uint32_t i = 0; i < set->count; i++) {
            snprintf(wanted, sizeof(wanted), "<counter id=\"%u\" uri=\"Vpmu.%s.%s\"",
                     set->rows[i].id, set->symbol, set->rows[i].symbol);
            cr_assert_eq(occurrences(text, wanted), 1, "%s", wanted);
            snprintf(wanted, sizeof(wanted), "name=\"%s\"\n              description=\"%s\"\n",
                     set->rows[i].name, set->rows[i].help);
            cr_assert_eq(occurrences(text, wanted), 1, "%s", wanted);
        }
    }
    cr_assert_eq(occurrences(text, "<counter id="), counters);
    cr_assert_eq(occurrences(text, "</counter>"), counters);
    cr_assert_eq(occurrences(text, "name=\"reference\""), counters, "all are by reference");
    cr_assert_eq(occurrences(text, "name=\"noDisplay\""), 2, "the bases");
    cr_assert_eq(occurrences(text, "instances=\"multiple\""), 1);
    cr_assert_eq(occurrences(text, "instances=\"single\""), 1);
    free(text);
}
