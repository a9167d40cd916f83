/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model against a naive one.
 *
 * The input is a configuration and operations: an instruction with the events it causes, events
 * that no instruction causes, register accesses, saving and restoring. The naive model below
 * counts one event at a time, compares each cycle's events with the counter mask, and decides every
 * register access by a case of its own. After each operation both must agree.
 *
 * The source is exact (it calls the model at the very event that the demand names) or, when an
 * operation says so, late: then the model finds the overflow at the next access.
 */
#include <string.h>

#include "check.h"
#include "vpmu/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Input. Past its end everything is 0. */

struct input {
    const uint8_t *data;
    size_t size;
};

static uint8_t byte(struct input *in)
{
    if (in->size == 0) {
        return 0;
    }
    in->size--;
    return *in->data++;
}

static uint64_t bytes(struct input *in, unsigned n)
{
    uint64_t value = 0;

    while (n--) {
        value = value << 8 | byte(in);
    }
    return value;
}

/* The naive model. */

struct naive {
    struct vpmu_config config;
    struct vpmu_state state;
    bool svme;
    uint32_t pending; /* counters that overflowed since the last time anyone looked */
    bool pending_interrupt;
    unsigned pmis;
};

enum verdict { COUNTS, NEVER_COUNTS, UNSUPPORTED };

static bool is_amd(const struct naive *n)
{
    return n->config.vendor == VPMU_VENDOR_AMD;
}

/* Whether there are global registers. */
static bool has_global(const struct naive *n)
{
    return n->config.version >= 2;
}

static unsigned counters_of(const struct naive *n)
{
    return n->config.gp + n->config.fixed;
}

static uint64_t top_of(const struct naive *n, unsigned i)
{
    return (uint64_t)1 << (i < n->config.gp ? n->config.gp_width : n->config.fixed_width);
}

static uint64_t *naive_value(struct naive *n, unsigned i)
{
    return i < n->config.gp ? &n->state.gp_value[i] : &n->state.fixed_value[i - n->config.gp];
}

static unsigned status_bit(const struct naive *n, unsigned i)
{
    return i < n->config.gp ? i : 32 + i - n->config.gp;
}

static unsigned naive_fixed_field(const struct naive *n, unsigned i)
{
    return (unsigned)(n->state.fixed_control >> 4 * (i - n->config.gp)) % 16;
}

static enum vpmu_event naive_amd_event(const struct naive *n, unsigned i)
{
    unsigned version = n->config.version;

    switch (n->state.gp_select[i] & 0xF0000FFFF) {
    case 0x02C:
        return version >= 1 ? VPMU_EVENT_INTERRUPTS : VPMU_EVENT_NONE;
    case 0x076:
        return VPMU_EVENT_CYCLES;
    case 0x0C0:
        return VPMU_EVENT_INSTRUCTIONS;
    case 0x0C2:
        return VPMU_EVENT_BRANCHES;
    case 0x0C3:
        return VPMU_EVENT_BRANCH_MISSES;
    case 0x0C8:
        return VPMU_EVENT_NEAR_RETURNS;
    case 0x0D1:
        return version >= 1 ? VPMU_EVENT_COND_BRANCHES : VPMU_EVENT_NONE;
    case 0x100000120:
        return version >= 2 ? VPMU_EVENT_REF_CYCLES : VPMU_EVENT_NONE;
    default:
        return VPMU_EVENT_NONE;
    }
}

static enum vpmu_event naive_event(const struct naive *n, unsigned i)
{
    if (is_amd(n) && i < n->config.gp) {
        return naive_amd_event(n, i);
    }
    if (i >= n->config.gp) {
        switch (i - n->config.gp) {
        case 0:
            return VPMU_EVENT_INSTRUCTIONS;
        case 1:
            return VPMU_EVENT_CYCLES;
        case 2:
            return VPMU_EVENT_REF_CYCLES;
        default:
            return VPMU_EVENT_SLOTS;
        }
    }
    switch (n->state.gp_select[i] & 0xFFFF) {
    case 0x003C:
        return VPMU_EVENT_CYCLES;
    case 0x00C0:
        return VPMU_EVENT_INSTRUCTIONS;
    case 0x013C:
        return VPMU_EVENT_REF_CYCLES;
    case 0x4F2E:
        return VPMU_EVENT_LLC_REFERENCES;
    case 0x412E:
        return VPMU_EVENT_LLC_MISSES;
    case 0x00C4:
        return VPMU_EVENT_BRANCHES;
    case 0x00C5:
        return VPMU_EVENT_BRANCH_MISSES;
    case 0x01A4:
        return VPMU_EVENT_SLOTS;
    case 0x01C4:
    case 0x11C4:
        return VPMU_EVENT_COND_BRANCHES;
    case 0x02C4:
        return VPMU_EVENT_NEAR_CALLS;
    case 0x08C4:
        return VPMU_EVENT_NEAR_RETURNS;
    case 0x40C4:
        return VPMU_EVENT_FAR_BRANCHES;
    case 0x01CB:
        return VPMU_EVENT_INTERRUPTS;
    default:
        return VPMU_EVENT_NONE;
    }
}

