// SPDX-License-Identifier: BSD-3-Clause
/*
 * vpmud: who may use which counters of this machine.
 *
 * The start goes through stages. Each one needs privileges that the next one does not have:
 *
 *   configuration  read and valid as a whole
 *   sockets        the service manager's, or made at the configured paths
 *   identity       the configured user, and few capabilities or one                  (sandbox.c)
 *   calls          only the system calls that NEEDS() names                          (sandbox.c)
 *   host, state    what is there, and what the daemon before has left behind
 *   service        the loop
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "control.h"
#include "daemon.h"
#include "keeper.h"
#include "listen.h"
#include "log.h"
#include "metrics.h"
#include "needs.h"
#include "observe.h"
#include "peer.h"
#include "reload.h"
#include "requests.h"
#include "sandbox.h"
#include "state.h"
#include "text.h"

/* sd_notify(3) and what ends a program. */
NEEDS("socket connect sendmsg sendto getsockopt setsockopt close fcntl getpid getuid getgid "
      "geteuid getegid exit exit_group write");

#define DEFAULT_CONFIG "/etc/vpmud.conf"
#define SPARE_FDS 64u

struct options {
    const char *config, *check, *host;
};

static void usage(FILE *to)
{
    fputs("usage: vpmud [--config FILE] [--host FILE]\n"
          "       vpmud --check-config FILE\n"
          "\n"
          "Admits virtual machines and profilers to the hardware counters of this machine.\n"
          "\n"
          "  --config FILE        read FILE instead of " DEFAULT_CONFIG "\n"
          "  --check-config FILE  say whether FILE is a valid configuration, and end\n"
          "  --host FILE          take the machine that FILE describes for this one (for tests)\n"
          "  --foreground         nothing: vpmud never goes to the background\n"
          "  --help, --version    say so, and end\n",
          to);
}

/* Ends the program where there is nothing more to do. */
static struct options parse_options(int argc, char **argv)
{
    static const struct option table[] = {
        {"config", required_argument, NULL, 'c'},
        {"check-config", required_argument, NULL, 'k'},
        {"host", required_argument, NULL, 'H'},
        {"foreground", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.config = DEFAULT_CONFIG};
    int option;

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (option) {
        case 'c':
            options.config = optarg;
            break;
        case 'k':
            options.check = optarg;
            break;
        case 'H':
            options.host = optarg;
            break;
        case 'f':
            break;
        case 'h':
            usage(stdout);
            exit(0);
        case 'v':
            printf("vpmud, protocol %u\n", VPMU_PROTOCOL_VERSION);
            exit(0);
        default:
            usage(stderr);
            exit(2);
        }
    }
    if (optind < argc) {
        usage(stderr);
        exit(2);
    }
    return options;
}

static int check_config(const char *path)
{
    struct config_error error;
    struct config *config = config_load(path, &error);

    if (!config) {
        fprintf(stderr, "vpmud: %s: %s\n", path, error.text);
        return 1;
    }
    printf("%s: valid, %zu policies\n", path, config->policy_count);
    config_free(config);
    return 0;
}

/* ---- The service ----------------------------------------------------------------------------- */

static void handle_signal(void *user, int signal)
{
    struct daemon *daemon = user;
    char why[400];

    if (signal == SIGHUP)
        reload_config(daemon, why, sizeof(why));
    else
        loop_stop(daemon->loop);
}

static void say_alive(struct loop_timer *timer)
{
    struct daemon *daemon = OWNER_OF(timer, struct daemon, alive);

    sd_notify(0, "WATCHDOG=1");
    loop_timer_set(daemon->loop, timer, daemon->alive_ms);
}

/* Twice as often as asked for: sd_watchdog_enabled(3). */
static void start_watchdog(struct daemon *daemon)
{
    uint64_t every_us = 0;

    if (sd_watchdog_enabled(0, &every_us) <= 0)
        return;
    daemon->alive_ms = every_us / 2000 + 1;
    daemon->alive.due = say_alive;
    say_alive(&daemon->alive);
}

static bool make_books(struct daemon *daemon)
{
    const struct vpmu_admission_config config = {
        .processors = daemon->host.processors,
        .processor_count = daemon->host.processor_count,
        .leases = daemon->config->leases,
        .mediated = daemon->host.facts.mediated == VPMU_FACT_YES,
    };

    daemon->books = books_new(&config);
    if (!daemon->books)
        log_event(LOG_ERR, "no-books", NUMBER("processors", config.processor_count),
                  NUMBER("leases", config.leases));
    return daemon->books;
}

static bool begin(struct daemon *daemon)
{
    struct vpmu_host_error error;
    struct state_error unsaved;

    if (observe_begin(daemon, &error)) {
        log_event(LOG_ERR, "no-host", TEXT("why", error.text));
        return false;
    }
    if (!make_books(daemon))
        return false;
    if (daemon->host.described)
        log_event(
            LOG_WARNING, "described-host",
            TEXT("why", "the machine is described by a file: nothing here is about this one"));
    daemon->pending_end = &daemon->pending;
    keeper_restore(daemon);
    observe_start(daemon);
    requests_begin(daemon);
    metrics_start(daemon);
    /* From now on a crash is seen as one. */
    keeper_save(daemon, false, &unsaved);
    return true;
}

