// SPDX-License-Identifier: BSD-3-Clause
/*
 * The protocol's pure half, for both sides: any bytes, cut anywhere, become messages or a broken
 * stream; how they are cut makes no difference; what the checks let pass can be read, and is
 * carried the same when it is made again.
 */
#include <stdlib.h>
#include <string.h>

#include "vpmu/wire.h"

static void must(bool good)
{
    if (!good)
        abort();
}

static void read_claim(const struct vpmu_wire_message *message)
{
    enum vpmu_shortage_policy policy;
    struct vpmu_wire_claim again;
    struct vpmu_claim claim;
    uint64_t last = 0;

    vpmu_wire_claim_read(message, &claim, &policy);
    must(claim.words <= VPMU_WIRE_WORDS_MAX && !claim.words == !claim.processors);
    for (uint32_t w = 0; w < claim.words; w++)
        last ^= claim.processors[w];
    (void)last;
    vpmu_wire_claim_write(&again, &claim, policy);
    must(!memcmp(&again.need, &claim.need, sizeof(again.need)) && again.words == claim.words);
}

static void check(const struct vpmu_wire_message *message, struct vpmu_wire_session *session)
{
    const struct vpmu_wire_row *row = vpmu_wire_row(message->header.type);
    char text[VPMU_WIRE_TEXT];
    vpmu_status status = vpmu_wire_check_request(message, session, text);

    must(status == VPMU_STATUS_SUCCESS || (text[0] && memchr(text, '\0', sizeof(text))));
    for (uint32_t type = 0; type <= VPMU_WIRE_TYPES; type++)
        (void)vpmu_wire_check_reply(message, type);
    (void)vpmu_wire_check_notice(message);
    if (status != VPMU_STATUS_SUCCESS)
        return;
    must(row && message->header.size >= row->request_size);
    if (row->request_tail == VPMU_WIRE_PROCESSORS)
        read_claim(message);
    if (message->header.type == VPMU_WIRE_HELLO)
        *session = (struct vpmu_wire_session){.ready = true, .kind = message->hello.kind};
}

/* Feeds pieces of at most step bytes; returns how many messages came out. */
static unsigned feed(const uint8_t *data, size_t size, size_t step)
{
    struct vpmu_wire_session session = {false};
    static struct vpmu_wire_reader reader;
    unsigned count = 0;

    memset(&reader, 0, sizeof(reader));
    while (size) {
        size_t piece = size < step ? size : step;
        const uint8_t *at = data;
        enum vpmu_wire_progress progress;

        data += piece;
        size -= piece;
        while ((progress = vpmu_wire_read(&reader, &at, &piece)) == VPMU_WIRE_MESSAGE) {
            check(&reader.message, &session);
            count++;
        }
        if (progress == VPMU_WIRE_BROKEN)
            break;
        must(!piece);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned whole = feed(data, size, size + 1);

    must(feed(data, size, 1) == whole && feed(data, size, 13) == whole);
    return 0;
}
