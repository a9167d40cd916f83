// SPDX-License-Identifier: BSD-3-Clause
/* The text is OpenMetrics 1.0; docs/operators.md explains each metric. */
#include "metrics.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "describe.h"
#include "file.h"
#include "log.h"
#include "requests.h"
#include "text.h"

#define TEXTFILE_MS 15000u

static void head(GString *text, const char *name, const char *type, const char *help)
{
    g_string_append_printf(text, "# TYPE vpmud_%s %s\n# HELP vpmud_%s %s\n", name, type, name,
                           help);
}

/* ---- Numbers of the daemon ------------------------------------------------------------------- */

static const struct row {
    const char *name, *help;
    size_t at; /* uint64_t in struct statistics */
} rows[] = {
    {"connections", "Connections accepted.", offsetof(struct statistics, connections)},
    {"broken_connections", "Connections closed for what the peer did.",
     offsetof(struct statistics, broken)},
    {"notices", "Notices sent.", offsetof(struct statistics, notices)},
    {"revocations", "Leases revoked.", offsetof(struct statistics, revoked)},
    {"renewals", "Leases renewed after a restart.", offsetof(struct statistics, renewed)},
    {"expirations", "Reservations that no VM has claimed.", offsetof(struct statistics, expired)},
    {"state_writes", "Times that the state file was written.",
     offsetof(struct statistics, state_writes)},
    {"state_errors", "Times that it could not be written.",
     offsetof(struct statistics, state_errors)},
    {"observations", "Looks at the host.", offsetof(struct statistics, observations)},
    {"observe_errors", "Looks that failed.", offsetof(struct statistics, observe_errors)},
    {"reloads", "Configurations taken over.", offsetof(struct statistics, reloads)},
    {"reload_errors", "Configurations that were not valid.",
     offsetof(struct statistics, reload_errors)},
};

static void add_rows(GString *text, const struct statistics *statistics)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint64_t value;

        memcpy(&value, (const char *)statistics + rows[i].at, sizeof(value));
        head(text, rows[i].name, "counter", rows[i].help);
        g_string_append_printf(text, "vpmud_%s_total %" G_GUINT64_FORMAT "\n", rows[i].name, value);
    }
}

static void add_requests(GString *text, const struct statistics *statistics)
{
    head(text, "requests", "counter", "Requests answered, by message and result.");
    for (uint32_t type = 0; type < VPMU_WIRE_TYPES; type++) {
        const struct vpmu_wire_row *row = vpmu_wire_row(type);

        if (!row || row->request_size == VPMU_WIRE_NONE)
            continue;
        g_string_append_printf(
            text,
            "vpmud_requests_total{message=\"%s\",result=\"granted\"} %" G_GUINT64_FORMAT
            "\nvpmud_requests_total{message=\"%s\",result=\"refused\"} %" G_GUINT64_FORMAT "\n",
            row->name, statistics->answered[type], row->name, statistics->refused[type]);
    }
}

static void add_refusals(GString *text, const struct statistics *statistics)
{
    static const char *const names[VPMU_REASONS] = {
        [VPMU_REASON_NONE] = "none",
        [VPMU_REASON_REDUCED] = "reduced",
        [VPMU_REASON_ABSENT] = "absent",
        [VPMU_REASON_TAKEN] = "taken",
        [VPMU_REASON_STARVES] = "starves",
        [VPMU_REASON_YIELDING] = "yielding",
        [VPMU_REASON_GUEST_EVENTS] = "guest_events",
        [VPMU_REASON_GUESTS] = "guests",
        [VPMU_REASON_NO_PROCESSOR] = "no_processor",
        [VPMU_REASON_BAD_CLAIM] = "bad_claim",
        [VPMU_REASON_NO_ROOM] = "no_room",
        [VPMU_REASON_BAD_HANDLE] = "bad_handle",
    };

    head(text, "refusals", "counter", "Requests refused, by reason.");
    for (int reason = 0; reason < VPMU_REASONS; reason++)
        g_string_append_printf(text, "vpmud_refusals_total{reason=\"%s\"} %" G_GUINT64_FORMAT "\n",
                               names[reason], statistics->reasons[reason]);
}

