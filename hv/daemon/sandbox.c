// SPDX-License-Identifier: BSD-3-Clause
#include "sandbox.h"

#include <cap-ng.h>
#include <errno.h>
#include <pwd.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "needs.h"

/* Of the C library itself: its heap, its end. */
NEEDS("brk mmap munmap mremap mprotect madvise futex getrandom rt_sigreturn restart_syscall "
      "exit_group");

static int fail(struct sandbox_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Always -1. */
static int fail(struct sandbox_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return -1;
}

/* ---- Identity -------------------------------------------------------------------------------- */

/* Another user's /proc/PID/fd needs both: the folder is that user's, and what is in it is traced.
 */
static const unsigned looking[] = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};

static void keep(unsigned capability)
{
    capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, capability);
    capng_update(CAPNG_ADD, CAPNG_PERMITTED, capability);
}

static void choose_capabilities(const struct sandbox_rights *rights)
{
    capng_clear(CAPNG_SELECT_BOTH);
    if (rights->perfmon)
        keep(CAP_PERFMON);
    for (size_t i = 0; rights->looks && i < sizeof(looking) / sizeof(looking[0]); i++)
        keep(looking[i]);
}

static void limit_to_what_is_there(struct sandbox_rights *rights)
{
    rights->perfmon &= capng_have_capability(CAPNG_PERMITTED, CAP_PERFMON) != 0;
    for (size_t i = 0; i < sizeof(looking) / sizeof(looking[0]); i++)
        rights->looks &= capng_have_capability(CAPNG_PERMITTED, looking[i]) != 0;
}

/* The bounding set can only be cleared by who has CAP_SETPCAP: a service manager has done it. */
static int keep_capabilities(const struct sandbox_rights *rights)
{
    bool all = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);

    choose_capabilities(rights);
    return capng_apply(all ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS);
}

static int become(const struct passwd *user, const struct sandbox_rights *rights)
{
    choose_capabilities(rights);
    /* NOLINTBEGIN(clang-analyzer-optin.core.EnumCastOutOfRange): libcap-ng's flags are or-ed */
    return capng_change_id((int)user->pw_uid, (int)user->pw_gid,
                           CAPNG_INIT_SUPP_GRP | CAPNG_CLEAR_BOUNDING);
    /* NOLINTEND(clang-analyzer-optin.core.EnumCastOutOfRange) */
}

int sandbox_identity(const char *user, struct sandbox_rights *rights, struct sandbox_error *error)
{
    const struct passwd *entry = user ? getpwnam(user) : NULL;

    if (user && !entry)
        return fail(error, "this machine has no user %.60s", user);
    if (capng_get_caps_process())
        return fail(error, "the capabilities cannot be read");
    limit_to_what_is_there(rights);
    if (entry && entry->pw_uid != geteuid()) {
        if (geteuid() != 0)
            return fail(error, "only root can become %.60s", user);
        if (become(entry, rights))
            return fail(error, "cannot become %.60s: %s", user, strerror(errno));
    } else if (keep_capabilities(rights)) {
        return fail(error, "cannot give up capabilities: %s", strerror(errno));
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
        return fail(error, "cannot clear the ambient capabilities: %s", strerror(errno));
    return 0;
}

/* ---- System calls ---------------------------------------------------------------------------- */

#ifdef __SANITIZE_ADDRESS__
#define FORBIDDEN SCMP_ACT_LOG
#else
#define FORBIDDEN SCMP_ACT_KILL_PROCESS
#endif

/* Calls whose argument decides: libraries try these, and go on when they are refused. */
static const struct limit {
    const char *call;
    struct scmp_arg_cmp allowed, refused;
    int error;
} limits[] = {
    {"socket", {0, SCMP_CMP_EQ, AF_UNIX, 0}, {0, SCMP_CMP_NE, AF_UNIX, 0}, EAFNOSUPPORT},
    {"mmap",
     {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0},
     {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC},
     EPERM},
    {"mprotect",
     {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0},
     {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC},
     EPERM},
};

static const struct limit *limit_of(const char *call)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (!strcmp(limits[i].call, call))
            return &limits[i];
    return NULL;
}

/* Two files may need the same call: EEXIST. */
static int allow(scmp_filter_ctx filter, const char *call, struct sandbox_error *error)
{
    const struct limit *limit = limit_of(call);
    int number = seccomp_syscall_resolve_name(call);
    int status;

    if (number == __NR_SCMP_ERROR)
        return fail(error, "there is no system call %s", call);
    if (!limit) {
        status = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 0, NULL);
    } else {
        status = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 1, &limit->allowed);
        if (!status || status == -EEXIST)
            status = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint32_t)limit->error), number,
                                            1, &limit->refused);
    }
    return status && status != -EEXIST
               ? fail(error, "cannot allow the system call %s: %s", call, strerror(-status))
               : 0;
}

static int allow_all(scmp_filter_ctx filter, const char *calls, struct sandbox_error *error)
{
    char call[32];
    int length;

    while (sscanf(calls, "%31s%n", call, &length) == 1) {
        if (allow(filter, call, error))
            return -1;
        calls += length;
    }
    return 0;
}

/* The linker gathers what NEEDS() has put into this section. */
extern const char *const __start_vpmud_needs[], *const __stop_vpmud_needs[];

int sandbox_calls(struct sandbox_error *error)
{
    scmp_filter_ctx filter = seccomp_init(FORBIDDEN);
    int status = 0;

    if (!filter)
        return fail(error, "no memory for the filter");
    for (const char *const *calls = __start_vpmud_needs; !status && calls < __stop_vpmud_needs;
         calls++)
        status = allow_all(filter, *calls, error);
    if (!status) {
        status = seccomp_load(filter);
        if (status)
            fail(error, "the kernel does not take the filter: %s", strerror(-status));
    }
    seccomp_release(filter);
    return status ? -1 : 0;
}