/* Events that an instruction causes; the others come on their own. */
static bool is_instructions_own(enum vpmu_event event)
{
    switch (event) {
    case VPMU_EVENT_INSTRUCTIONS:
    case VPMU_EVENT_CYCLES:
    case VPMU_EVENT_BRANCHES:
    case VPMU_EVENT_COND_BRANCHES:
    case VPMU_EVENT_NEAR_CALLS:
    case VPMU_EVENT_NEAR_RETURNS:
    case VPMU_EVENT_FAR_BRANCHES:
    case VPMU_EVENT_BRANCH_MISSES:
        return true;
    default:
        return false;
    }
}

static bool naive_has(const struct naive *n, enum vpmu_event event)
{
    return event != VPMU_EVENT_NONE && (n->config.events >> event & 1);
}

static enum verdict naive_verdict(const struct naive *n, unsigned i)
{
    enum vpmu_event event = naive_event(n, i);
    bool always = event == VPMU_EVENT_INSTRUCTIONS || event == VPMU_EVENT_CYCLES;
    uint64_t select = i < n->config.gp ? n->state.gp_select[i] : 0;
    unsigned cmask = (unsigned)(select >> 24 & 0xFF);
    bool invert = select >> 23 & 1, edge = select >> 18 & 1;

    if (!naive_has(n, event) || edge || (cmask && !is_instructions_own(event))) {
        return UNSUPPORTED;
    }
    if (cmask && invert) {
        if (cmask == 1) {
            return always ? NEVER_COUNTS : UNSUPPORTED;
        }
        return naive_has(n, VPMU_EVENT_CYCLES) ? COUNTS : UNSUPPORTED;
    }
    return cmask > 1 ? NEVER_COUNTS : COUNTS;
}

/* Bit 0: counts at privilege level 0; bit 1: above. */
static unsigned naive_rings(const struct naive *n, unsigned i)
{
    if (i >= n->config.gp) {
        return naive_fixed_field(n, i) & 3;
    }
    if (!(n->state.gp_select[i] >> 22 & 1)) {
        return 0;
    }
    return (unsigned)(n->state.gp_select[i] >> 17 & 1) | (unsigned)(n->state.gp_select[i] >> 16 & 1)
                                                             << 1;
}

/* A bit for each class: 0 kernel, 1 user, 2 and 3 the same of a nested guest. */
static unsigned naive_classes(const struct naive *n, unsigned i)
{
    unsigned rings;

    if (is_amd(n) && i == n->config.gp) {
        return n->state.fixed_control >> 30 & 1 ? 0xF : 0;
    }
    rings = naive_rings(n, i) | naive_rings(n, i) << 2;
    if (is_amd(n)) {
        switch (n->state.gp_select[i] >> 40 & 3) {
        case 1:
            return n->svme ? rings & 0xC : 0;
        case 2:
            return n->svme ? rings & 0x3 : 0;
        case 3:
            return n->svme ? rings : 0;
        default:
            break;
        }
    }
    return rings;
}

static bool naive_enabled(const struct naive *n, unsigned i)
{
    if (!naive_classes(n, i)) {
        return false;
    }
    if (is_amd(n) && i == n->config.gp) {
        return true;
    }
    return !has_global(n) || ((n->state.global_control >> status_bit(n, i) & 1) &&
                              !(n->state.global_status >> 59 & 1));
}

static bool naive_interrupts(const struct naive *n, unsigned i)
{
    return i < n->config.gp ? n->state.gp_select[i] >> 20 & 1 : naive_fixed_field(n, i) >> 3;
}

static void naive_increment(struct naive *n, unsigned i)
{
    uint64_t *value = naive_value(n, i);

    if (++*value == top_of(n, i)) {
        *value = 0;
        n->pending |= 1u << i;
        n->pending_interrupt |= naive_interrupts(n, i);
    }
}

static bool naive_counts_in(const struct naive *n, unsigned i, unsigned class)
{
    return naive_enabled(n, i) && (naive_classes(n, i) >> class & 1) &&
           naive_verdict(n, i) == COUNTS;
}

/* One instruction, one cycle, in which each event of `events` happens once. */
static void naive_instruction(struct naive *n, unsigned class, uint32_t events)
{
    for (unsigned i = 0; i < counters_of(n); i++) {
        unsigned happened = events >> naive_event(n, i) & 1;
        uint64_t select = i < n->config.gp ? n->state.gp_select[i] : 0;
        unsigned cmask = (unsigned)(select >> 24 & 0xFF);

        if (cmask) {
            happened = select >> 23 & 1 ? happened < cmask : happened >= cmask;
        }
        if (happened && naive_counts_in(n, i, class)) {
            naive_increment(n, i);
        }
    }
}

/* An event that no instruction causes. */
static void naive_other(struct naive *n, unsigned class, enum vpmu_event event)
{
    for (unsigned i = 0; i < counters_of(n); i++) {
        if (naive_event(n, i) == event && naive_counts_in(n, i, class)) {
            naive_increment(n, i);
        }
    }
}

