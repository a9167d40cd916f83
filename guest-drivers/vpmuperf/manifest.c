/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Microsoft's "Performance Counters Schema" describes the elements. What CTRPP would check of them,
 * tests/unit/vpmuperf_table.c checks.
 */
#include "manifest.h"

#include "counters.h"

static const char *type_name(uint32_t type)
{
    switch (type) {
    case COUNTER_RATE:
        return "perf_counter_bulk_count";
    case COUNTER_FRACTION:
        return "perf_large_raw_fraction";
    case COUNTER_BASE:
        return "perf_large_raw_base";
    default:
        return "perf_counter_large_rawcount";
    }
}

static void write_counter(FILE *to, const struct counter_set *set, const struct counter_row *row)
{
    fprintf(to, "          <counter id=\"%u\" uri=\"Vpmu.%s.%s\" symbol=\"VPMU_%s_%s\"\n", row->id,
            set->symbol, row->symbol, set->symbol, row->symbol);
    fprintf(to, "              name=\"%s\"\n              description=\"%s\"\n", row->name,
            row->help);
    fprintf(to, "              type=\"%s\" detailLevel=\"standard\" defaultScale=\"%d\"",
            type_name(row->type), row->scale);
    if (row->base)
        fprintf(to, " baseID=\"%u\"", row->base);
    fprintf(to, ">\n            <counterAttributes>\n"
                "              <counterAttribute name=\"reference\"/>\n");
    if (row->type == COUNTER_BASE)
        fprintf(to, "              <counterAttribute name=\"noDisplay\"/>\n");
    fprintf(to, "            </counterAttributes>\n          </counter>\n");
}

static void write_set(FILE *to, const struct counter_set *set)
{
    char guid[39];

    fprintf(to, "        <counterSet guid=\"%s\" uri=\"Vpmu.%s\" symbol=\"VPMU_%s\"\n",
            counter_guid_text(&set->guid, guid), set->symbol, set->symbol);
    fprintf(
        to,
        "            name=\"%s\"\n            description=\"%s\"\n            instances=\"%s\">\n",
        set->name, set->help, set->instances == COUNTER_MULTIPLE ? "multiple" : "single");
    for (uint32_t i = 0; i < set->count; i++)
        write_counter(to, set, &set->rows[i]);
    fprintf(to, "        </counterSet>\n");
}

void manifest_write(FILE *to, const char *program)
{
    char guid[39];

    fprintf(to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<instrumentationManifest xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">\n"
            "  <instrumentation>\n"
            "    <counters xmlns=\"http://schemas.microsoft.com/win/2005/12/counters\" "
            "schemaVersion=\"1.1\">\n"
            "      <provider applicationIdentity=\"%s\" providerType=\"userMode\"\n"
            "          providerName=\"vpmuperf\" providerGuid=\"%s\" symbol=\"VPMU_PROVIDER\" "
            "callback=\"custom\">\n",
            program, counter_guid_text(&counter_provider, guid));
    for (uint32_t set = 0; set < COUNTER_SETS; set++)
        write_set(to, &counter_sets[set]);
    fprintf(to, "      </provider>\n    </counters>\n  </instrumentation>\n"
                "</instrumentationManifest>\n");
}
