// SPDX-License-Identifier: BSD-3-Clause
/* This machine as a directory of made-up files and a table of CPUID values. */
#include "hv/host/host_internal.h"
#include "tests/unit/host_cpuid.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The machine ---- */

static char root[64];

/* What the made-up machine was asked to do, and what it answers. */
static struct {
    struct cpuid_table cpuid;
    const struct cpuid_row
        *per_processor[8]; /* hybrid: rows of each processor; NULL: those above */
    uint32_t at;
    unsigned moves, returns;
    int left[8]; /* of each processor, or -errno */
} made;

static struct host_cpuid made_cpuid(void *context, uint32_t leaf, uint32_t subleaf)
{
    struct cpuid_table table = made.cpuid;

    if (made.per_processor[made.at])
        table.rows = made.per_processor[made.at];
    return cpuid_of_table(&table, leaf, subleaf);
}

static int made_go(void *context, uint32_t processor)
{
    made.at = processor;
    made.moves++;
    return processor < 8 ? 0 : -EINVAL;
}

static void made_back(void *context)
{
    made.at = 0;
    made.returns++;
}

static int made_place(void *context, uint32_t processor, const struct vpmu_host_core_type *type,
                      unsigned most)
{
    cr_expect_eq(made.at, processor, "on %u, for %u", made.at, processor);
    return made.left[processor] < (int)most ? made.left[processor] : (int)most;
}

static const struct host_machine machine = {
    .cpuid = made_cpuid, .go = made_go, .back = made_back, .place = made_place};

/* ---- Its files ---- */

static void make_parents(char *path)
{
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        cr_assert(!mkdir(path, 0755) || errno == EEXIST, "%s", path);
        *at = '/';
    }
}

static void file(const char *name, const char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    make_parents(path);
    FILE *to = fopen(path, "w");

    cr_assert_not_null(to, "%s", path);
    fputs(text, to);
    fclose(to);
}

static void words(const char *name, const char *text, size_t size)
{
    char path[PATH_MAX];

    file(name, "");
    snprintf(path, sizeof(path), "%s/%s", root, name);
    FILE *to = fopen(path, "w");

    cr_assert_not_null(to);
    cr_assert_eq(fwrite(text, 1, size, to), size);
    fclose(to);
}

static void links_to(const char *name, const char *target)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    make_parents(path);
    cr_assert(!symlink(target, path), "%s", path);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    return remove(path);
}

static const struct cpuid_row zen4[] = {
    {0x80000001, 0, {.ecx = 1u << 23}},
    {0x80000022, 0, {.eax = 1, .ebx = 6}},
    {1, 0, {0}},
    {7, 0, {0}},
};

