// SPDX-License-Identifier: BSD-3-Clause
/* Each check in each of its verdicts, over described machines. */
#include "hv/host/host_internal.h"

#include <criterion/criterion.h>
#include <string.h>

/* How the machine is looked at before the checks. */
enum how { UNMEASURED, SPARING, MEASURED };

#define MACHINE(vendor, version, gp, facts, rest)                                                  \
    "{\"vendor\":\"" vendor "\",\"kernel\":\"6.12\",\"core_types\":[{\"name\":\"cpu\","            \
    "\"version\":" version ",\"gp\":" gp "}],\"processors\":[{\"range\":\"0-3\"}],"                \
    "\"facts\":{" facts "}" rest "}"
#define AMD(facts, rest) MACHINE("AMD", "2", "6", facts, rest)
#define HOLDERS(list) ",\"holders\":[" list "]"
#define PIN                                                                                        \
    "{\"name\":\"pin\",\"pid\":812,\"events\":20,\"gp\":5,\"pinned\":true,\"processors\":\"0-1\"}"

#define OK VPMU_VERDICT_OK
#define WARNING VPMU_VERDICT_WARNING
#define FAILURE VPMU_VERDICT_FAILURE
#define UNKNOWN VPMU_VERDICT_UNKNOWN

static const struct {
    const char *check;
    const char *machine;
    enum how how;
    enum vpmu_verdict verdict;
    const char *says; /* in what is, or in how to mend it */
} rows[] = {
    {"counters", AMD("", ""), UNMEASURED, OK, "AMD PMU version 2: at least 6 counters"},
    {"counters", MACHINE("AMD", "0", "0", "", ""), UNMEASURED, FAILURE, "firmware"},
    {"counters", MACHINE("Intel", "0", "0", "\"virtualised\":true", ""), UNMEASURED, FAILURE,
     "is itself a guest"},
    {"counters", MACHINE("Intel", "5", "0", "\"perf\":false", ""), UNMEASURED, FAILURE,
     "no driver for them"},

    {"hybrid", AMD("\"hybrid\":false", ""), UNMEASURED, OK, "one kind"},
    {"hybrid", AMD("\"hybrid\":true", ""), UNMEASURED, FAILURE, "no guest a PMU"},
    {"hybrid", AMD("", ""), UNMEASURED, UNKNOWN, "not known"},

    {"kvm-pmu", AMD("\"kvm\":true,\"enable_pmu\":true", ""), UNMEASURED, OK, "enable_pmu=Y"},
    {"kvm-pmu",
     AMD("\"kvm\":true,\"enable_pmu\":false",
         ",\"vms\":[{\"pmu\":true},{\"pmu\":true},{\"pmu\":false}]"),
     UNMEASURED, FAILURE, "2 running VMs asked"},
    {"kvm-pmu", AMD("\"kvm\":true", ""), UNMEASURED, UNKNOWN, "cannot be read"},
    {"kvm-pmu", AMD("\"kvm\":false", ""), UNMEASURED, UNKNOWN, "modprobe kvm_amd"},
    {"kvm-pmu", AMD("", ""), UNMEASURED, UNKNOWN, "could not be seen"},

    {"watchdog", AMD("\"watchdog\":false", ""), UNMEASURED, OK, "off"},
    {"watchdog", AMD("\"watchdog\":true,\"watchdog_perf\":true", ""), UNMEASURED, WARNING,
     "the NMI watchdog has 1 of 6 counters"},
    {"watchdog", AMD("\"watchdog\":true", ""), UNMEASURED, WARNING, "most likely has 1 of 6"},
    {"watchdog", AMD("\"watchdog\":true,\"watchdog_perf\":true", ""), UNMEASURED, WARNING,
     "sysctl kernel.nmi_watchdog=0"},
    {"watchdog", AMD("\"watchdog\":true,\"watchdog_perf\":false", ""), UNMEASURED, OK, "buddy"},
    {"watchdog",
     "{\"vendor\":\"Intel\",\"core_types\":[{\"name\":\"cpu\",\"version\":5,\"gp\":8,\"fixed\":3}],"
     "\"processors\":[{\"range\":\"0\"}],\"facts\":{\"watchdog\":true}}",
     UNMEASURED, WARNING, "fixed counter 1"},
    {"watchdog", MACHINE("AMD", "0", "0", "\"watchdog\":true", ""), UNMEASURED, OK,
     "no counter for"},
    {"watchdog", AMD("", ""), UNMEASURED, UNKNOWN, "cannot be read"},

    {"holders", AMD("", ""), UNMEASURED, OK, "no process"},
    {"holders", AMD("\"processes\":40,\"unseen\":39", ""), UNMEASURED, UNKNOWN, "39 of 40"},
    {"holders", AMD("", HOLDERS(PIN)), UNMEASURED, WARNING, "pin (pid 812) has 20 perf events"},
    {"holders", AMD("", HOLDERS(PIN)), UNMEASURED, WARNING, "5 on each of its processors"},
    {"holders", AMD("", HOLDERS(PIN ",{\"name\":\"b\",\"events\":3},{\"name\":\"c\"}")), UNMEASURED,
     WARNING,
     "pin (pid 812) has 20 perf events open without a lease: 5 on each of its processors, "
     "and 2 others"},
    {"holders", AMD("", HOLDERS("{\"name\":\"perf\",\"pid\":9,\"events\":1}")), UNMEASURED, WARNING,
     "perf (pid 9) has 1 perf event open without a lease; how many counters"},
    {"holders", AMD("", HOLDERS("{\"name\":\"libvirtd\",\"events\":4,\"binding\":\"vcpu\"}")),
     UNMEASURED, OK, "no process"},

    {"left", AMD("", ""), UNMEASURED, UNKNOWN, "nothing has been measured"},
    {"left", AMD("", ""), SPARING, OK, "6 of 6 counters"},
    {"left", AMD("\"watchdog\":true", ""), SPARING, WARNING, "5 of 6 counters"},
    {"left", AMD("", HOLDERS(PIN)), SPARING, FAILURE,
     "1 of 6 counters are left for guests on processors 0-1: pin (pid 812) has 5"},
    {"left", AMD("", HOLDERS("{\"name\":\"perf\",\"pid\":9,\"events\":4}")), SPARING, UNKNOWN,
     "perf (pid 9) may count with unpinned events"},
    {"left", AMD("", HOLDERS("{\"name\":\"perf\",\"pid\":9,\"events\":4}")), SPARING, UNKNOWN,
     "--measure"},
    {"left", AMD("", HOLDERS("{\"name\":\"perf\",\"pid\":9,\"events\":4}")), MEASURED, OK,
     "6 of 6"},
    {"left", AMD("\"unseen\":2", ""), SPARING, UNKNOWN, "as root"},
    {"left", MACHINE("AMD", "0", "0", "", ""), SPARING, UNKNOWN, "no processor with counters"},
    {"left",
     "{\"core_types\":[{\"gp\":6}],\"processors\":[{\"range\":\"0\"},{\"range\":\"1\",\"left\":4}]"
     "}",
     SPARING, FAILURE, "4 of 6 counters are left for guests on processor 1: a holder that cannot"},

    {"domain-perf", AMD("\"domains\":true", ""), UNMEASURED, OK, "no running domain"},
    {"domain-perf", AMD("\"domains\":false", ""), UNMEASURED, OK, "no running domain"},
    {"domain-perf", AMD("", ""), UNMEASURED, UNKNOWN, "may not be read"},
    {"domain-perf",
     AMD("\"domains\":true",
         HOLDERS("{\"kind\":\"domain_perf\",\"name\":\"web1\",\"events\":2,\"gp\":2}")),
     UNMEASURED, WARNING, "domain web1: libvirt's <perf> counts 2 events"},

    {"apic", AMD("", ",\"vms\":[{\"apic\":true}]"), UNMEASURED, OK, "1 running VM,"},
    {"apic", AMD("", ",\"vms\":[{},{\"name\":\"web2\",\"pid\":31,\"apic\":false}]"), UNMEASURED,
     FAILURE, "web2 (pid 31) has kernel-irqchip=off"},
    {"apic", AMD("\"unseen\":1", ""), UNMEASURED, UNKNOWN, "1 process could"},

    {"legacy-msrs", AMD("\"kvm\":true,\"enable_pmu\":true,\"ignore_msrs\":false", ""), UNMEASURED,
     OK, "only guests without a PMU"},
    {"legacy-msrs", AMD("\"kvm\":true,\"enable_pmu\":false,\"ignore_msrs\":false", ""), UNMEASURED,
     WARNING, "drop what is written"},
    {"legacy-msrs", AMD("\"kvm\":true,\"enable_pmu\":true,\"ignore_msrs\":true", ""), UNMEASURED,
     WARNING, "ignore_msrs=Y"},
    {"legacy-msrs", AMD("\"kvm\":true,\"enable_pmu\":true", ""), UNMEASURED, UNKNOWN,
     "ignore_msrs"},
    {"legacy-msrs", AMD("\"kvm\":false", ""), UNMEASURED, UNKNOWN, "not loaded"},

    {"mediated", AMD("\"kvm\":true,\"mediated\":true", ""), UNMEASURED, OK, "on: "},
    {"mediated", AMD("\"kvm\":true,\"mediated\":false,\"mediated_asked\":false", ""), UNMEASURED,
     OK, "off: "},
    {"mediated",
     AMD("\"kvm\":true,\"mediated\":false,\"mediated_known\":true,\"mediated_asked\":true", ""),
     UNMEASURED, WARNING, "KVM has switched it off"},
    {"mediated", AMD("\"kvm\":true,\"mediated_known\":false,\"mediated_asked\":true", ""),
     UNMEASURED, WARNING, "does not have it"},
    {"mediated", AMD("\"kvm\":false", ""), UNMEASURED, UNKNOWN, "not loaded"},

    {"guest-events", AMD("\"mediated\":false,\"watchdog\":true", ""), UNMEASURED, OK,
     "no mediated"},
    {"guest-events", AMD("\"mediated\":true", ""), UNMEASURED, OK, "nobody"},
    {"guest-events", AMD("\"mediated\":true,\"watchdog\":true", ""), UNMEASURED, FAILURE,
     "NMI watchdog counts guests"},
    {"guest-events", AMD("\"mediated\":true,\"watchdog\":true,\"watchdog_perf\":false", ""),
     UNMEASURED, OK, "nobody"},
    {"guest-events",
     AMD("\"mediated\":true", HOLDERS("{\"name\":\"pin\",\"pid\":812,\"includes_guests\":true}")),
     UNMEASURED, FAILURE, "pin (pid 812) counts guests"},
    {"guest-events",
     AMD("\"mediated\":true", HOLDERS("{\"name\":\"pin\",\"pid\":812,\"includes_guests\":false}")),
     UNMEASURED, OK, "nobody"},
    {"guest-events", AMD("\"mediated\":true", HOLDERS(PIN)), UNMEASURED, WARNING,
     "pin (pid 812) has perf events; if they count guests"},

    {"rights", AMD("\"paranoid\":2", ""), UNMEASURED, OK, "CAP_PERFMON"},
    {"rights", AMD("\"paranoid\":0", ""), UNMEASURED, WARNING, "every user"},
    {"rights", AMD("\"paranoid\":-1", ""), UNMEASURED, WARNING, "perf_event_paranoid=-1"},
    {"rights", AMD("", ""), UNMEASURED, UNKNOWN, "cannot be read"},
};