/* ---- Gauges ---------------------------------------------------------------------------------- */

static void add_gauge(GString *text, const char *name, const char *help, uint64_t value)
{
    head(text, name, "gauge", help);
    g_string_append_printf(text, "vpmud_%s %" G_GUINT64_FORMAT "\n", name, value);
}

static void add_leases(GString *text, const struct books *books)
{
    head(text, "leases", "gauge", "Leases in the books.");
    for (int state = 0; state < ENTRY_STATES; state++)
        g_string_append_printf(text, "vpmud_leases{state=\"%s\"} %u\n", entry_state_names[state],
                               books_count(books, (enum entry_state)state));
}

/* Sums over the processors: one of them is explained by vpmuctl, not by a metric for each. */
static void add_counters(GString *text, const struct daemon *daemon)
{
    uint64_t capacity = 0, cpu_wide = 0, vcpu = 0, online = 0;

    for (uint32_t p = 0; p < daemon->host.processor_count; p++) {
        struct vpmu_admission_use use;

        if (vpmu_admission_use(books_admission(daemon->books), p, &use) != VPMU_STATUS_SUCCESS ||
            !use.online)
            continue;
        online++;
        capacity += use.capacity.gp;
        cpu_wide += use.cpu_wide.gp;
        vcpu += use.vcpu.gp;
    }
    add_gauge(text, "processors", "Processors online.", online);
    head(text, "gp_counters", "gauge", "General-purpose counters, summed over processors.");
    g_string_append_printf(text,
                           "vpmud_gp_counters{of=\"capacity\"} %" G_GUINT64_FORMAT
                           "\nvpmud_gp_counters{of=\"cpu_wide\"} %" G_GUINT64_FORMAT
                           "\nvpmud_gp_counters{of=\"vcpu\"} %" G_GUINT64_FORMAT "\n",
                           capacity, cpu_wide, vcpu);
}

/* ---- VMs ------------------------------------------------------------------------------------- */

/* A label's value: OpenMetrics escapes these three. */
static void add_label(GString *text, const char *value)
{
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            g_string_append_c(text, '\\');
        g_string_append_c(text, *value);
    }
}

static void add_vm_head(GString *text, const char *metric, const struct entry *entry)
{
    g_string_append_printf(text, "vpmud_%s{lease=\"%" G_GUINT64_FORMAT "\",vm=\"", metric,
                           entry->id);
    add_label(text, entry->owner.name);
    g_string_append_c(text, '"');
}

static void add_vm_state(GString *text, const struct daemon *daemon, const struct entry *entry)
{
    add_vm_head(text, "vm_lease", entry);
    g_string_append_printf(text, ",state=\"%s\"} 1\n",
                           vpmu_lease_state_name(requests_state(daemon, entry)));
}

static void add_vm_counters(GString *text, const struct daemon *daemon, const struct entry *entry)
{
    (void)daemon;
    for (int state = 0; entry->report && state < VPMU_COUNTER_STATES; state++) {
        if (!entry->report->states[state])
            continue;
        add_vm_head(text, "vm_counters", entry);
        g_string_append_printf(text, ",state=\"%s\"} %u\n", counter_state_name((uint32_t)state),
                               entry->report->states[state]);
    }
}

static void add_vm_seconds(GString *text, const struct entry *entry, const char *metric,
                           uint64_t ns)
{
    add_vm_head(text, metric, entry);
    g_string_append_printf(text, "} %.3f\n", (double)ns / 1e9);
}

static void add_vm_enabled(GString *text, const struct daemon *daemon, const struct entry *entry)
{
    uint64_t ns = 0;

    (void)daemon;
    for (uint32_t i = 0; entry->report && i < entry->report->count; i++)
        ns += entry->report->counters[i].enabled_ns;
    if (entry->report)
        add_vm_seconds(text, entry, "vm_enabled_seconds_total", ns);
}

