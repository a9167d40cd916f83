/* SPDX-License-Identifier: BSD-3-Clause */
/* Explanations: filling them in, and saying them in a sentence. */
#include "arbiter_internal.h"

struct vpmu_explanation *arb_explain_begin(struct vpmu_explanation *given,
                                           struct vpmu_explanation *scratch)
{
    struct vpmu_explanation *why = given ? given : scratch;

    *why = (struct vpmu_explanation){
        .status = VPMU_STATUS_SUCCESS,
        .cause = VPMU_CAUSE_NONE,
        .position = VPMU_NOT_SET,
        .type = VPMU_NOT_SET,
        .processor = VPMU_NOT_SET,
        .index = VPMU_NOT_SET,
    };
    return why;
}

vpmu_status arb_explain(struct vpmu_explanation *why, vpmu_status status, enum vpmu_cause cause)
{
    why->status = status;
    why->cause = cause;
    return status;
}

vpmu_status arb_explain_lease(const struct vpmu_arbiter *arbiter, struct vpmu_explanation *why,
                              vpmu_status status, enum vpmu_cause cause, uint32_t slot)
{
    why->lease = arb_lease_handle(arbiter, slot);
    why->holder = arbiter->holders[arbiter->leases[slot].holder].who;
    return arb_explain(why, status, cause);
}

vpmu_status arb_explain_no_room(const struct vpmu_arbiter *arbiter, struct vpmu_explanation *why)
{
    return arb_explain(why,
                       has_mode(arbiter, VPMU_MODE_NO_MEMORY) ? VPMU_STATUS_NO_MEMORY
                                                              : VPMU_STATUS_INSUFFICIENT_RESOURCES,
                       VPMU_CAUSE_NO_ROOM);
}

/* ---- Names ---- */

const char *vpmu_status_name(vpmu_status status)
{
    static const struct {
        vpmu_status status;
        const char *name;
    } names[] = {
        {VPMU_STATUS_SUCCESS, "STATUS_SUCCESS"},
        {VPMU_STATUS_DEVICE_BUSY, "STATUS_DEVICE_BUSY"},
        {VPMU_STATUS_UNSUCCESSFUL, "STATUS_UNSUCCESSFUL"},
        {VPMU_STATUS_NOT_IMPLEMENTED, "STATUS_NOT_IMPLEMENTED"},
        {VPMU_STATUS_INVALID_PARAMETER, "STATUS_INVALID_PARAMETER"},
        {VPMU_STATUS_NO_MEMORY, "STATUS_NO_MEMORY"},
        {VPMU_STATUS_BUFFER_TOO_SMALL, "STATUS_BUFFER_TOO_SMALL"},
        {VPMU_STATUS_INSUFFICIENT_RESOURCES, "STATUS_INSUFFICIENT_RESOURCES"},
        {VPMU_STATUS_NOT_SUPPORTED, "STATUS_NOT_SUPPORTED"},
        {VPMU_STATUS_WMI_ALREADY_ENABLED, "STATUS_WMI_ALREADY_ENABLED"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].status == status)
            return names[i].name;
    return "STATUS_?";
}

static const char *type_name(uint32_t type)
{
    static const char *const names[] = {
        [VPMU_RESOURCE_SINGLE] = "Single",
        [VPMU_RESOURCE_RANGE] = "Range",
        [VPMU_RESOURCE_EXTENDED] = "ExtendedCounterConfiguration",
        [VPMU_RESOURCE_OVERFLOW] = "Overflow",
        [VPMU_RESOURCE_EVENT_BUFFER] = "EventBuffer",
        [VPMU_RESOURCE_TAG] = "IdentificationTag",
    };
    _Static_assert(sizeof(names) / sizeof(names[0]) == VPMU_RESOURCE_TYPES, "a name per type");

    return type < VPMU_RESOURCE_TYPES ? names[type] : "?";
}

/*
 * A sentence for each cause. A letter after % stands for a field:
 * n position, t type, p processor, r resource (index), i index as a number, l lease, h holder.
 */