/* Somebody looks: overflows take effect. */
static void naive_look(struct naive *n)
{
    if (!n->pending) {
        return;
    }
    for (unsigned i = 0; i < counters_of(n) && has_global(n); i++) {
        if ((i < n->config.gp || !is_amd(n)) && n->pending >> i & 1) {
            n->state.global_status |= (uint64_t)1 << status_bit(n, i);
        }
    }
    if (n->pending_interrupt) {
        n->pmis++;
        if (n->state.debug_control >> 12 & 1) {
            if (n->config.version < 4) {
                n->state.global_control = 0;
            } else {
                n->state.global_status |= (uint64_t)1 << 59;
            }
        }
    }
    n->pending = 0;
    n->pending_interrupt = false;
}

static bool naive_any_thread(const struct naive *n)
{
    return n->config.version == 3 || n->config.version == 4;
}

static uint64_t naive_all_counters(const struct naive *n)
{
    uint64_t mask = 0;

    for (unsigned i = 0; i < counters_of(n); i++) {
        mask |= (uint64_t)1 << status_bit(n, i);
    }
    return mask;
}

static bool naive_control_legal(const struct naive *n, uint64_t value)
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned field = (unsigned)(value >> 4 * i) % 16;

        if (i >= n->config.fixed ? field : (field & 4) && !naive_any_thread(n)) {
            return false;
        }
    }
    return true;
}

static bool naive_select_legal(const struct naive *n, uint64_t value)
{
    return value <= UINT32_MAX && !(value >> 21 & 1 && !naive_any_thread(n));
}

static bool naive_status_legal(const struct naive *n, uint64_t value)
{
    uint64_t rest = value & ~naive_all_counters(n);

    return n->config.version >= 4 ? !(rest & ~((uint64_t)0x1B << 58)) : !rest;
}

static void naive_access(uint64_t *slot, uint64_t mask, const uint64_t *write, uint64_t *read)
{
    if (write) {
        *slot = *write & mask;
    }
    *read = *slot;
}

/* A pair of AMD's: PERF_CTL, or its counter. */
static void naive_amd_pair(struct naive *n, unsigned i, bool counter, const uint64_t *write,
                           uint64_t *read)
{
    if (counter) {
        naive_access(&n->state.gp_value[i], 0xFFFFFFFFFFFF, write, read);
    } else {
        naive_access(&n->state.gp_select[i], 0x30FFFD7FFFF, write, read);
    }
}

static enum vpmu_result naive_amd_msr(struct naive *n, uint32_t index, const uint64_t *write,
                                      uint64_t *read)
{
    uint64_t value = write ? *write : 0, all = ((uint64_t)1 << n->config.gp) - 1;

    if (index >= 0xC0010000 && index <= 0xC0010007) {
        naive_amd_pair(n, index & 3, index & 4, write, read);
        return VPMU_OK;
    }
    if (index >= 0xC0010200 && index <= 0xC001020F) {
        if (n->config.version < 1 || index % 16 / 2 >= n->config.gp) {
            return VPMU_FAULT;
        }
        naive_amd_pair(n, index % 16 / 2, index & 1, write, read);
        return VPMU_OK;
    }
    if (index >= 0xC0000300 && index <= 0xC0000303 && n->config.version < 2) {
        return VPMU_FAULT;
    }
    switch (index) {
    case 0xC0000300:
        *read = n->state.global_status;
        return VPMU_OK;
    case 0xC0000301:
        naive_access(&n->state.global_control, all, write, read);
        return VPMU_OK;
    case 0xC0000302:
        n->state.global_status &= ~value;
        *read = 0;
        return VPMU_OK;
    case 0xC0000303:
        n->state.global_status |= value & all;
        *read = 0;
        return VPMU_OK;
    case 0xC0010015:
        naive_access(&n->state.fixed_control, n->config.fixed ? 0x40000000 : 0, write, read);
        return VPMU_OK;
    case 0xC00000E9:
        naive_access(&n->state.fixed_value[0], 0xFFFFFFFFFFFF, write, read);
        return n->config.fixed ? VPMU_OK : VPMU_FAULT;
    default:
        return VPMU_NOT_MINE;
    }
}

/* RDMSR and WRMSR of one register; `write` NULL for a read. After VPMU_FAULT the caller takes `n`
 * back to what it was. */