static void setup(void)
{
    memset(&made, 0, sizeof(made));
    made.cpuid = (struct cpuid_table){"AuthenticAMD", zen4, HOST_ROWS(zen4)};
    for (size_t p = 0; p < 8; p++)
        made.left[p] = 6;
    snprintf(root, sizeof(root), "%s/vpmu-host-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir);
    cr_assert_not_null(mkdtemp(root));
    file("sys/devices/system/cpu/present", "0-3\n");
    file("sys/devices/system/cpu/online", "0-3\n");
    file("sys/bus/event_source/devices/cpu/type", "4\n");
    file("sys/bus/event_source/devices/power/type", "9\n");
    file("proc/sys/kernel/osrelease", "6.12.1-test\n");
    file("proc/sys/kernel/nmi_watchdog", "0\n");
    file("proc/sys/kernel/perf_event_paranoid", "2\n");
}

static void teardown(void)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(host_real, .init = setup, .fini = teardown);

static struct vpmu_host host;
static struct vpmu_host_source *source;

static void look(void)
{
    struct vpmu_host_error error;

    source = host_real_on(root, &machine);
    cr_assert_not_null(source);
    cr_assert_eq(vpmu_host_read(source, &host, &error), 0, "%s", error.text);
}

static void done(void)
{
    vpmu_host_free(&host);
    vpmu_host_source_free(source);
}

/* ---- Processors ---- */

Test(host_real, processors)
{
    file("sys/devices/system/cpu/online", "0-1,3\n");
    file("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1\n");
    file("sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "2-3\n");
    look();
    cr_expect_not(host.described);
    cr_expect_eq(host.vendor, VPMU_HOST_AMD);
    cr_expect_str_eq(host.kernel, "6.12.1-test");
    cr_assert_eq(host.processor_count, 4);
    for (uint32_t p = 0; p < 4; p++) {
        cr_expect_eq(host.processors[p].online, p != 2);
        cr_expect_eq(host.processors[p].capacity.gp, 6);
        cr_expect_eq(host.details[p].left, VPMU_HOST_UNKNOWN);
    }
    cr_expect_eq(host.details[1].sibling, 0);
    cr_expect_eq(host.details[2].sibling, 2);
    cr_expect_eq(host.details[3].sibling, 2);
    cr_expect_str_eq(host.core_types[host.details[0].core_type].pmu, "cpu");
    cr_expect_eq(made.moves, 0, "one kind of core: no need to move");
    done();
}

Test(host_real, hybrid)
{
    static const struct cpuid_row core[] = {{0xA, 0, {.eax = 5 | 8 << 8, .edx = 4}},
                                            {7, 0, {.edx = 1u << 15}}};
    static const struct cpuid_row atom[] = {{0xA, 0, {.eax = 5 | 6 << 8, .edx = 3}},
                                            {7, 0, {.edx = 1u << 15}}};

    made.cpuid = (struct cpuid_table){"GenuineIntel", core, 2};
    made.per_processor[2] = made.per_processor[3] = atom;
    file("sys/bus/event_source/devices/cpu_core/type", "4\n");
    file("sys/bus/event_source/devices/cpu_core/cpus", "0-1\n");
    file("sys/bus/event_source/devices/cpu_atom/type", "10\n");
    file("sys/bus/event_source/devices/cpu_atom/cpus", "2-3\n");
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/sys/bus/event_source/devices/cpu", root);
    cr_assert_eq(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    look();
    cr_expect_eq(host.facts.hybrid, VPMU_FACT_YES);
    cr_expect_eq(host.processors[0].capacity.gp, 8);
    cr_expect_eq(host.processors[0].capacity.fixed, 0xF);
    cr_expect_eq(host.processors[3].capacity.gp, 6);
    cr_expect_eq(host.processors[3].capacity.fixed, 7);
    cr_expect_eq(host.core_types[host.details[3].core_type].perf_type, 10);
    cr_expect_eq(made.moves, 2);
    cr_expect_eq(made.returns, 1);
    done();
}

Test(host_real, no_driver)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/sys/bus/event_source/devices/cpu", root);
    cr_assert_eq(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    look();
    cr_expect_eq(host.facts.perf, VPMU_FACT_NO);
    cr_expect_eq(host.processors[0].capacity.gp, 0);
    cr_expect_eq(host.core_types[0].version, 2, "what the processor has is still told");
    done();
}

Test(host_real, hostile_processors)
{
    static const char *const lists[] = {"", "x", "0-8192", "0-99999999999999999999", "3-0"};

    for (size_t i = 0; i < HOST_ROWS(lists); i++) {
        struct vpmu_host_error error = {""};

        file("sys/devices/system/cpu/present", lists[i]);
        source = host_real_on(root, &machine);
        cr_expect_eq(vpmu_host_read(source, &host, &error), -1, "\"%s\"", lists[i]);
        cr_expect_neq(error.text[0], '\0');
        cr_expect_eq(host.processor_count, 0);
        vpmu_host_source_free(source);
    }
}

Test(host_real, most_processors)
{
    file("sys/devices/system/cpu/present", "0-8191\n");
    file("sys/devices/system/cpu/online", "0-4095\n");
    look();
    cr_expect_eq(host.processor_count, 8192);
    cr_expect_not(host.processors[8191].online);
    cr_expect_eq(host.processors[8191].capacity.gp, 6);
    done();
}

/* ---- Facts ---- */

Test(host_real, facts)
{
    file("sys/module/kvm/parameters/enable_pmu", "N\n");
    file("sys/module/kvm/parameters/ignore_msrs", "Y\n");
    file("sys/module/kvm_amd/parameters/enable_mediated_pmu", "N\n");
    file("etc/modprobe.d/kvm.conf", "options kvm_amd enable_mediated_pmu=1\n");
    file("boot/config-6.12.1-test", "\nCONFIG_HARDLOCKUP_DETECTOR_BUDDY=y\n");
    look();
    cr_expect_eq(host.facts.kvm, VPMU_FACT_YES);
    cr_expect_eq(host.facts.enable_pmu, VPMU_FACT_NO);
    cr_expect_eq(host.facts.ignore_msrs, VPMU_FACT_YES);
    cr_expect_eq(host.facts.mediated, VPMU_FACT_NO);
    cr_expect_eq(host.facts.mediated_known, VPMU_FACT_YES);
    cr_expect_eq(host.facts.mediated_asked, VPMU_FACT_YES);
    cr_expect_eq(host.facts.watchdog, VPMU_FACT_NO);
    cr_expect_eq(host.facts.watchdog_perf, VPMU_FACT_NO);
    cr_expect_eq(host.facts.virtualised, VPMU_FACT_NO);
    cr_expect(host.facts.paranoid_known);
    cr_expect_eq(host.facts.paranoid, 2);
    done();
}

Test(host_real, nothing_is_unknown_not_no)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/proc", root);
    cr_assert_eq(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    look();
    cr_expect_eq(host.facts.kvm, VPMU_FACT_NO);
    cr_expect_eq(host.facts.enable_pmu, VPMU_FACT_UNKNOWN);
    cr_expect_eq(host.facts.mediated, VPMU_FACT_UNKNOWN);
    cr_expect_eq(host.facts.mediated_known, VPMU_FACT_UNKNOWN);
    cr_expect_eq(host.facts.watchdog, VPMU_FACT_UNKNOWN);
    cr_expect_eq(host.facts.watchdog_perf, VPMU_FACT_UNKNOWN);
    cr_expect_eq(host.facts.domains, VPMU_FACT_NO);
    cr_expect_eq(host.facts.unseen, VPMU_HOST_UNKNOWN);
    cr_expect_not(host.facts.paranoid_known);
    done();
}

/* ---- Holders ---- */

Test(host_real, watchdog)
{
    file("proc/sys/kernel/nmi_watchdog", "1\n");
    file("proc/sys/kernel/watchdog_cpumask", "0-2\n");
    file("boot/config-6.12.1-test", "\nCONFIG_HARDLOCKUP_DETECTOR_PERF=y\n");
    look();
    cr_assert_eq(host.holder_count, 1);
    cr_expect_eq(host.holders[0].kind, VPMU_HOST_WATCHDOG);
    cr_expect_eq(host.holders[0].basis, VPMU_HOST_CERTAIN);
    cr_expect_eq(host.holders[0].amount.gp, 1);
    cr_expect(host_holder_on(&host, &host.holders[0], 2));
    cr_expect_not(host_holder_on(&host, &host.holders[0], 3));
    done();
}

/* A process with a number of perf events. */
static void process(uint32_t pid, const char *name, uint32_t parent, unsigned events)
{
    char path[64], text[128];

    snprintf(path, sizeof(path), "proc/%u/stat", pid);
    snprintf(text, sizeof(text), "%u (%s) S %u 1 1", pid, name, parent);
    file(path, text);
    snprintf(path, sizeof(path), "proc/%u/fd/0", pid);
    links_to(path, "/dev/null");
    for (unsigned i = 0; i < events; i++) {
        snprintf(path, sizeof(path), "proc/%u/fd/%u", pid, 3 + i);
        links_to(path, "anon_inode:[perf_event]");
        snprintf(path, sizeof(path), "proc/%u/fdinfo/%u", pid, 3 + i);
        file(path, "pos:\t0\nflags:\t02\n");
    }
}

Test(host_real, processes)
{
    process(1, "init", 0, 0);
    process(700, "sh", 1, 0);
    process(812, "rezo\nlus", 700, 20);
    process(813, "perf", 1, 3);
    process(814, "libvirtd", 1, 4);
    process(815, "bpf", 1, 4);
    for (unsigned i = 3; i < 7; i++) {
        char path[64];

        snprintf(path, sizeof(path), "proc/815/fdinfo/%u", i);
        file(path, "perf_event_attr.type:\t1\n");
    }
    file("proc/self/fd/x", "");
    file("proc/999999999999/stat", "");
    look();
    cr_expect_eq(host.facts.processes, 6);
    cr_expect_eq(host.facts.unseen, 0);
    cr_assert_eq(host.holder_count, 3, "%u", host.holder_count);
    for (uint32_t i = 0; i < host.holder_count; i++) {
        const struct vpmu_host_holder *holder = &host.holders[i];

        cr_expect_eq(holder->pinned, VPMU_FACT_UNKNOWN);
        switch (holder->pid) {
        case 812: /* 20 events on 4 processors */
            cr_expect_str_eq(holder->name, "rezo?lus");
            cr_expect_eq(holder->ancestors[0], 700);
            cr_expect_eq(holder->ancestors[1], 1);
            cr_expect_eq(holder->ancestors[2], 0);
            cr_expect_eq(holder->basis, VPMU_HOST_ESTIMATED);
            cr_expect_eq(holder->amount.gp, 5);
            break;
        case 813: /* 3 events: of a task, or of some processors */
            cr_expect_eq(holder->basis, VPMU_HOST_NOT_KNOWN);
            cr_expect_eq(holder->amount.gp, 0);
            break;
        case 814:
            cr_expect_eq(holder->basis, VPMU_HOST_NOT_KNOWN);
            cr_expect_eq(holder->binding, VPMU_BOUND_VCPU);
            break;
        default:
            cr_expect_fail("pid %u", holder->pid);
        }
    }
    done();
}

Test(host_real, processes_in_a_circle)
{
    process(10, "a", 11, 4);
    process(11, "b", 10, 0);
    look();
    cr_assert_eq(host.holder_count, 1);
    cr_expect_eq(host.holders[0].ancestors[VPMU_HOST_ANCESTORS - 1], 10);
    done();
}

Test(host_real, virtual_machines)
{
    static const char web[] =
        "qemu\0-name\0guest=web1,debug-threads=on\0-cpu\0host,pmu=on\0-accel\0"
        "kvm,kernel-irqchip=off\0";

    process(900, "qemu-system-x86", 1, 0);
    links_to("proc/900/fd/9", "anon_inode:kvm-vm");
    words("proc/900/cmdline", web, sizeof(web) - 1);
    process(901, "kvmtool", 1, 0);
    links_to("proc/901/fd/9", "anon_inode:kvm-vm");
    look();
    cr_assert_eq(host.vm_count, 2);
    const struct vpmu_host_vm *first = &host.vms[host.vms[0].pid == 901];
    const struct vpmu_host_vm *second = &host.vms[host.vms[0].pid == 900];

    cr_expect_str_eq(first->name, "web1");
    cr_expect_eq(first->pmu, VPMU_FACT_YES);
    cr_expect_eq(first->apic, VPMU_FACT_NO);
    cr_expect_str_eq(second->name, "kvmtool");
    cr_expect_eq(second->pmu, VPMU_FACT_UNKNOWN);
    done();
}

Test(host_real, domains)
{
    file("run/libvirt/qemu/web1.xml",
         "<domstatus pid='900'><domain><name>web1</name>"
         "<uuid>00000000-0000-0000-0000-000000000001</uuid>"
         "<perf><event name='instructions' enabled='yes'/></perf></domain></domstatus>");
    file("run/libvirt/qemu/web2.xml", "<domstatus");
    file("run/libvirt/qemu/web1.pid", "900");
    look();
    cr_expect_eq(host.facts.domains, VPMU_FACT_YES);
    cr_assert_eq(host.holder_count, 1);
    const uint8_t uuid[16] = {[15] = 1}, other[16] = {[15] = 2};

    cr_expect_eq(vpmu_host_beside(&host, uuid).gp, 1);
    cr_expect_eq(vpmu_host_beside(&host, other).gp, 0);
    cr_expect_eq(vpmu_host_claims(&host, NULL, NULL, 0), 0, "it goes with its VM's claim");
    done();
}

Test(host_real, refresh)
{
    struct vpmu_host_error error;

    process(812, "agent", 1, 4);
    look();
    cr_assert_eq(host.holder_count, 1);
    process(813, "agent", 1, 8);
    file("proc/sys/kernel/nmi_watchdog", "1\n");
    cr_assert_eq(vpmu_host_refresh(source, &host, &error), 0);
    cr_expect_eq(host.holder_count, 3);
    cr_expect_eq(host.facts.watchdog, VPMU_FACT_YES);
    cr_expect_eq(host.processor_count, 4);
    done();
}

/* ---- Measuring ---- */

Test(host_real, refresh_follows_what_is_online)
{
    struct vpmu_host_error error;

    look();
    file("sys/devices/system/cpu/online", "0-1,3\n");
    cr_assert_eq(vpmu_host_refresh(source, &host, &error), 0);
    for (uint32_t p = 0; p < host.processor_count; p++)
        cr_expect_eq(host.processors[p].online, p != 2, "processor %u", p);
    file("sys/devices/system/cpu/online", "not a list\n");
    cr_assert_eq(vpmu_host_refresh(source, &host, &error), 0);
    cr_expect(!host.processors[2].online && host.processors[3].online, "it stays as it was");
    file("sys/devices/system/cpu/online", "0-3,8000\n");
    cr_assert_eq(vpmu_host_refresh(source, &host, &error), 0);
    cr_expect(host.processors[2].online, "one that is not in the snapshot changes nothing");
    done();
}

static int measure(bool spare, const struct vpmu_host_managed *managed)
{
    struct vpmu_host_error error;

    return vpmu_host_measure(source, &host, NULL, 0, spare, managed, &error);
}

Test(host_real, measured)
{
    process(812, "pin", 1, 20);
    made.left[0] = made.left[1] = 1;
    look();
    cr_assert_eq(measure(false, NULL), 0);
    cr_expect_str_empty(host.not_measured);
    cr_expect_eq(made.moves, 4);
    cr_expect_eq(made.returns, 1);
    cr_expect_eq(host.details[0].left, 1);
    cr_expect_eq(host.details[3].left, 6);
    struct vpmu_claim claims[4];

    cr_assert_eq(vpmu_host_claims(&host, NULL, claims, 4), 1);
    cr_expect_eq(claims[0].need.gp, 5);
    cr_expect_eq(claims[0].flags & VPMU_CLAIM_OBSERVED, VPMU_CLAIM_OBSERVED);
    cr_expect_str_eq(claims[0].name, "pin (pid 812)");
    cr_expect_eq(claims[0].processors[0], 3);
    /* A second measurement replaces the first. */
    made.left[0] = made.left[1] = 6;
    cr_assert_eq(measure(false, NULL), 0);
    cr_expect_eq(vpmu_host_claims(&host, NULL, claims, 4), 0);
    done();
}

Test(host_real, measured_beside_what_is_known)
{
    const struct vpmu_amount taken[4] = {{.gp = 2}, {.gp = 2}, {.gp = 2}, {.gp = 2}};
    const uint32_t pids[] = {700};
    const struct vpmu_host_managed managed = {.pids = pids, .pid_count = 1, .taken = taken};
    struct vpmu_claim claims[4];

    file("proc/sys/kernel/nmi_watchdog", "1\n");
    process(700, "vpmuctl", 1, 0);
    process(812, "perf", 700, 8);
    for (size_t p = 0; p < 4; p++)
        made.left[p] = 3; /* the watchdog has one, the lease two */
    look();
    cr_assert_eq(measure(false, &managed), 0);
    cr_assert_eq(vpmu_host_claims(&host, &managed, claims, 4), 1);
    cr_expect_str_eq(claims[0].name, "NMI watchdog");
    made.left[2] = 2;
    cr_assert_eq(measure(false, &managed), 0);
    cr_assert_eq(vpmu_host_claims(&host, &managed, claims, 4), 2);
    cr_expect_str_eq(claims[1].name, "a holder that cannot be seen");
    cr_expect_eq(claims[1].need.gp, 1);
    cr_expect_eq(claims[1].processors[0], 4);
    done();
}

Test(host_real, a_watchdog_that_takes_nothing)
{
    file("proc/sys/kernel/nmi_watchdog", "1\n");
    look();
    cr_expect_eq(vpmu_host_claims(&host, NULL, NULL, 0), 1, "as long as it is not known");
    cr_assert_eq(measure(true, NULL), 0);
    cr_expect_eq(vpmu_host_claims(&host, NULL, NULL, 0), 0, "buddy");
    made.left[1] = 5;
    cr_assert_eq(measure(true, NULL), 0);
    cr_expect_eq(vpmu_host_claims(&host, NULL, NULL, 0), 1);
    done();
}

Test(host_real, nobody_is_disturbed)
{
    process(812, "perf", 1, 4);
    look();
    cr_assert_eq(measure(true, NULL), 0);
    cr_expect_eq(made.moves, 0, "nothing is opened while somebody counts");
    cr_expect_eq(host.details[0].left, VPMU_HOST_UNKNOWN);
    cr_expect_not_null(strstr(host.not_measured, "perf (pid 812)"), "%s", host.not_measured);
    cr_expect_eq(vpmu_host_claims(&host, NULL, NULL, 0), 1, "the estimate stands");
    done();
}

Test(host_real, not_allowed)
{
    for (size_t p = 0; p < 4; p++)
        made.left[p] = -EACCES;
    look();
    cr_assert_eq(measure(true, NULL), 0);
    cr_expect_not_null(strstr(host.not_measured, strerror(EACCES)), "%s", host.not_measured);
    done();
}

Test(host_real, sets)
{
    struct vpmu_host_error error;
    const uint64_t two = 4, ninth = 1u << 9;

    look();
    cr_assert_eq(vpmu_host_measure(source, &host, &two, 1, true, NULL, &error), 0);
    cr_expect_eq(host.details[2].left, 6);
    cr_expect_eq(host.details[1].left, VPMU_HOST_UNKNOWN);
    cr_expect_eq(vpmu_host_measure(source, &host, &ninth, 1, true, NULL, &error), -1);
    cr_expect_eq(vpmu_host_measure(source, &host, NULL, 1, true, NULL, &error), -1);
    cr_expect_eq(vpmu_host_measure(source, &host, &two, 0, true, NULL, &error), -1);
    done();
}

/* The machine that the tests run on, whatever it is. */
Test(host_real, this_one)
{
    struct vpmu_host_error error;
    struct vpmu_host_source *real = vpmu_host_real("");

    cr_assert_not_null(real);
    cr_assert_eq(vpmu_host_read(real, &host, &error), 0, "%s", error.text);
    cr_expect_geq(host.processor_count, 1);
    cr_expect_gt(host.facts.processes, 0);
    cr_expect_eq(vpmu_host_measure(real, &host, NULL, 0, true, NULL, &error), 0);
    for (uint32_t p = 0; p < host.processor_count; p++)
        if (host.details[p].left != VPMU_HOST_UNKNOWN)
            cr_expect_leq(host.details[p].left, host.processors[p].capacity.gp);
    vpmu_host_free(&host);
    vpmu_host_source_free(real);
}