static const char *const sentences[] = {
    [VPMU_CAUSE_NONE] = "granted",
    [VPMU_CAUSE_NOTHING_BEHIND] = "processor %p has no counters",
    [VPMU_CAUSE_NULL_POINTER] = "a pointer is NULL",
    [VPMU_CAUSE_BEFORE_1903] = "before Windows 10 1903 only NULL, 0, NULL can be asked for",
    [VPMU_CAUSE_AFFINITY_COUNT] = "the affinity and its count do not go together",
    [VPMU_CAUSE_NO_SUCH_GROUP] = "entry %n: there is no such group",
    [VPMU_CAUSE_REPEATED_GROUP] = "entry %n: the group was named before",
    [VPMU_CAUSE_EMPTY_MASK] = "entry %n: no processor is named",
    [VPMU_CAUSE_NO_SUCH_PROCESSOR] = "entry %n: there is no processor %p",
    [VPMU_CAUSE_RESERVED] = "entry %n: a reserved field is not 0",
    [VPMU_CAUSE_EMPTY_LIST] = "the resource list is empty",
    [VPMU_CAUSE_UNKNOWN_TYPE] = "entry %n: there is no such type of resource",
    [VPMU_CAUSE_BAD_INDEX] = "entry %n: counter index %i is out of range",
    [VPMU_CAUSE_BAD_RANGE] = "entry %n: the range from %i ends before it begins",
    [VPMU_CAUSE_REPEATED_RESOURCE] = "entry %n: a second %t",
    [VPMU_CAUSE_NO_HANDLER] = "entry %n: %t without a handler",
    [VPMU_CAUSE_ZERO_THRESHOLD] = "entry %n: %t with an event threshold of 0",
    [VPMU_CAUSE_NO_SUCH_COUNTER] = "there is no counter of index %i on processor %p",
    [VPMU_CAUSE_UNSUPPORTED] = "%t is not supported on processor %p",
    [VPMU_CAUSE_HELD] = "%r of processor %p is held by lease %l of %h",
    [VPMU_CAUSE_WHOLE_HELD] = "the whole PMU is held by lease %l of %h",
    [VPMU_CAUSE_PARTS_HELD] = "the whole PMU is not free: lease %l of %h is the oldest in the way",
    [VPMU_CAUSE_NO_ROOM] = "the arbiter has no room for one more",
    [VPMU_CAUSE_BAD_HANDLE] = "%l is not a live lease",
    [VPMU_CAUSE_TOO_MANY_COUNTERS] = "more counters than a profiling set can have",
    [VPMU_CAUSE_COUNTER_TYPE] = "entry %n: the type is not PMCCounter",
    [VPMU_CAUSE_SET_STANDS] = "a profiling set of %h stands",
    [VPMU_CAUSE_SET_USED] = "a thread profiles with %r, set by %h",
    [VPMU_CAUSE_NOT_IMPLEMENTED] = "the processors have no thread profiling",
    [VPMU_CAUSE_BUFFER_TOO_SMALL] = "the profiling set has more counters than fit",
};
_Static_assert(sizeof(sentences) / sizeof(sentences[0]) == VPMU_CAUSES, "a sentence per cause");

/* ---- Sentences ---- */

static void put_processor(struct text *text, uint32_t processor)
{
    if (processor == VPMU_NOT_SET) {
        arb_put_string(text, "any");
        return;
    }
    arb_put_number(text, processor / GROUP_SIZE, 10);
    arb_put_char(text, ':');
    arb_put_number(text, processor % GROUP_SIZE, 10);
}

static void put_index(struct text *text, uint32_t index)
{
    if (index == VPMU_NOT_SET)
        arb_put_char(text, '?');
    else
        arb_put_number(text, index, 10);
}

static void put_resource(struct text *text, uint32_t index)
{
    if (index == VPMU_EVENT_BUFFER) {
        arb_put_string(text, "the event buffer");
        return;
    }
    arb_put_string(text, index < VPMU_FIXED_COUNTER ? "counter " : "fixed counter ");
    arb_put_number(text, index < VPMU_FIXED_COUNTER ? index : index - VPMU_FIXED_COUNTER, 10);
}

static void put_holder(struct text *text, const struct vpmu_holder *holder)
{
    arb_put_string(text, holder->name);
    arb_put_string(text, " (id ");
    arb_put_number(text, holder->id, 10);
    arb_put_char(text, ')');
}

static void put_field(struct text *text, char field, const struct vpmu_explanation *explanation)
{
    switch (field) {
    case 'n':
        arb_put_number(text, explanation->position, 10);
        break;
    case 't':
        arb_put_string(text, type_name(explanation->type));
        break;
    case 'p':
        put_processor(text, explanation->processor);
        break;
    case 'r':
        put_resource(text, explanation->index);
        break;
    case 'i':
        put_index(text, explanation->index);
        break;
    case 'l':
        arb_put_string(text, "0x");
        arb_put_number(text, explanation->lease, 16);
        break;
    case 'h':
        put_holder(text, &explanation->holder);
        break;
    }
}

size_t vpmu_explanation_text(const struct vpmu_explanation *explanation, char *text, size_t size)
{
    struct text out = {.to = text, .size = size};

    arb_put_string(&out, vpmu_status_name(explanation->status));
    arb_put_string(&out, ": ");
    for (const char *c = sentences[explanation->cause]; *c; c++) {
        if (*c == '%')
            put_field(&out, *++c, explanation);
        else
            arb_put_char(&out, *c);
    }
    return arb_text_end(&out);
}