static const struct vpmu_check *find_check(const char *id)
{
    for (const struct vpmu_check *check = vpmu_checks; check->id; check++)
        if (!strcmp(check->id, id))
            return check;
    cr_assert_fail("there is no check %s", id);
    return NULL;
}

static void look(const char *machine, enum how how, const struct vpmu_host_managed *managed,
                 const struct vpmu_check *check, struct vpmu_finding *finding)
{
    struct vpmu_host_error error = {""};
    struct vpmu_host_source *source = vpmu_host_described_text(machine, strlen(machine), &error);
    struct vpmu_host host;

    cr_assert_not_null(source, "%s: %s", machine, error.text);
    cr_assert_eq(vpmu_host_read(source, &host, &error), 0);
    if (how != UNMEASURED)
        cr_assert_eq(vpmu_host_measure(source, &host, NULL, 0, how == SPARING, managed, &error), 0);
    *finding = (struct vpmu_finding){.verdict = VPMU_VERDICT_OK};
    check->look(&host, managed, finding);
    vpmu_host_free(&host);
    vpmu_host_source_free(source);
}

Test(host_checks, table)
{
    for (size_t i = 0; i < HOST_ROWS(rows); i++) {
        struct vpmu_finding finding;

        look(rows[i].machine, rows[i].how, NULL, find_check(rows[i].check), &finding);
        cr_expect_eq(finding.verdict, rows[i].verdict, "%s, row %zu: %s: %s", rows[i].check, i,
                     vpmu_verdict_name(finding.verdict), finding.is);
        cr_expect(strstr(finding.is, rows[i].says) || strstr(finding.mend, rows[i].says),
                  "%s, row %zu: \"%s\" is neither in \"%s\" nor in \"%s\"", rows[i].check, i,
                  rows[i].says, finding.is, finding.mend);
        cr_expect(finding.is[0] && strlen(finding.is) < sizeof(finding.is) - 1);
        if (finding.verdict == WARNING || finding.verdict == FAILURE)
            cr_expect_neq(finding.mend[0], '\0', "%s: nothing to be done?", finding.is);
    }
}