static enum vpmu_result naive_msr(struct naive *n, uint32_t index, const uint64_t *write,
                                  uint64_t *read)
{
    const struct vpmu_config *c = &n->config;
    uint64_t value = write ? *write : 0;
    bool global = (index >= 0x38D && index <= 0x392);

    if (is_amd(n)) {
        return naive_amd_msr(n, index, write, read);
    }
    if (global && (c->version < 2 || (index >= 0x391 && c->version < 4))) {
        return VPMU_FAULT;
    }
    if ((index >= 0xC1 && index <= 0xC8) || (index >= 0x4C1 && index <= 0x4C8)) {
        bool full = index >= 0x4C1;
        unsigned i = (index & 0xFF) - 0xC1;

        if (i >= c->gp || (full && !c->full_width)) {
            return VPMU_FAULT;
        }
        if (write && full && value >= top_of(n, 0)) {
            return VPMU_FAULT;
        }
        if (write) {
            n->state.gp_value[i] =
                (full ? value : (uint64_t)(int64_t)(int32_t)value) % top_of(n, 0);
        }
        *read = n->state.gp_value[i];
        return VPMU_OK;
    }
    if (index >= 0x186 && index <= 0x18D) {
        if (index - 0x186 >= c->gp || (write && !naive_select_legal(n, value))) {
            return VPMU_FAULT;
        }
        if (write) {
            n->state.gp_select[index - 0x186] = value;
        }
        *read = n->state.gp_select[index - 0x186];
        return VPMU_OK;
    }
    if (index >= 0x309 && index <= 0x30C) {
        if (index - 0x309 >= c->fixed) {
            return VPMU_FAULT;
        }
        if (write) {
            n->state.fixed_value[index - 0x309] = value % ((uint64_t)1 << c->fixed_width);
        }
        *read = n->state.fixed_value[index - 0x309];
        return VPMU_OK;
    }
    switch (index) {
    case 0x1D9:
        if (write && value & ~(uint64_t)(c->version >= 2 ? 0x1803 : 3)) {
            return VPMU_FAULT;
        }
        if (write) {
            n->state.debug_control = value & 0x1000;
        }
        *read = n->state.debug_control;
        return VPMU_OK;
    case 0x345:
        *read = c->full_width ? 0x2000 : 0;
        return write ? VPMU_FAULT : VPMU_OK;
    case 0x38D:
        if (write && !naive_control_legal(n, value)) {
            return VPMU_FAULT;
        }
        if (write) {
            n->state.fixed_control = value;
        }
        *read = n->state.fixed_control;
        return VPMU_OK;
    case 0x38E:
        *read = n->state.global_status;
        return write ? VPMU_FAULT : VPMU_OK;
    case 0x38F:
        if (value & ~naive_all_counters(n)) {
            return VPMU_FAULT;
        }
        if (write) {
            n->state.global_control = value;
        }
        *read = n->state.global_control;
        return VPMU_OK;
    case 0x390: {
        uint64_t legal = naive_all_counters(n) | (uint64_t)3 << 62;

        legal |= c->version >= 3 ? (uint64_t)1 << 61 : 0;
        legal |= c->version >= 4 ? (uint64_t)3 << 58 : 0;
        if (value & ~legal) {
            return VPMU_FAULT;
        }
        n->state.global_status &= ~value;
        *read = 0;
        return VPMU_OK;
    }
    case 0x391:
        if (!naive_status_legal(n, value)) {
            return VPMU_FAULT;
        }
        n->state.global_status |= value;
        *read = 0;
        return VPMU_OK;
    case 0x392:
        *read = 0;
        for (unsigned i = 0; i < counters_of(n); i++) {
            bool used = i < c->gp ? n->state.gp_select[i] % 256 != 0 : naive_rings(n, i) != 0;

            *read |= (uint64_t)used << status_bit(n, i);
            *read |= (uint64_t)naive_interrupts(n, i) << 63;
        }
        return write ? VPMU_FAULT : VPMU_OK;
    default:
        return VPMU_NOT_MINE;
    }
}

static bool naive_amd_load_legal(const struct naive *n, const struct vpmu_state *s)
{
    const struct vpmu_config *c = &n->config;
    uint64_t global = c->version >= 2 ? ((uint64_t)1 << c->gp) - 1 : 0;

    for (unsigned i = 0; i < VPMU_GP_MAX; i++) {
        if (i < c->gp ? s->gp_value[i] >> 48 || s->gp_select[i] & ~(uint64_t)0x30FFFD7FFFF
                      : s->gp_value[i] || s->gp_select[i]) {
            return false;
        }
    }
    return !(s->fixed_value[0] >> (c->fixed ? 48 : 0)) && !s->fixed_value[1] &&
           !s->fixed_value[2] && !s->fixed_value[3] &&
           (s->fixed_control == 0 || (c->fixed && s->fixed_control == 0x40000000)) &&
           !(s->global_control & ~global) && !(s->global_status & ~global) && !s->debug_control;
}

static bool naive_load_legal(const struct naive *n, const struct vpmu_state *s)
{
    const struct vpmu_config *c = &n->config;

    if (is_amd(n)) {
        return naive_amd_load_legal(n, s);
    }
    for (unsigned i = 0; i < VPMU_GP_MAX; i++) {
        if (i < c->gp ? s->gp_value[i] >= top_of(n, 0) || !naive_select_legal(n, s->gp_select[i])
                      : s->gp_value[i] || s->gp_select[i]) {
            return false;
        }
    }
    for (unsigned i = 0; i < VPMU_FIXED_MAX; i++) {
        if (s->fixed_value[i] >> (i < c->fixed ? c->fixed_width : 0)) {
            return false;
        }
    }
    if (c->version == 1) {
        return !s->fixed_control && !s->global_control && !s->global_status && !s->debug_control;
    }
    return naive_control_legal(n, s->fixed_control) && naive_status_legal(n, s->global_status) &&
           !(s->global_control & ~naive_all_counters(n)) &&
           (s->debug_control == 0 || s->debug_control == 0x1000);
}

