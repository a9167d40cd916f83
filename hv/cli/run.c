// SPDX-License-Identifier: BSD-3-Clause
/*
 * vpmuctl run: a host profiler under a lease.
 *
 * First the lease, then the command, then one loop until the command ends: over signals, which are
 * passed on, and over the connection, which is the lease. If vpmud goes away the command goes on;
 * the connection is tried again until there is a vpmud, which is then asked to renew the lease.
 */
#include "hv/cli/cli.h"

#include <errno.h>
#include <glib.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hv/cli/answer.h"
#include "hv/cli/columns.h"
#include "hv/cli/lease.h"
#include "vpmu/client.h"
#include "vpmu/host.h"

#define RETRY_MS 250
#define PATIENCE_MS 1000 /* before it is said that vpmud takes its time */
#define GP_MOST 32
#define FIXED_BITS 16
#define SET_WORDS (VPMU_ADMISSION_PROCESSORS_MAX / 64u)

static const char help[] =
    "usage: vpmuctl run --counters N [OPTION...] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs a host profiler under a lease of N counters on each processor, so that\n"
    "no VM is starved by it. The lease lasts as long as COMMAND runs.\n"
    "\n"
    "  -n, --counters N   general-purpose counters; COMMAND finds how many there\n"
    "                     are in VPMU_COUNTERS, and the set of fixed ones in\n"
    "                     VPMU_FIXED\n"
    "      --least N      be content with so many\n"
    "  -f, --fixed N|SET  the first N fixed counters, or a set as 0x5\n"
    "  -C, --cpus LIST    of these processors, as 0-3,8; not given: of every one\n"
    "      --exclude-guests  COMMAND does not count while a guest runs\n"
    "      --stop         end COMMAND (SIGTERM) when its lease is lost\n"
    "      --name NAME    the holder's, for others to see; not given: COMMAND's\n"
    "  -q, --quiet        do not say what was granted\n"
    "      --socket PATH  vpmud's (" VPMU_SOCKET ")\n"
    "      --control PATH vpmud's other one, to ask what is left\n"
    "                     (" CONTROL_SOCKET ")\n"
    "\n"
    "Exit status: that of COMMAND; 128 and its number if a signal ended it; 64\n"
    "wrong arguments; 69 no vpmud; 75 refused: others have the counters; 77 you\n"
    "may not have a lease; 126 COMMAND cannot be executed; 127 there is none.\n";

/* As they are given. */
struct words {
    const char *counters, *least, *fixed, *cpus, *name, *socket, *control;
    bool exclude_guests, stop, quiet;
};

struct run {
    struct words words;
    char **command;
    struct vpmu_claim claim;
    uint64_t set[SET_WORDS];
    struct vpmu_client *client;
    bool answered; /* the first request */
    int status;    /* vpmuctl's, if it was refused */
    struct vpmu_wire_grant grant;
    pid_t child; /* 0: not yet */
    bool lost;   /* there is no connection */
};

/* ---- Saying ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    GString *shown = g_string_new("vpmuctl run: ");
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    cli_put_printable(shown, text);
    fprintf(stderr, "%s\n", shown->str);
    g_string_free(shown, TRUE);
    g_free(text);
}

/* Which exit status stands for an error of the client's. */
static int status_of(const struct vpmu_client_error *error)
{
    switch (error->status) {
    case VPMU_CLIENT_UNREACHABLE:
        return error->system_error == EACCES || error->system_error == EPERM ? CLI_DENIED
                                                                             : CLI_UNAVAILABLE;
    case VPMU_CLIENT_LOST:
    case VPMU_CLIENT_TIMEOUT:
    case VPMU_CLIENT_PROTOCOL:
    case VPMU_WIRE_VERSION_RANGE:
        return CLI_UNAVAILABLE;
    case VPMU_WIRE_DENIED:
        return CLI_DENIED;
    case VPMU_CLIENT_ARGUMENT:
    case VPMU_STATUS_INVALID_PARAMETER:
        return CLI_USAGE;
    default:
        return CLI_TRY_LATER;
    }
}

