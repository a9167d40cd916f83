/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and set-up of an arbiter, and the walk over processors. */
#include "arbiter_internal.h"

_Static_assert(sizeof(size_t) >= sizeof(uint64_t), "sizes below are computed without overflow");

/* The arrays that follow struct vpmu_arbiter in the caller's memory. */
enum part {
    PART_GROUPS,
    PART_PROCESSORS,
    PART_LEASES,
    PART_SPANS,
    PART_HOLDERS,
    PART_BUCKETS,
    PARTS,
};

struct layout {
    uint32_t groups, spans, holders;
    unsigned bucket_bits;
    size_t offset[PARTS];
    size_t size;
};

static bool processors_valid(const struct vpmu_arbiter_config *config)
{
    bool online = false;

    for (uint32_t p = 0; p < config->processor_count; p++) {
        if (config->processors[p].counters & ~VPMU_COUNTERS)
            return false;
        online |= config->processors[p].online;
    }
    return online;
}

static bool config_valid(const struct vpmu_arbiter_config *config)
{
    return config && config->processors && config->processor_count &&
           config->processor_count <= VPMU_PROCESSORS_MAX && config->leases &&
           config->leases <= VPMU_LEASES_MAX && config->holders <= VPMU_LEASES_MAX &&
           config->spans <= VPMU_LEASES_MAX && processors_valid(config);
}

/* At least one bit: a shift by all 64 is undefined. */
static unsigned bits_for(uint32_t count)
{
    unsigned bits = 1;

    while (BIT(bits) < count)
        bits++;
    return bits;
}

static struct layout lay_out(const struct vpmu_arbiter_config *config)
{
    struct layout layout = {
        .groups = (config->processor_count + GROUP_SIZE - 1) / GROUP_SIZE,
        .spans = config->spans ? config->spans : config->leases,
        .holders = config->holders ? config->holders : config->leases + 1,
        .size = sizeof(struct vpmu_arbiter),
    };
    layout.bucket_bits = bits_for(layout.holders);

    const struct {
        size_t count, size;
    } parts[] = {
        [PART_GROUPS] = {layout.groups, sizeof(struct group)},
        [PART_PROCESSORS] = {config->processor_count, sizeof(struct processor)},
        [PART_LEASES] = {config->leases, sizeof(struct lease)},
        [PART_SPANS] = {layout.spans, sizeof(struct span)},
        [PART_HOLDERS] = {layout.holders, sizeof(struct holder)},
        [PART_BUCKETS] = {BIT(layout.bucket_bits), sizeof(uint32_t)},
    };
    _Static_assert(sizeof(parts) / sizeof(parts[0]) == PARTS, "a row for each part");

    for (int i = 0; i < PARTS; i++) {
        layout.offset[i] = layout.size;
        layout.size += (parts[i].count * parts[i].size + 7) & ~(size_t)7;
    }
    return layout;
}

size_t vpmu_arbiter_size(const struct vpmu_arbiter_config *config)
{
    return config_valid(config) ? lay_out(config).size : 0;
}

static void place_parts(struct vpmu_arbiter *arbiter, const struct layout *layout)
{
    unsigned char *memory = (unsigned char *)arbiter;

    arbiter->groups = (void *)(memory + layout->offset[PART_GROUPS]);
    arbiter->processors = (void *)(memory + layout->offset[PART_PROCESSORS]);
    arbiter->leases = (void *)(memory + layout->offset[PART_LEASES]);
    arbiter->spans = (void *)(memory + layout->offset[PART_SPANS]);
    arbiter->holders = (void *)(memory + layout->offset[PART_HOLDERS]);
    arbiter->buckets = (void *)(memory + layout->offset[PART_BUCKETS]);
}