static bool naive_amd_config_legal(const struct vpmu_config *c)
{
    static const uint8_t fewest[] = {4, 6, 6}, most[] = {4, 6, 8};

    return c->version < 3 && c->gp >= fewest[c->version] && c->gp <= most[c->version] &&
           c->gp_width == 48 && !(c->events >> VPMU_EVENTS) && !(c->events & 1) &&
           (c->fixed == 0 ||
            (c->fixed == 1 && c->fixed_width == 48 && c->events >> VPMU_EVENT_INSTRUCTIONS & 1));
}

static bool naive_config_legal(const struct vpmu_config *c)
{
    static const enum vpmu_event needed[] = {VPMU_EVENT_INSTRUCTIONS, VPMU_EVENT_CYCLES,
                                             VPMU_EVENT_REF_CYCLES, VPMU_EVENT_SLOTS};

    if (c->vendor == VPMU_VENDOR_AMD) {
        return naive_amd_config_legal(c);
    }
    if (c->vendor != 0 || c->version == 0 || c->version > 5 || c->gp == 0 || c->gp > 8 ||
        c->fixed > 4 || (c->version == 1 && c->fixed) || c->gp_width < 32 || c->gp_width > 48 ||
        (c->fixed && (c->fixed_width < 32 || c->fixed_width > 48)) || c->events >> VPMU_EVENTS ||
        c->events & 1) {
        return false;
    }
    for (unsigned i = 0; i < c->fixed; i++) {
        if (!(c->events >> needed[i] & 1)) {
            return false;
        }
    }
    return true;
}

static void naive_reset(struct naive *n)
{
    *n = (struct naive){.config = n->config, .pmis = n->pmis};
    n->state.global_control = has_global(n) ? ((uint64_t)1 << n->config.gp) - 1 : 0;
}

/* Both machines. */

struct machine {
    struct vpmu pmu;
    struct naive naive;
    uint64_t totals[VPMU_EVENTS][VPMU_CLASSES];
    struct vpmu_demand demand[VPMU_COUNTERS_MAX];
    unsigned demands;
    unsigned pmis;
    bool late; /* the source does not keep to the deadlines */
};

static uint64_t total(void *source, enum vpmu_event event, unsigned classes)
{
    struct machine *m = source;
    uint64_t sum = 0;

    CHECK(naive_has(&m->naive, event) && classes && classes < 16);
    for (unsigned c = 0; c < VPMU_CLASSES; c++) {
        sum += classes >> c & 1 ? m->totals[event][c] : 0;
    }
    return sum;
}

static void take_demand(void *source, const struct vpmu_demand *rows, unsigned count)
{
    struct machine *m = source;

    CHECK(count <= VPMU_COUNTERS_MAX);
    for (unsigned i = 0; i < count; i++) {
        CHECK(naive_has(&m->naive, rows[i].event) && rows[i].classes && rows[i].distance);
        m->demand[i] = rows[i];
    }
    m->demands = count;
}

static void pmi(void *source)
{
    ((struct machine *)source)->pmis++;
}

static const struct vpmu_source_ops ops = {total, take_demand, pmi, NULL};

/* Let an event happen; returns whether a deadline is reached. */
static bool happen(struct machine *m, enum vpmu_event event, unsigned class)
{
    bool reached = false;

    m->totals[event][class]++;
    for (unsigned i = 0; i < m->demands; i++) {
        struct vpmu_demand *row = &m->demand[i];

        if (row->event == event && row->classes >> class & 1) {
            reached |= --row->distance == 0;
        }
    }
    return reached;
}

static void sync(struct machine *m)
{
    vpmu_sync(&m->pmu);
    naive_look(&m->naive);
}

/* An instruction causes itself, its cycle, and what the input says. */
static void instruction(struct machine *m, unsigned class, uint32_t events)
{
    bool reached = false;

    events |= VPMU_EVENT_BIT(VPMU_EVENT_INSTRUCTIONS) | VPMU_EVENT_BIT(VPMU_EVENT_CYCLES);
    for (unsigned event = 1; event < VPMU_EVENTS; event++) {
        if (!is_instructions_own(event)) {
            events &= ~VPMU_EVENT_BIT(event);
        } else if (events >> event & 1) {
            reached |= happen(m, event, class);
        }
    }
    naive_instruction(&m->naive, class, events);
    if (reached && !m->late) {
        sync(m);
    }
}