static int fail(const struct vpmu_client_error *error)
{
    const int status = status_of(error);

    say("%s%s", status == CLI_TRY_LATER ? "refused: " : "", error->text);
    if (error->status == VPMU_CLIENT_UNREACHABLE && status == CLI_UNAVAILABLE)
        fputs("  start it: systemctl start vpmud; or say with --socket where it listens\n", stderr);
    if (error->status == VPMU_CLIENT_UNREACHABLE && status == CLI_DENIED)
        fputs("  be root, or a member of the group that the socket has (kvm)\n", stderr);
    return status;
}

/* Of every processor of the lease the same number of counters is left, or more. */
static bool least_left(const struct run *run, struct json_object *status, struct vpmu_amount *left)
{
    size_t count;
    struct json_object *rows = answer_rows(status, "processors", &count);
    bool found = false;

    *left = (struct vpmu_amount){UINT16_MAX, UINT16_MAX};
    for (size_t i = 0; i < count; i++) {
        struct json_object *row = answer_row(rows, i);
        const uint64_t last = MIN(answer_number(row, "last"), VPMU_ADMISSION_PROCESSORS_MAX - 1);
        bool named = !run->claim.processors;

        for (uint64_t p = answer_number(row, "first"); !named && p <= last; p++)
            named = run->set[p / 64] >> p % 64 & 1;
        if (!named || !answer_flag(row, "online"))
            continue;
        const struct vpmu_amount here = use_left(row);

        left->gp = MIN(left->gp, here.gp);
        left->fixed &= here.fixed;
        found = true;
    }
    return found;
}

/* Said only where the control socket may be asked; it is not what the command depends on. */
static void say_left(const struct run *run)
{
    struct control_error error;
    struct json_object *status =
        run->words.socket && !run->words.control
            ? NULL
            : control_question(run->words.control, "status", NULL, NULL, &error);
    struct vpmu_amount left;
    char text[AMOUNT_TEXT];

    if (status && !answer_flag(status, "mediated") && least_left(run, status, &left))
        say("left beside it: %s", amount_text(left, text));
    json_object_put(status);
}

static void say_grant(const struct run *run)
{
    const struct vpmu_amount granted = run->grant.granted;
    char text[AMOUNT_TEXT];

    if (run->words.quiet)
        return;
    say("granted %s counters (general-purpose+fixed) of %s%s", amount_text(granted, text),
        run->words.cpus ? "processors " : "every processor",
        run->words.cpus ? run->words.cpus : "");
    if (run->grant.text[0])
        say("the rest: %s", run->grant.text);
    say_left(run);
}

/* ---- The lease ------------------------------------------------------------------------------- */

static void lease_lost(const struct run *run, const char *what, const char *why)
{
    say("%s%s%s; %s", what, *why ? ": " : "", why,
        run->words.stop ? "the command is ended" : "the command goes on without it");
    if (run->words.stop && run->child)
        kill(run->child, SIGTERM);
}

static void on_notice(void *user, const struct vpmu_wire_notice *notice)
{
    const struct run *run = user;

    if (notice->lease != vpmu_client_lease(run->client))
        return;
    if (notice->state == VPMU_LEASE_REVOKED)
        lease_lost(run, "the lease is revoked", notice->text);
    else
        say("the lease is %s%s%s", vpmu_lease_state_name(notice->state), *notice->text ? ": " : "",
            notice->text);
}

static void subscribe(const struct run *run)
{
    vpmu_client_subscribe(run->client, (1u << VPMU_LEASE_STATES) - 1, NULL, NULL);
}

static void on_acquired(struct run *run, const struct vpmu_client_answer *answer,
                        const struct vpmu_client_error *error)
{
    run->answered = true;
    if (answer)
        run->grant = answer->grant;
    else
        run->status = fail(error);
}

static void on_renewed(struct run *run, const struct vpmu_client_answer *answer,
                       const struct vpmu_client_error *error)
{
    if (!answer) {
        lease_lost(run, "vpmud is back, and the lease is lost", error->text);
        return;
    }
    say("vpmud is back, the lease is renewed");
    subscribe(run);
}