static void serve(struct daemon *daemon)
{
    struct state_error error;

    start_watchdog(daemon);
    log_event(LOG_NOTICE, "serving", TEXT("socket", daemon->config->socket),
              NUMBER("processors", daemon->host.processor_count),
              NUMBER("instance", daemon->instance));
    sd_notify(0, "READY=1\nSTATUS=serving");
    if (loop_run(daemon->loop))
        log_event(LOG_ERR, "loop", TEXT("why", strerror(errno)));
    sd_notify(0, "STOPPING=1");
    /* Before the connections end: who is connected has a lease after the restart. */
    keeper_save(daemon, true, &error);
    log_event(LOG_NOTICE, "stopped", NUMBER("leases", books_count(daemon->books, ENTRY_LIVE)));
}

/* The state file has been written for the last time: what ends now is not in it. */
static void end(struct daemon *daemon)
{
    if (daemon->books) {
        requests_free(daemon);
        peer_close_all(daemon);
        text_close_all(daemon);
        books_free(daemon->books);
    }
    vpmu_host_free(&daemon->host);
    free(daemon->taken);
}

/* ---- Stages ---------------------------------------------------------------------------------- */

/* Each connection takes a descriptor. */
static void raise_limit(const struct config *config)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < config->connections + SPARE_FDS)
        log_event(LOG_WARNING, "few-descriptors", NUMBER("limit", limit.rlim_cur),
                  NUMBER("connections", config->connections));
}

/* NSS loads its modules now: later it may not. */
static void prepare_names(void)
{
    (void)getpwnam("no such user");
    (void)getgrnam("no such group");
}

static bool enter_sandbox(const struct config *config)
{
    struct sandbox_rights rights = {.perfmon = true, .looks = config->name_holders};
    struct sandbox_error error;

    if (sandbox_identity(config->user, &rights, &error)) {
        log_event(LOG_ERR, "stage", TEXT("name", "identity"), TEXT("why", error.text));
        return false;
    }
    log_event(LOG_INFO, "stage", TEXT("name", "identity"), NUMBER("uid", geteuid()),
              TEXT("perfmon", rights.perfmon ? "yes" : "no"),
              TEXT("looks", rights.looks ? "yes" : "no"));
    if (config->name_holders && !rights.looks)
        log_event(LOG_WARNING, "cannot-look",
                  TEXT("why", "[watch] name_holders needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"));
    prepare_names();
    if (sandbox_calls(&error)) {
        log_event(LOG_ERR, "stage", TEXT("name", "calls"), TEXT("why", error.text));
        return false;
    }
    log_event(LOG_INFO, "stage", TEXT("name", "calls"));
    return true;
}

struct sockets {
    struct listener *wire, *control, *metrics;
};

static bool open_sockets(struct daemon *daemon, struct sockets *sockets)
{
    const struct config *config = daemon->config;
    struct listen_error error;
    bool good = (sockets->wire = listen_at(daemon, config->socket, peer_accept, &error)) &&
                (sockets->control = listen_at(daemon, config->control, control_accept, &error)) &&
                (!config->metrics ||
                 (sockets->metrics = listen_at(daemon, config->metrics, metrics_accept, &error)));

    if (!good)
        log_event(LOG_ERR, "no-socket", TEXT("why", error.text));
    else
        listen_close_others();
    return good && !listen_start(sockets->wire) && !listen_start(sockets->control) &&
           (!sockets->metrics || !listen_start(sockets->metrics));
}

static void close_sockets(struct sockets *sockets)
{
    listen_end(sockets->wire);
    listen_end(sockets->control);
    listen_end(sockets->metrics);
}

static bool make_instance(struct daemon *daemon)
{
    daemon->started_ms = wall_clock_ms();
    while (!daemon->instance)
        if (getrandom(&daemon->instance, sizeof(daemon->instance), 0) < 0)
            return false;
    daemon->instance &= INT64_MAX; /* as JSON's readers like it */
    return daemon->instance;
}

static struct vpmu_host_source *open_host(const char *described)
{
    struct vpmu_host_error error = {"no memory"};
    struct vpmu_host_source *source =
        described ? vpmu_host_described(described, &error) : vpmu_host_real("");

    if (!source)
        log_event(LOG_ERR, "no-host", TEXT("file", described), TEXT("why", error.text));
    return source;
}

static int run(struct daemon *daemon, const struct options *options)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, 0};
    struct sockets sockets = {NULL};
    int status = 1;

    signal(SIGPIPE, SIG_IGN);
    raise_limit(daemon->config);
    daemon->loop = loop_new();
    daemon->source = open_host(options->host);
    if (daemon->loop && daemon->source && make_instance(daemon) &&
        !loop_signals(daemon->loop, signals, handle_signal, daemon) &&
        open_sockets(daemon, &sockets) && enter_sandbox(daemon->config) && begin(daemon)) {
        serve(daemon);
        status = 0;
    }
    end(daemon);
    if (daemon->loop) {
        close_sockets(&sockets);
        loop_free(daemon->loop);
    }
    vpmu_host_source_free(daemon->source);
    return status;
}

int main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    struct daemon daemon = {.config_path = options.config, .description = options.host};
    struct config_error error;
    int status;

    if (options.check)
        return check_config(options.check);
    daemon.config = config_load(options.config, &error);
    if (!daemon.config) {
        fprintf(stderr, "vpmud: %s: %s\n", options.config, error.text);
        return 1;
    }
    status = run(&daemon, &options);
    log_flush();
    config_free(daemon.config);
    return status;
}