static void instructions(struct machine *m, struct input *in)
{
    unsigned class = byte(in) % VPMU_CLASSES, count = byte(in) % 16 + 1;
    uint32_t events = (uint32_t)bytes(in, 2);

    while (count--) {
        instruction(m, class, events);
    }
}

static void other_events(struct machine *m, struct input *in)
{
    unsigned class = byte(in) % VPMU_CLASSES, count = byte(in) % 64;
    enum vpmu_event event = byte(in) % VPMU_EVENTS;

    if (event == VPMU_EVENT_NONE || is_instructions_own(event)) {
        event = VPMU_EVENT_REF_CYCLES;
    }
    while (count--) {
        bool reached = happen(m, event, class);

        naive_other(&m->naive, class, event);
        if (reached && !m->late) {
            sync(m);
        }
    }
}

static uint32_t any_msr(const struct machine *m, struct input *in)
{
    static const struct {
        uint32_t first, count;
    } ranges[2][7] = {
        {{0xC0, 10}, {0x185, 10}, {0x1D8, 3}, {0x308, 6}, {0x344, 3}, {0x38C, 8}, {0x4C0, 10}},
        {{0xC000FFFF, 10},
         {0xC00101FF, 18},
         {0xC00002FF, 6},
         {0xC0010014, 3},
         {0xC00000E8, 3},
         {0xC0010000, 8},
         {0xC0010200, 16}}};
    unsigned choice = byte(in), which = byte(in), amd = is_amd(&m->naive);

    if (choice % 16 == 15) {
        return (uint32_t)bytes(in, 4);
    }
    return ranges[amd][choice % 7].first + which % ranges[amd][choice % 7].count;
}

static uint64_t any_amd_select(struct input *in)
{
    static const uint64_t codes[] = {0x2C, 0x76, 0xC0, 0xC2, 0xC3, 0xC8, 0xD1, 0x100000120};
    unsigned choice = byte(in);

    return codes[choice % 8] | (uint64_t)(choice >> 3 & 3) << 40 | bytes(in, 2) << 16;
}

static uint64_t any_select(const struct machine *m, struct input *in)
{
    static const uint16_t codes[] = {0x003C, 0x00C0, 0x013C, 0x4F2E, 0x412E, 0x00C4, 0x00C5,
                                     0x01A4, 0x01C4, 0x11C4, 0x02C4, 0x08C4, 0x40C4, 0x01CB};
    uint64_t code;

    if (is_amd(&m->naive)) {
        return any_amd_select(in);
    }
    code = codes[byte(in) % (sizeof(codes) / sizeof(codes[0]))];
    return code | bytes(in, 2) << 16;
}

static uint64_t any_value(const struct machine *m, struct input *in)
{
    switch (byte(in) % 6) {
    case 0:
        return any_select(m, in);
    case 1:
        return (uint64_t)0 - byte(in); /* soon to overflow */
    case 2:
        return (uint64_t)1 << byte(in) % 64;
    case 3:
        return bytes(in, 2) << 32 | byte(in); /* as global registers have them */
    case 4:
        return bytes(in, 2);
    default:
        return bytes(in, 8);
    }
}

static void access(struct machine *m, uint32_t index, const uint64_t *write)
{
    struct naive before = m->naive;
    uint64_t value = 0, expected = 0;
    enum vpmu_result result, wanted;

    naive_look(&m->naive);
    wanted = naive_msr(&m->naive, index, write, &expected);
    result = write ? vpmu_wrmsr(&m->pmu, index, *write) : vpmu_rdmsr(&m->pmu, index, &value);
    CHECK(result == wanted);
    if (wanted != VPMU_OK) {
        m->naive = before; /* nobody looked */
    } else if (!write) {
        CHECK(value == expected);
    }
}

static void set_svme(struct machine *m, bool svme)
{
    vpmu_set_svme(&m->pmu, svme);
    naive_look(&m->naive);
    m->naive.svme = svme;
}

/* A counter set up as software does it, soon to overflow. */
static void amd_program(struct machine *m, struct input *in)
{
    const struct vpmu_config *c = &m->naive.config;
    unsigned i = byte(in) % counters_of(&m->naive), flags = byte(in), bits = byte(in);
    uint64_t value = (uint64_t)0 - byte(in) % 8, all = UINT64_MAX;
    bool ext = c->version >= 1 && (i >= 4 || bits & 1);

    if (i == c->gp) {
        access(m, 0xC00000E9, &value);
        access(m, 0xC0010015, &all);
    } else {
        uint64_t select = (any_amd_select(in) & 0x30F0000FFFF) | 1u << 22;

        select |= (uint64_t)(flags & 3) << 16 | (uint64_t)(flags >> 2 & 1) << 20;
        select |= bits & 2 ? (uint64_t)(bits >> 2 & 1) << 23 | (uint64_t)(bits >> 4 & 3) << 24 : 0;
        access(m, ext ? 0xC0010201 + 2 * i : 0xC0010004 + i, &value);
        access(m, ext ? 0xC0010200 + 2 * i : 0xC0010000 + i, &select);
    }
    if (flags & 8) {
        set_svme(m, flags & 16);
    }
    if (flags & 0x80) {
        access(m, 0xC0000302, &all);
        access(m, 0xC0000301, &all);
    }
}