static void on_answered(void *user, uint32_t type, const struct vpmu_client_answer *answer,
                        const struct vpmu_client_error *error)
{
    struct run *run = user;

    if (type == VPMU_WIRE_HELLO && answer)
        vpmu_client_renew(run->client, &run->claim, VPMU_POLICY_REDUCE, NULL, NULL);
    else if (type == VPMU_WIRE_ACQUIRE)
        on_acquired(run, answer, error);
    else if (type == VPMU_WIRE_RENEW)
        on_renewed(run, answer, error);
}

/* The answer may take as long as VMs have time to give way, or as a restarted vpmud waits. */
static bool wait_for_answer(struct run *run, struct vpmu_client_error *error)
{
    int patience = PATIENCE_MS;

    while (!run->answered) {
        struct pollfd end = {.fd = vpmu_client_fd(run->client), .events = POLLIN};

        if (!poll(&end, 1, patience)) {
            say("waiting: VMs are asked to give way, or vpmud has just been restarted");
            patience = -1;
        }
        if (end.revents && vpmu_client_dispatch(run->client, error))
            return false;
    }
    return true;
}

/* True: there is a lease; else run->status is vpmuctl's. */
static bool take_lease(struct run *run)
{
    const struct vpmu_client_options options = {
        .path = run->words.socket,
        .kind = VPMU_KIND_PROFILER,
        .name = run->words.name,
        .notice = on_notice,
        .answered = on_answered,
        .user = run,
    };
    struct vpmu_client_error error;

    run->client = vpmu_client_new(&options, &error);
    if (!run->client || vpmu_client_connect(run->client, &error) ||
        vpmu_client_acquire(run->client, &run->claim, VPMU_POLICY_REDUCE, NULL, &error) ||
        !wait_for_answer(run, &error))
        run->status = fail(&error);
    else if (!run->status)
        subscribe(run);
    return !run->status;
}

/* ---- The command ----------------------------------------------------------------------------- */

static void export_grant(const struct run *run)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", run->grant.granted.gp);
    setenv("VPMU_COUNTERS", text, 1);
    snprintf(text, sizeof(text), "0x%x", run->grant.granted.fixed);
    setenv("VPMU_FIXED", text, 1);
}

/* In the child. Without vpmuctl there is no lease: then the command is not to go on, either. */
_Noreturn static void execute(const struct run *run, const sigset_t *before)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, before, NULL);
    execvp(run->command[0], run->command);
    const int error = errno;

    say("%s: %s", run->command[0], strerror(error));
    _exit(error == ENOENT ? CLI_NO_COMMAND : CLI_CANNOT_EXECUTE);
}