/* Every check has a row above for each verdict that its text has; every one can be fine. */
Test(host_checks, all_are_tested)
{
    for (const struct vpmu_check *check = vpmu_checks; check->id; check++) {
        bool fine = false, not_fine = false;

        cr_expect_leq(strlen(check->title), 19);
        cr_expect_neq(!check->look, !check->elsewhere);
        if (!check->look)
            continue;
        for (size_t i = 0; i < HOST_ROWS(rows); i++) {
            if (strcmp(rows[i].check, check->id) != 0)
                continue;
            fine = fine || rows[i].verdict == OK;
            not_fine = not_fine || rows[i].verdict == WARNING || rows[i].verdict == FAILURE;
        }
        cr_expect(fine && not_fine, "%s", check->id);
    }
}

Test(host_checks, managed_holders_are_fine)
{
    const uint32_t pids[] = {812};
    const struct vpmu_amount taken[4] = {{.gp = 5}, {.gp = 5}};
    const struct vpmu_host_managed managed = {.pids = pids, .pid_count = 1, .taken = taken};
    struct vpmu_finding finding;

    look(AMD("", HOLDERS(PIN)), SPARING, &managed, find_check("holders"), &finding);
    cr_expect_eq(finding.verdict, OK, "%s", finding.is);
    look(AMD("", HOLDERS(PIN)), SPARING, &managed, find_check("left"), &finding);
    cr_expect_eq(finding.verdict, WARNING, "%s", finding.is);
    cr_expect_not_null(strstr(finding.is, "1 of 6"));
}