static void program(struct machine *m, struct input *in)
{
    const struct vpmu_config *c = &m->naive.config;
    unsigned i = byte(in) % counters_of(&m->naive), flags = byte(in);
    uint64_t value = (uint64_t)0 - byte(in) % 8;
    uint64_t all = naive_all_counters(&m->naive);

    if (i < c->gp) {
        uint64_t select = (any_select(m, in) & 0xFFFF) | (uint64_t)(flags & 7) << 16 | 1u << 22;

        select |= (uint64_t)(flags >> 3 & 1) << 20 | (uint64_t)(flags >> 4 & 1) << 23;
        select |= flags & 0x20 ? (uint64_t)(flags >> 6) << 24 : 0;
        select &= flags % 4 == 3 ? ~((uint64_t)1 << 18) : UINT64_MAX; /* edges count nothing */
        access(m, 0xC1 + i, &value);
        access(m, 0x186 + i, &select);
    } else {
        unsigned shift = 4 * (i - c->gp);
        uint64_t control = m->naive.state.fixed_control & ~((uint64_t)0xF << shift);

        control |= (uint64_t)(flags & 0xB) << shift;
        access(m, 0x309 + i - c->gp, &value);
        access(m, 0x38D, &control);
    }
    if (flags & 0x80) {
        access(m, 0x390, &all);
        access(m, 0x38F, &all);
    }
}

static void rdpmc(struct machine *m, struct input *in)
{
    unsigned low = byte(in), high = byte(in);
    uint32_t selector =
        high == 255 ? UINT32_MAX - low : low % 16 | (high < 200 ? high % 2 << 30 : high << 24);
    unsigned type = selector >> 16, index = selector & 0xFFFF;
    bool fixed = type == 0x4000 && index < m->naive.config.fixed && !is_amd(&m->naive);
    uint64_t value;

    if (type == 0 && index < m->naive.config.gp) {
        CHECK(vpmu_rdpmc(&m->pmu, selector, &value) == VPMU_OK);
        naive_look(&m->naive);
        CHECK(value == m->naive.state.gp_value[index]);
    } else if (fixed) {
        CHECK(vpmu_rdpmc(&m->pmu, selector, &value) == VPMU_OK);
        naive_look(&m->naive);
        CHECK(value == m->naive.state.fixed_value[index]);
    } else {
        CHECK(vpmu_rdpmc(&m->pmu, selector, &value) == VPMU_FAULT);
    }
}

/* Into another machine, with other totals. */
static void migrate(struct machine *m, struct input *in)
{
    struct vpmu_state state;

    vpmu_save(&m->pmu, &state);
    naive_look(&m->naive);
    CHECK(memcmp(&state, &m->naive.state, sizeof(state)) == 0);
    for (unsigned event = 1; event < VPMU_EVENTS; event++) {
        for (unsigned c = 0; c < VPMU_CLASSES; c++) {
            m->totals[event][c] += (uint64_t)0 - byte(in);
        }
    }
    vpmu_init(&m->pmu, &m->naive.config, &ops, m);
    CHECK(vpmu_load(&m->pmu, &state) == NULL);
    vpmu_set_svme(&m->pmu, m->naive.svme);
}

/* A state that may be wrong in one word. */
static void load_changed(struct machine *m, struct input *in)
{
    struct vpmu_state state;
    size_t word = byte(in) % (sizeof(state) / 8);
    uint64_t value = any_value(m, in);
    bool legal;

    vpmu_save(&m->pmu, &state);
    naive_look(&m->naive);
    memcpy((char *)&state + 8 * word, &value, 8);
    legal = naive_load_legal(&m->naive, &state);
    CHECK((vpmu_load(&m->pmu, &state) == NULL) == legal);
    if (legal) {
        m->naive.state = state;
    }
}

static void reset(struct machine *m)
{
    vpmu_reset(&m->pmu);
    naive_reset(&m->naive);
}

static void check_info(struct machine *m)
{
    struct naive *n = &m->naive;

    CHECK(vpmu_counters(&m->pmu) == counters_of(n));
    for (unsigned i = 0; i < counters_of(n); i++) {
        struct vpmu_counter_info info;
        enum verdict verdict;

        vpmu_counter_info(&m->pmu, i, &info);
        naive_look(n);
        verdict = naive_verdict(n, i);
        CHECK(info.value == *naive_value(n, i));
        CHECK(info.enabled == naive_enabled(n, i));
        CHECK(info.interrupt == naive_interrupts(n, i));
        CHECK(info.overflowed == (n->state.global_status >> status_bit(n, i) & 1));
        CHECK((info.event == VPMU_EVENT_NONE) == (verdict != COUNTS));
        CHECK((info.state == VPMU_COUNTER_UNSUPPORTED) ==
              (verdict == UNSUPPORTED && naive_classes(n, i) != 0));
        CHECK(!info.enabled || info.classes == naive_classes(n, i));
        CHECK((info.rdpmc_selector == VPMU_NO_SELECTOR) == (info.fixed && is_amd(n)));
        CHECK((info.state == VPMU_COUNTER_BACKED) ==
              (verdict != UNSUPPORTED && naive_enabled(n, i)));
    }
}