static void add_vm_backed(GString *text, const struct daemon *daemon, const struct entry *entry)
{
    uint64_t ns = 0;

    (void)daemon;
    for (uint32_t i = 0; entry->report && i < entry->report->count; i++)
        ns += entry->report->counters[i].backed_ns;
    if (entry->report)
        add_vm_seconds(text, entry, "vm_backed_seconds_total", ns);
}

static const struct family {
    const char *name, *type, *help;
    void (*add)(GString *text, const struct daemon *daemon, const struct entry *entry);
} families[] = {
    {"vm_lease", "gauge", "State of a VM's lease.", add_vm_state},
    {"vm_counters", "gauge", "Counters of a VM's vCPUs in a state.", add_vm_counters},
    {"vm_enabled_seconds", "counter", "Counter time that guests have enabled.", add_vm_enabled},
    {"vm_backed_seconds", "counter", "Counter time of it that has been counted.", add_vm_backed},
};

/* A family's samples stand together. */
static void add_vms(GString *text, const struct daemon *daemon)
{
    for (size_t i = 0; i < G_N_ELEMENTS(families); i++) {
        head(text, families[i].name, families[i].type, families[i].help);
        for (struct entry *entry = books_next(daemon->books, NULL); entry;
             entry = books_next(daemon->books, entry))
            if (entry->owner.kind == VPMU_KIND_VM && entry->owner.state == ENTRY_LIVE)
                families[i].add(text, daemon, entry);
    }
}

static void add_all(GString *text, const struct daemon *daemon)
{
    add_rows(text, &daemon->statistics);
    add_requests(text, &daemon->statistics);
    add_refusals(text, &daemon->statistics);
    add_gauge(text, "start_time_seconds", "When vpmud was started.",
              (uint64_t)daemon->started_ms / 1000);
    add_gauge(text, "described_host", "1: the host is described by a file, not this machine.",
              daemon->host.described);
    add_gauge(text, "grace", "1: leases of the daemon before are still awaited.", daemon->grace);
    add_gauge(text, "pending", "Requests that wait for an answer.", daemon->pending_count);
    add_gauge(text, "peers", "Connections now.", daemon->peer_count);
    add_leases(text, daemon->books);
    add_counters(text, daemon);
    add_vms(text, daemon);
    g_string_append(text, "# EOF\n");
}

/* ---- Where they go --------------------------------------------------------------------------- */

static void answer(struct daemon *daemon, const struct credentials *credentials, char *line,
                   size_t length, GString *text)
{
    const struct config *config = daemon->config;
    bool http = g_str_has_prefix(line, "GET ");
    GString *body = g_string_new(NULL);
    bool allowed = policy_allows(policy_find(config->policies, config->policy_count, credentials),
                                 RIGHT_OBSERVER);

    (void)length;
    if (allowed)
        add_all(body, daemon);
    else
        g_string_append_printf(body, "# uid %u may not observe\n# EOF\n", credentials->uid);
    if (http)
        g_string_append_printf(
            text,
            "HTTP/1.1 %s\r\nContent-Type: application/openmetrics-text; version=1.0.0; "
            "charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
            allowed ? "200 OK" : "403 Forbidden", body->len);
    g_string_append_len(text, body->str, (gssize)body->len);
    g_string_free(body, TRUE);
}

void metrics_accept(struct daemon *daemon, int fd)
{
    static const struct text_service service = {.answer = answer, .once = true};

    text_accept(daemon, fd, &service);
}

static void write_textfile(struct daemon *daemon)
{
    GString *text = g_string_new(NULL);

    add_all(text, daemon);
    if (file_replace(daemon->config->textfile, text->str, text->len, 0644))
        log_event(LOG_ERR, "textfile-not-written", TEXT("file", daemon->config->textfile),
                  TEXT("why", strerror(errno)));
    g_string_free(text, TRUE);
}

static void textfile_is_due(struct loop_timer *timer)
{
    struct daemon *daemon = OWNER_OF(timer, struct daemon, textfile);

    if (daemon->config->textfile)
        write_textfile(daemon);
    loop_timer_set(daemon->loop, timer, TEXTFILE_MS);
}

void metrics_start(struct daemon *daemon)
{
    daemon->textfile.due = textfile_is_due;
    textfile_is_due(&daemon->textfile);
}