static void add_processor(struct vpmu_arbiter *arbiter, uint32_t p,
                          const struct vpmu_processor *given)
{
    struct processor *processor = &arbiter->processors[p];

    processor->exists = given->counters | (given->event_buffer ? BIT(VPMU_EVENT_BUFFER) : 0);
    processor->taken = 0;
    processor->version = given->version;
    if (!given->online)
        return;
    arbiter->groups[p / GROUP_SIZE].online |= BIT(p % GROUP_SIZE);
    arbiter->common &= processor->exists;
    if (!given->counters && arbiter->bare == NIL)
        arbiter->bare = p;
}

struct vpmu_arbiter *vpmu_arbiter_init(void *memory, size_t size,
                                       const struct vpmu_arbiter_config *config)
{
    struct vpmu_arbiter *arbiter = memory;

    if (!memory || !config_valid(config))
        return NULL;
    struct layout layout = lay_out(config);
    if (size < layout.size)
        return NULL;

    *arbiter = (struct vpmu_arbiter){
        .mode = config->mode,
        .group_count = layout.groups,
        .processor_count = config->processor_count,
        .bare = NIL,
        .common = ~UINT64_C(0),
        .whole = NIL,
        .bucket_shift = 64 - layout.bucket_bits,
        .ages = {NIL, NIL},
        .profiling.holder = NIL,
    };
    place_parts(arbiter, &layout);
    arb_pool_init(&arbiter->lease_pool, &arbiter->leases->links[CHAIN_AGE].next,
                  sizeof(struct lease), config->leases);
    arb_pool_init(&arbiter->span_pool, &arbiter->spans->next, sizeof(struct span), layout.spans);
    arb_pool_init(&arbiter->holder_pool, &arbiter->holders->next, sizeof(struct holder),
                  layout.holders);
    for (uint32_t g = 0; g < layout.groups; g++)
        arbiter->groups[g] = (struct group){0};
    for (uint32_t p = 0; p < config->processor_count; p++)
        add_processor(arbiter, p, &config->processors[p]);
    for (size_t i = 0; i < BIT(layout.bucket_bits); i++)
        arbiter->buckets[i] = NIL;
    return arbiter;
}

struct walk arb_walk_all(const struct vpmu_arbiter *arbiter)
{
    return (struct walk){.arbiter = arbiter, .span = NIL, .all = true};
}

struct walk arb_walk_request(const struct vpmu_arbiter *arbiter, const struct vpmu_request *request)
{
    if (!request->affinity)
        return arb_walk_all(arbiter);
    return (struct walk){
        .arbiter = arbiter,
        .entry = request->affinity,
        .end = request->affinity + request->affinity_count,
        .span = NIL,
    };
}

struct walk arb_walk_lease(const struct vpmu_arbiter *arbiter, uint32_t slot)
{
    const struct lease *lease = &arbiter->leases[slot];

    if (lease->demand.all_processors)
        return arb_walk_all(arbiter);
    return (struct walk){.arbiter = arbiter, .span = lease->spans};
}

static void walk_enter(struct walk *walk, uint32_t group, uint64_t mask)
{
    walk->base = group * GROUP_SIZE;
    walk->left = mask;
}

static bool walk_next_group(struct walk *walk)
{
    const struct vpmu_arbiter *arbiter = walk->arbiter;

    if (walk->entry != walk->end) {
        walk_enter(walk, walk->entry->group, walk->entry->mask);
        walk->entry++;
        return true;
    }
    if (walk->span != NIL) {
        const struct span *span = &arbiter->spans[walk->span];
        walk_enter(walk, span->group, span->mask);
        walk->span = span->next;
        return true;
    }
    if (walk->all && walk->group < arbiter->group_count) {
        walk_enter(walk, walk->group, arbiter->groups[walk->group].online);
        walk->group++;
        return true;
    }
    return false;
}

bool arb_walk_next(struct walk *walk)
{
    while (!walk->left)
        if (!walk_next_group(walk))
            return false;
    walk->processor = walk->base + lowest(walk->left);
    walk->left &= walk->left - 1;
    return true;
}