/* What comes from the terminal comes to the command, too; what a process sends only to us. */
static void pass_on(const struct run *run, int signals)
{
    struct signalfd_siginfo info;

    if (read(signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGCHLD &&
        info.ssi_code <= 0)
        kill(run->child, (int)info.ssi_signo);
}

static void listen_to_vpmud(struct run *run)
{
    struct vpmu_client_error error;

    if (!vpmu_client_dispatch(run->client, &error))
        return;
    if (!run->lost)
        say("vpmud is gone (%s); trying to renew the lease", error.text);
    run->lost = true;
}

/* -1: it runs. */
static int exit_status(const struct run *run)
{
    int status;

    if (waitpid(run->child, &status, WNOHANG) != run->child)
        return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int attend(struct run *run, int signals)
{
    int status;

    while ((status = exit_status(run)) < 0) {
        struct pollfd ends[] = {{.fd = signals, .events = POLLIN},
                                {.fd = vpmu_client_fd(run->client), .events = POLLIN}};
        const bool alone = ends[1].fd < 0;

        poll(ends, 2, alone ? RETRY_MS : -1);
        if (ends[0].revents)
            pass_on(run, signals);
        if (ends[1].revents)
            listen_to_vpmud(run);
        else if (alone)
            vpmu_client_connect_start(run->client, NULL);
    }
    return status;
}

static int run_command(struct run *run)
{
    static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD};
    sigset_t set, before;

    sigemptyset(&set);
    for (size_t i = 0; i < G_N_ELEMENTS(passed); i++)
        sigaddset(&set, passed[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

    run->child = signals < 0 ? -1 : fork();
    if (!run->child)
        execute(run, &before);
    if (run->child < 0) {
        say("%s", strerror(errno));
        return CLI_CANNOT_EXECUTE;
    }
    const int status = attend(run, signals);

    close(signals);
    return status;
}

/* ---- Words ----------------------------------------------------------------------------------- */

static bool take_gp(const char *option, const char *text, uint16_t most, uint16_t *gp)
{
    double number;

    if (!cli_number("run", option, text, 0, most, &number))
        return false;
    *gp = (uint16_t)number;
    return true;
}

/* "0x5" is a set, "2" the first two. */
static bool take_fixed(const char *text, uint16_t *fixed)
{
    char *end;
    const unsigned long number = strtoul(text, &end, 0);
    const bool is_set = !strncmp(text, "0x", 2);

    if (end == text || *end || number > (is_set ? UINT16_MAX : FIXED_BITS)) {
        say("--fixed %s: neither a number up to %d nor a set up to 0xffff", text, FIXED_BITS);
        return false;
    }
    *fixed = (uint16_t)(is_set ? number : (1ul << number) - 1);
    return true;
}

static bool take_cpus(struct run *run)
{
    if (!*run->words.cpus ||
        vpmu_host_parse_list(run->words.cpus, VPMU_ADMISSION_PROCESSORS_MAX, run->set)) {
        say("--cpus %s: not a list of processors, as 0-3,8", run->words.cpus);
        return false;
    }
    run->claim.processors = run->set;
    run->claim.words = SET_WORDS;
    while (run->claim.words > 1 && !run->set[run->claim.words - 1])
        run->claim.words--;
    return true;
}

static bool make_claim(struct run *run)
{
    const struct words *words = &run->words;
    struct vpmu_claim *claim = &run->claim;

    claim->binding = VPMU_BOUND_CPU;
    claim->flags = words->exclude_guests ? VPMU_CLAIM_EXCLUDES_GUESTS : 0;
    if (!words->counters && !words->fixed) {
        say("--counters is missing: how many does the command need?");
        return false;
    }
    if ((words->counters && !take_gp("counters", words->counters, GP_MOST, &claim->need.gp)) ||
        (words->fixed && !take_fixed(words->fixed, &claim->need.fixed)) ||
        (words->cpus && !take_cpus(run)))
        return false;
    claim->least = claim->need;
    return !words->least || take_gp("least", words->least, claim->need.gp, &claim->least.gp);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

int cli_run(int argc, char **argv)
{
    struct run run = {.status = 0};
    struct words *words = &run.words;
    const struct cli_option options[] = {{"counters", 'n', NULL, &words->counters},
                                         {"least", 0, NULL, &words->least},
                                         {"fixed", 'f', NULL, &words->fixed},
                                         {"cpus", 'C', NULL, &words->cpus},
                                         {"exclude-guests", 0, &words->exclude_guests, NULL},
                                         {"stop", 0, &words->stop, NULL},
                                         {"name", 0, NULL, &words->name},
                                         {"quiet", 'q', &words->quiet, NULL},
                                         {"socket", 0, NULL, &words->socket},
                                         {"control", 0, NULL, &words->control},
                                         {NULL, 0, NULL, NULL}};
    int status;
    const int word = cli_options(argc, argv, options, CLI_COMMAND, help, &status);

    if (word < 0)
        return status;
    run.command = argv + word;
    if (!make_claim(&run))
        return CLI_USAGE;
    if (!words->name)
        words->name = base_name(run.command[0]);
    if (take_lease(&run)) {
        say_grant(&run);
        export_grant(&run);
        run.status = run_command(&run);
    }
    vpmu_client_free(run.client);
    return run.status;
}
