/* SPDX-License-Identifier: BSD-3-Clause */
/* Register access, the same for every vendor: the rows of struct pmu tell the registers apart. */

#include "pmu.h"

#include "os.h"

void pmu_discover(struct pmu *pmu)
{
    uint32_t r[4];

    os_cpuid(0, 0, r);
    if (r[1] == 0x68747541 && r[3] == 0x69746e65 && r[2] == 0x444d4163) /* AuthenticAMD */
        pmu_discover_amd(pmu);
    else if (r[1] == 0x756e6547 && r[3] == 0x49656e69 && r[2] == 0x6c65746e) /* GenuineIntel */
        pmu_discover_intel(pmu);
}

/* The counter's own field of its control register, not shifted. */
static uint64_t control_field(uint32_t index, const struct pmu_program *program, bool enable)
{
    bool user = program->flags & VPMU_COUNT_USER;
    bool kernel = program->flags & VPMU_COUNT_KERNEL;

    if (pmu_is_fixed(index))
        return (enable && kernel ? PMU_FIXED_KERNEL : 0) | (enable && user ? PMU_FIXED_USER : 0) |
               (program->period ? PMU_FIXED_INTERRUPT : 0);
    return program->config | (user ? PMU_USER : 0) | (kernel ? PMU_KERNEL : 0) |
           (program->period ? PMU_INTERRUPT : 0) | (enable ? PMU_ENABLE : 0);
}

/* Other counters' fields of a shared register, to be kept as they are. */
static bool other_fields(const struct pmu_counter *counter, uint64_t *value)
{
    *value = 0;
    if (counter->control_mask == ~0ull)
        return true;
    if (!os_rdmsr(counter->control_msr, value))
        return false;
    *value &= ~counter->control_mask;
    return true;
}

static bool write_control(const struct pmu_counter *counter, uint64_t field)
{
    uint64_t flags = os_interrupts_off();
    uint64_t value;
    bool ok = other_fields(counter, &value) &&
              os_wrmsr(counter->control_msr, value | field << counter->control_shift);

    os_interrupts_restore(flags);
    return ok;
}

bool pmu_control(const struct pmu *pmu, uint32_t index, const struct pmu_program *program,
                 uint64_t *on, uint64_t *off)
{
    const struct pmu_counter *counter = &pmu->counter[index];
    uint64_t others;

    if (!other_fields(counter, &others))
        return false;
    *on = others | control_field(index, program, true) << counter->control_shift;
    *off = others | control_field(index, program, false) << counter->control_shift;
    return true;
}

static bool write_gate(const struct pmu *pmu, uint32_t index, bool open, bool *was)
{
    uint64_t flags, value, bit = 1ull << index;
    bool ok;

    *was = true;
    if (!pmu->global_ctrl)
        return true;
    flags = os_interrupts_off();
    ok = os_rdmsr(pmu->global_ctrl, &value);
    if (ok) {
        *was = value & bit;
        if (*was != open)
            ok = os_wrmsr(pmu->global_ctrl, open ? value | bit : value & ~bit);
    }
    os_interrupts_restore(flags);
    return ok;
}

bool pmu_open_gate(const struct pmu *pmu, uint32_t index, bool *was)
{
    return write_gate(pmu, index, true, was);
}

/* A legacy write to a counter takes 32 bits and extends their sign (SDM Vol. 3, "Full-Width Writes
 * to Performance Counter Registers"), which is why a period has 31. */
static bool write_value(const struct pmu_counter *counter, int64_t value)
{
    return os_wrmsr(counter->value_msr, (uint64_t)value & pmu_width_mask(counter->width));
}

bool pmu_program(const struct pmu *pmu, uint32_t index, const struct pmu_program *program)
{
    const struct pmu_counter *counter = &pmu->counter[index];

    return write_control(counter, control_field(index, program, false)) &&
           write_value(counter, -(int64_t)program->period);
}

bool pmu_start(const struct pmu *pmu, uint32_t index, const struct pmu_program *program)
{
    bool was;

    return pmu_open_gate(pmu, index, &was) &&
           write_control(&pmu->counter[index], control_field(index, program, true));
}

bool pmu_stop(const struct pmu *pmu, uint32_t index)
{
    return write_control(&pmu->counter[index], 0);
}

bool pmu_clear(const struct pmu *pmu, uint32_t index)
{
    const struct pmu_counter *counter = &pmu->counter[index];
    bool was;

    /* The general-purpose bits of GLOBAL_CTRL stay set, as reset leaves them: the kernel's own
     * profiling relies on that. */
    return write_control(counter, 0) && write_value(counter, 0) &&
           (!pmu_is_fixed(index) || write_gate(pmu, index, false, &was));
}

bool pmu_read(const struct pmu *pmu, uint32_t index, const struct pmu_program *program,
              uint64_t overflows, uint64_t *value)
{
    const struct pmu_counter *counter = &pmu->counter[index];
    uint64_t raw;

    if (!os_rdmsr(counter->value_msr, &raw))
        return false;
    /* Right too if the counter has overflowed and its interrupt is still to come. */
    *value =
        overflows * program->period + ((raw + program->period) & pmu_width_mask(counter->width));
    return true;
}

bool pmu_reload(const struct pmu *pmu, uint32_t index, uint64_t period, uint64_t *ended)
{
    const struct pmu_counter *counter = &pmu->counter[index];
    uint64_t late;

    *ended = 0;
    if (!os_rdmsr(counter->value_msr, &late))
        return false;
    if (late >> (counter->width - 1)) /* still before its overflow: not this one's */
        return true;
    *ended = late / period + 1;
    return write_value(counter, (int64_t)(late - *ended * period));
}
