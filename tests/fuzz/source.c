/* SPDX-License-Identifier: BSD-3-Clause */
/* A source's file: whatever it says, what is accepted is in its bounds, and an error has a line. */

#include "guest-drivers/source/file.h"

#include <string.h>

#include "check.h"

static void check_processor(const struct source_processor *processor)
{
    CHECK(processor->count <= SOURCE_MAX_RECORDS);
    for (uint32_t i = 0; i < processor->count; i++) {
        const struct source_record *record = &processor->records[i];
        uint64_t per_mille = source_backed_per_mille(record);

        CHECK(!i || record->counter > record[-1].counter);
        CHECK(record->counter < 64 && record->event < VPMU_EVENTS);
        CHECK(record->state < VPMU_COUNTER_STATES);
        CHECK(per_mille <= 1000 || per_mille == SOURCE_NOT_KNOWN);
        CHECK(source_find(processor, record->event));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source_file_content content;
    struct source_error error = {0};

    if (source_file_parse((const char *)data, size, &content, &error) < 0) {
        CHECK(error.what && !content.processors);
        return 0;
    }
    CHECK(content.facts.processors <= SOURCE_FILE_PROCESSORS);
    for (uint32_t i = 0; i < content.facts.processors; i++)
        check_processor(&content.processors[i]);
    free(content.processors);
    return 0;
}