/* The source knows how far each counter that counts is from its overflow. */
static void check_demand(const struct machine *m)
{
    struct naive n = m->naive;
    unsigned row = 0;

    for (unsigned i = 0; i < counters_of(&n); i++) {
        if (naive_enabled(&n, i) && naive_verdict(&n, i) == COUNTS) {
            CHECK(row < m->demands);
            CHECK(m->demand[row].classes == naive_classes(&n, i));
            CHECK(m->demand[row].distance == top_of(&n, i) - *naive_value(&n, i));
            row++;
        }
    }
    CHECK(row == m->demands);
}

static void compare(struct machine *m)
{
    struct vpmu_state state;

    vpmu_save(&m->pmu, &state);
    naive_look(&m->naive);
    CHECK(memcmp(&state, &m->naive.state, sizeof(state)) == 0);
    CHECK(m->pmis == m->naive.pmis);
    check_demand(m);
}

static void toggle(struct machine *m, struct input *in)
{
    static const uint64_t freeze_on_pmi = 0x1000, unfreeze = (uint64_t)1 << 59;

    unsigned choice = byte(in) % 8;

    if (is_amd(&m->naive) && choice >= 2 && choice <= 5) {
        set_svme(m, choice < 4);
        return;
    }
    switch (choice) {
    case 0:
        reset(m);
        break;
    case 1:
        sync(m);
        m->late = true;
        break;
    case 2:
    case 3:
        access(m, 0x1D9, &freeze_on_pmi);
        break;
    case 4:
    case 5:
        access(m, 0x390, &unfreeze);
        break;
    default:
        sync(m);
        m->late = false;
    }
}

static void operate(struct machine *m, struct input *in)
{
    uint64_t value;
    uint32_t index;

    switch (byte(in) % 16) {
    case 0:
    case 1:
    case 2:
        instructions(m, in);
        break;
    case 3:
        other_events(m, in);
        break;
    case 4:
    case 5:
    case 6:
        is_amd(&m->naive) ? amd_program(m, in) : program(m, in);
        break;
    case 7:
    case 8:
        index = any_msr(m, in);
        value = any_value(m, in);
        access(m, index, &value);
        break;
    case 9:
        access(m, any_msr(m, in), NULL);
        break;
    case 10:
        rdpmc(m, in);
        break;
    case 11:
        sync(m);
        break;
    case 12:
        migrate(m, in);
        break;
    case 13:
        load_changed(m, in);
        break;
    case 14:
        check_info(m);
        break;
    default:
        toggle(m, in);
    }
    if (!m->late) {
        compare(m);
    }
}

/* What of the input's configuration is of no use to AMD's is made so. */
static void make_amd(struct vpmu_config *c)
{
    static const uint8_t fewest[] = {4, 6, 6}, choices[] = {1, 1, 3};

    c->vendor = VPMU_VENDOR_AMD;
    c->version %= 3;
    c->gp = fewest[c->version] + c->gp % choices[c->version];
    c->fixed %= 2;
    c->gp_width = c->fixed_width = 48;
}

/* Mostly a processor that can be; the last resort of the input makes one that cannot. */
static struct vpmu_config any_config(struct input *in)
{
    unsigned first = byte(in);
    struct vpmu_config c = {
        .version = (first & 0x7F) % 5 + 1,
        .gp = byte(in) % 8 + 1,
        .fixed = byte(in) % 5,
        .gp_width = byte(in) % 17 + 32,
        .fixed_width = byte(in) % 17 + 32,
        .events = (uint32_t)bytes(in, 2) & 0x3FFE,
    };
    unsigned odd = byte(in);

    c.full_width = odd & 1;
    if (first & 0x80) {
        make_amd(&c);
    }
    if (odd & 2) {
        c.events = 0x3FFE;
    }
    if (odd >> 2 == 63) {
        ((uint8_t *)&c)[byte(in) % offsetof(struct vpmu_config, full_width)] = byte(in);
    }
    if (odd >> 2 == 62) {
        c.events = (uint32_t)bytes(in, 4);
    }
    if (c.vendor == VPMU_VENDOR_INTEL && c.version == 1 && odd >> 2 < 62) {
        c.fixed = 0;
    }
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct machine m = {0};
    struct vpmu_config config = any_config(&in);

    CHECK((vpmu_config_error(&config) == NULL) == naive_config_legal(&config));
    if (!naive_config_legal(&config)) {
        return 0;
    }
    m.naive.config = config;
    naive_reset(&m.naive);
    vpmu_init(&m.pmu, &config, &ops, &m);
    compare(&m);
    while (in.size) {
        operate(&m, &in);
    }
    compare(&m);
    return 0;
}
