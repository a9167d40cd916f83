// SPDX-License-Identifier: BSD-3-Clause
/*
 * Who has perf events and VMs: the open files of every process.
 *
 * A perf event is a file that links to anon_inode:[perf_event], a VM of KVM's one that links to
 * anon_inode:kvm-vm. The kernel does not say on which processors an event is, nor whether it is
 * pinned. One rule helps: who counts the whole machine opens each event once for each processor
 * that is online, so a number of events that is a multiple of those is taken for CPU-wide.
 */
#include "host_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
    uint32_t pid;
    uint32_t events; /* that take a counter, or may */
    bool vm;
};

/* The number that is a folder's name; 0 if it is another name. */
static uint32_t number_of(const char *name)
{
    int64_t number;

    return host_parse_number(name, 1, INT32_MAX, &number) ? 0 : (uint32_t)number;
}

static void look_at_file(const char *root, const struct vpmu_host *host, const char *file,
                         struct process *process)
{
    char path[PATH_MAX], target[64], text[1024];

    snprintf(path, sizeof(path), "%s/proc/%u/fd/%s", root, process->pid, file);
    const ssize_t length = readlink(path, target, sizeof(target) - 1);

    if (length < 0)
        return;
    target[length] = '\0';
    if (!strcmp(target, "anon_inode:kvm-vm"))
        process->vm = true;
    if (strcmp(target, "anon_inode:[perf_event]") != 0)
        return;
    host_read_file(root, text, sizeof(text), "/proc/%u/fdinfo/%s", process->pid, file);
    process->events += host_parse_fdinfo(text, host) != VPMU_FACT_NO;
}

/* False: it may not be looked into. A process that has ended meanwhile has nothing. */
static bool look_at_files(const char *root, const struct vpmu_host *host, struct process *process)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/proc/%u/fd", root, process->pid);
    DIR *files = opendir(path);

    if (!files)
        return errno != EACCES && errno != EPERM;
    for (const struct dirent *entry; (entry = readdir(files));)
        if (isdigit((unsigned char)entry->d_name[0]))
            look_at_file(root, host, entry->d_name, process);
    closedir(files);
    return true;
}

static int read_stat(const char *root, uint32_t pid, char *name, size_t size, uint32_t *parent)
{
    char text[1024];

    if (host_read_file(root, text, sizeof(text), "/proc/%u/stat", pid) < 0)
        return -1;
    return host_parse_stat(text, name, size, parent);
}

static void find_ancestors(const char *root, struct vpmu_host_holder *holder, uint32_t parent)
{
    char name[VPMU_HOST_NAME];

    for (size_t i = 0; i < VPMU_HOST_ANCESTORS && parent; i++) {
        holder->ancestors[i] = parent;
        if (read_stat(root, parent, name, sizeof(name), &parent))
            break;
    }
}

static uint32_t online_count(const struct vpmu_host *host)
{
    uint32_t count = 0;

    for (uint32_t p = 0; p < host->processor_count; p++)
        count += host->processors[p].online;
    return count;
}

/* libvirt's daemons have the events of <perf>, which go with the vCPUs: libvirt.c has those. */
static bool is_libvirt(const char *name)
{
    return !strcmp(name, "libvirtd") || !strcmp(name, "virtqemud");
}

/* Never more than a processor can have at once: a holder of more takes turns. */
static void estimate(const struct vpmu_host *host, struct vpmu_host_holder *holder)
{
    const uint32_t online = online_count(host);
    uint32_t most = 0;

    if (!online || holder->events % online)
        return;
    for (uint32_t t = 0; t < host->core_type_count; t++)
        if (host->core_types[t].capacity.gp > most)
            most = host->core_types[t].capacity.gp;
    const uint32_t each = holder->events / online;

    holder->basis = VPMU_HOST_ESTIMATED;
    holder->binding = VPMU_BOUND_CPU;
    holder->amount.gp = (uint16_t)(each < most ? each : most);
}

static int add_holder(const char *root, struct vpmu_host *host, const struct process *process)
{
    struct vpmu_host_holder *holder = host_add_holder(host);
    uint32_t parent = 0;

    if (!holder)
        return -1;
    holder->kind = VPMU_HOST_PROCESS;
    holder->pid = process->pid;
    holder->events = process->events;
    if (read_stat(root, process->pid, holder->name, sizeof(holder->name), &parent))
        snprintf(holder->name, sizeof(holder->name), "?");
    find_ancestors(root, holder, parent);
    if (is_libvirt(holder->name))
        holder->binding = VPMU_BOUND_VCPU;
    else
        estimate(host, holder);
    return 0;
}

/* The value of QEMU's -name, "guest=NAME,..." or "NAME,...", else the command's name. */
static void name_vm(const char *root, const char *cmdline, size_t size, struct vpmu_host_vm *vm)
{
    static const char option[] = "-name", key[] = "guest=";
    uint32_t parent;

    for (size_t at = 0; at < size; at += strnlen(cmdline + at, size - at) + 1) {
        const char *value = cmdline + at + sizeof(option);

        if (strcmp(cmdline + at, option) != 0 || at + sizeof(option) >= size)
            continue;
        if (!strncmp(value, key, sizeof(key) - 1))
            value += sizeof(key) - 1;
        char name[VPMU_HOST_NAME];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(value, ","), value);
        host_copy_printable(vm->name, sizeof(vm->name), name);
        return;
    }
    if (read_stat(root, vm->pid, vm->name, sizeof(vm->name), &parent))
        snprintf(vm->name, sizeof(vm->name), "?");
}

static int add_vm(const char *root, struct vpmu_host *host, const struct process *process)
{
    struct vpmu_host_vm *vm = host_add_vm(host);
    char text[32768];

    if (!vm)
        return -1;
    vm->pid = process->pid;
    const long length = host_read_file(root, text, sizeof(text), "/proc/%u/cmdline", process->pid);
    const size_t size = length > 0 ? (size_t)length : 0;

    host_parse_cmdline(text, size, vm);
    name_vm(root, text, size, vm);
    return 0;
}

static int look_at_process(const char *root, struct vpmu_host *host, uint32_t pid)
{
    struct process process = {.pid = pid};

    host->facts.processes++;
    host->facts.unseen += !look_at_files(root, host, &process);
    if (process.events && add_holder(root, host, &process))
        return -1;
    return process.vm ? add_vm(root, host, &process) : 0;
}

int host_add_processes(const char *root, struct vpmu_host *host, struct vpmu_host_error *error)
{
    char path[PATH_MAX];
    int status = 0;

    snprintf(path, sizeof(path), "%s/proc", root);
    DIR *processes = opendir(path);

    if (!processes) {
        host->facts.processes = host->facts.unseen = VPMU_HOST_UNKNOWN;
        return 0;
    }
    for (const struct dirent *entry; !status && (entry = readdir(processes));) {
        const uint32_t pid = number_of(entry->d_name);

        if (pid)
            status = look_at_process(root, host, pid);
    }
    closedir(processes);
    return status ? host_fail(error, "no memory for the processes with perf events") : 0;
}
