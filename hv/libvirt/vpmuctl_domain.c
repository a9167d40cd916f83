// SPDX-License-Identifier: BSD-3-Clause
/*
 * vpmuctl-domain: the PMU of libvirt's domains. vpmuctl executes it, so that vpmuctl itself needs
 * no libvirt.
 */
#include <getopt.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hv/libvirt/ask.h"
#include "hv/libvirt/difference.h"

#define NO_DOMAIN 66 /* EX_NOINPUT of sysexits.h */
#define USAGE 64
#define PROBE_S 1u

struct options {
    const char *uri; /* NULL: libvirt's usual one */
    bool dry_run;
    char **set; /* name and value of attributes, and of the lists allow and deny; NULL ends */
};

static void say(const char *name, const char *text)
{
    fprintf(stderr, "vpmuctl domain: %s%s%s\n", name, *name ? ": " : "", text);
}

static const char *libvirt_says(void)
{
    const virError *error = virGetLastError();

    return error && error->message ? error->message : "libvirt gives no reason";
}

/* ---- Domains ---- */

/* libvirt prints errors by itself otherwise. */
static void say_nothing(void *data, virErrorPtr error)
{
    (void)data;
    (void)error;
}

static virConnectPtr open_libvirt(const struct options *options)
{
    virSetErrorFunc(NULL, say_nothing);
    virConnectPtr connection = virConnectOpen(options->uri);

    if (!connection)
        say("", libvirt_says());
    return connection;
}

/* By name or UUID; NULL: it has been said why not. */
static virDomainPtr find_domain(virConnectPtr connection, const char *name)
{
    virDomainPtr domain = virDomainLookupByName(connection, name);

    if (!domain)
        domain = virDomainLookupByUUIDString(connection, name);
    if (!domain)
        say(name, "there is no such domain (virsh list --all)");
    return domain;
}

/* The definition that the next start has. */
static char *definition_of(virDomainPtr domain)
{
    return virDomainGetXMLDesc(domain, VIR_DOMAIN_XML_INACTIVE | VIR_DOMAIN_XML_SECURE);
}

/* Runs one on a domain's definition; its status, or NO_DOMAIN. */
static int with_definition(const struct options *options, const char *name,
                           int (*run)(const struct options *, virDomainPtr, const char *xml))
{
    virConnectPtr connection = open_libvirt(options);
    virDomainPtr domain = connection ? find_domain(connection, name) : NULL;
    char *xml = domain ? definition_of(domain) : NULL;
    int status = NO_DOMAIN;

    if (xml)
        status = run(options, domain, xml);
    else if (domain)
        say(name, libvirt_says());
    free(xml);
    if (domain)
        virDomainFree(domain);
    if (connection)
        virConnectClose(connection);
    return status;
}

/* ---- enable and disable ---- */

static int set_events(struct pmu_events *events, const char *list, struct xml_error *error)
{
    char event[PMU_EVENT_SIZE];

    events->count = 0;
    for (size_t size; *list; list += size + (list[size] == ',')) {
        size = strcspn(list, ",");
        snprintf(event, sizeof(event), "%.*s", (int)size, list);
        if (pmu_add_event(events, event, error))
            return -1;
    }
    return 0;
}

/* What the options say, upon what stands there already. */
static int apply(const struct options *options, struct pmu *pmu, struct xml_error *error)
{
    for (char **set = options->set; *set; set += 2) {
        struct pmu_events *events = !strcmp(set[0], "allow")  ? &pmu->allow
                                    : !strcmp(set[0], "deny") ? &pmu->deny
                                                              : NULL;

        if (events ? set_events(events, set[1], error) : pmu_set(pmu, set[0], set[1], error))
            return -1;
    }
    return pmu_check(pmu, error);
}

static int enable_in(xmlDoc *doc, const struct options *options, struct xml_error *error)
{
    struct pmu pmu;

    if (pmu_of_domain(xmlDocGetRootElement(doc), &pmu, error) < 0 || apply(options, &pmu, error))
        return -1;
    return domain_enable(doc, &pmu, error);
}

static int disable_in(xmlDoc *doc, const struct options *options, struct xml_error *error)
{
    (void)options;
    return domain_disable(doc, error);
}

/* Defines it anew, and says from when it holds. */
static int define(virDomainPtr domain, const char *xml)
{
    virDomainPtr defined = virDomainDefineXML(virDomainGetConnect(domain), xml);

    if (!defined) {
        say(virDomainGetName(domain), libvirt_says());
        return 1;
    }
    virDomainFree(defined);
    if (virDomainIsActive(domain) == 1)
        printf("%s runs as it is until it is started anew\n", virDomainGetName(domain));
    return 0;
}

static int change(const struct options *options, virDomainPtr domain, const char *xml,
                  int (*edit)(xmlDoc *, const struct options *, struct xml_error *))
{
    struct xml_error error;
    xmlDoc *doc = xml_load(xml, strlen(xml), "domain", &error);
    xmlChar *after = NULL;
    int size = 0, status = 1;

    if (!doc || edit(doc, options, &error) < 0) {
        say(virDomainGetName(domain), error.text);
    } else {
        xmlDocDumpMemory(doc, &after, &size);
        status = options->dry_run ? difference_print(xml, (const char *)after) != 0
                                  : define(domain, (const char *)after);
    }
    xmlFree(after);
    xmlFreeDoc(doc);
    return status;
}

static int enable(const struct options *options, virDomainPtr domain, const char *xml)
{
    return change(options, domain, xml, enable_in);
}

static int disable(const struct options *options, virDomainPtr domain, const char *xml)
{
    return change(options, domain, xml, disable_in);
}

/* ---- show and list ---- */

static void print_events(const char *title, const struct pmu_events *events)
{
    for (unsigned i = 0; i < events->count; i++)
        printf("%-10s %s\n", i ? "" : title, events->event[i]);
}

static void print_pmu(const struct pmu *pmu)
{
    char asked[80];

    pmu_describe(pmu, asked, sizeof(asked));
    printf("%-10s %s\n", "asks for", asked);
    printf("%-10s %s\n", "class", pmu_class_name(pmu->event_class));
    print_events("allows", &pmu->allow);
    print_events("denies", &pmu->deny);
    printf("%-10s %s%s\n", "policy", pmu_policy_name(pmu->policy),
           pmu->yields ? ", gives way to host profilers" : "");
    printf("%-10s %s\n", "device", pmu->status ? "yes" : "no");
    printf("%-10s %s\n", "vpmud", pmu->socket);
}

/* 1: it has one; 0: none; -1: what is wrong stands in error. */
static int pmu_of_text(const char *xml, struct pmu *pmu, struct domain *domain,
                       struct xml_error *error)
{
    xmlDoc *doc = xml_load(xml, strlen(xml), "domain", error);
    const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
    int found = root ? pmu_of_domain(root, pmu, error) : -1;

    if (found >= 0 && domain_identify(root, domain, error))
        found = -1;
    xmlFreeDoc(doc);
    return found;
}

/* As above; what is wrong has been said, and that there is none. */
static bool find_pmu(const char *name, const char *xml, struct pmu *pmu, struct domain *domain)
{
    struct xml_error error;
    const int found = pmu_of_text(xml, pmu, domain, &error);

    if (found != 1)
        say(name, found ? error.text : "it has no counters (vpmuctl domain enable)");
    return found == 1;
}

static int show(const struct options *options, virDomainPtr domain, const char *xml)
{
    struct domain identity;
    struct pmu pmu;

    (void)options;
    if (!find_pmu(virDomainGetName(domain), xml, &pmu, &identity))
        return 1;
    print_pmu(&pmu);
    return 0;
}

static void print_row(virDomainPtr domain)
{
    char *xml = definition_of(domain);
    struct xml_error error;
    struct domain identity;
    struct pmu pmu;
    const int found = xml ? pmu_of_text(xml, &pmu, &identity, &error) : 0;

    if (found == 1)
        printf("%-32.32s %-7s %3u %5u %-13s %s\n", virDomainGetName(domain),
               virDomainIsActive(domain) == 1 ? "running" : "off", pmu.counters, pmu.fixed,
               pmu_class_name(pmu.event_class), pmu_policy_name(pmu.policy));
    else if (found < 0)
        say(virDomainGetName(domain), error.text);
    free(xml);
}

static int list(const struct options *options)
{
    virConnectPtr connection = open_libvirt(options);
    virDomainPtr *domains = NULL;
    const int count = connection ? virConnectListAllDomains(connection, &domains, 0) : -1;

    if (count < 0)
        return NO_DOMAIN;
    printf("%-32s %-7s %3s %5s %-13s %s\n", "DOMAIN", "STATE", "GP", "FIXED", "CLASS", "POLICY");
    for (int i = 0; i < count; i++) {
        print_row(domains[i]);
        virDomainFree(domains[i]);
    }
    free((void *)domains);
    virConnectClose(connection);
    return 0;
}

/* ---- check ---- */

/*
 * Asks as a start would, under a UUID of its own: a domain that runs, or is about to, keeps what it
 * has.
 */
static int check_text(const char *name, const char *xml)
{
    struct vpmu_client_answer answer;
    struct vpmu_client_error error;
    struct domain domain;
    struct pmu pmu;

    if (!find_pmu(name, xml, &pmu, &domain) ||
        getrandom(domain.uuid, sizeof(domain.uuid), 0) != (ssize_t)sizeof(domain.uuid))
        return 1;
    if (ask_reserve(&pmu, &domain, PROBE_S, &answer, &error)) {
        ask_explain(stdout, &pmu, &domain, &error);
        return 1;
    }
    ask_unreserve(&pmu, &domain, &error);
    printf("%s: would get %u general-purpose and %d fixed counters\n", domain.name,
           answer.grant.granted.gp, __builtin_popcount(answer.grant.granted.fixed));
    if (*answer.grant.text)
        printf("  because: %s\n", answer.grant.text);
    return 0;
}

static int check(const struct options *options, virDomainPtr domain, const char *xml)
{
    (void)options;
    return check_text(virDomainGetName(domain), xml);
}

static int check_input(void)
{
    char *text = malloc(XML_SIZE_MAX + 1);
    int status = 1;

    if (text) {
        text[fread(text, 1, XML_SIZE_MAX, stdin)] = '\0';
        status = check_text("the domain on standard input", text);
    }
    free(text);
    return status;
}

/* ---- migrate-check ---- */

/* "check" where it is to go, with the definition that it has here. vpmud speaks to its own host
 * alone, so ssh goes there, as it does for libvirt's own qemu+ssh. */
static int check_at(const char *destination, const char *xml)
{
    const char *ssh = getenv("VPMU_SSH");
    int input[2];

    if (pipe(input))
        return 1;
    const pid_t child = fork();

    if (!child) {
        dup2(input[0], STDIN_FILENO);
        close(input[0]);
        close(input[1]);
        execlp(ssh ? ssh : "ssh", ssh ? ssh : "ssh", "--", destination, "vpmuctl", "domain",
               "check", "-", (char *)NULL);
        say(ssh ? ssh : "ssh", "cannot be executed");
        _exit(127);
    }
    close(input[0]);
    FILE *stream = fdopen(input[1], "w");
    int status = -1;

    if (stream) {
        fputs(xml, stream);
        fclose(stream);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int migrate_check(const struct options *options, virDomainPtr domain, const char *xml)
{
    (void)domain;
    return check_at(options->set[0], xml);
}

/* ---- Arguments ---- */

static const char help[] =
    "usage: vpmuctl domain enable DOMAIN [OPTION...]    give it counters\n"
    "       vpmuctl domain disable DOMAIN [--dry-run]   take them away, undo all\n"
    "       vpmuctl domain show DOMAIN                  what it has\n"
    "       vpmuctl domain list                         all that have some\n"
    "       vpmuctl domain check DOMAIN|-               would it start here?\n"
    "       vpmuctl domain migrate-check DOMAIN HOST    would it start there? (ssh)\n"
    "\n"
    "A change holds from the domain's next start on. Options, also of a domain that\n"
    "has counters already, which keeps what is not named:\n"
    "\n"
    "  --counters N     general-purpose counters (4)\n"
    "  --fixed N        fixed counters: 3 or 4 on Intel's processors, 0 on AMD's (0)\n"
    "  --least N        with --policy reduce: so many are enough\n"
    "  --class CLASS    events: any, architectural, standard, enhanced (any)\n"
    "  --events LIST    these events, too; with class any: only these\n"
    "  --deny LIST      not these events\n"
    "  --policy POLICY  if there are fewer: refuse, reduce, hide (refuse)\n"
    "  --yields yes|no  give way to profilers of the host (no)\n"
    "  --status yes|no  have the status device (yes)\n"
    "  --socket PATH    of vpmud\n"
    "  --dry-run        show the difference, change nothing\n"
    "  -c, --connect URI  of libvirt\n"
    "\n"
    "Exit status: 0 done, or it would start; 1 not, and why; 64 wrong arguments;\n"
    "66 libvirt, or the domain, is not there.\n";

static int usage(FILE *to)
{
    fputs(help, to);
    return to == stdout ? 0 : USAGE;
}

/* Rows from 0 on name an attribute; events is the list allow. */
static const struct option words[] = {
    {"counters", required_argument, NULL, 's'}, {"fixed", required_argument, NULL, 's'},
    {"least", required_argument, NULL, 's'},    {"class", required_argument, NULL, 's'},
    {"events", required_argument, NULL, 's'},   {"deny", required_argument, NULL, 's'},
    {"policy", required_argument, NULL, 's'},   {"yields", required_argument, NULL, 's'},
    {"status", required_argument, NULL, 's'},   {"socket", required_argument, NULL, 's'},
    {"dry-run", no_argument, NULL, 'n'},        {"connect", required_argument, NULL, 'c'},
    {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
};

/* Whether all words are known. help: it was asked for. */
static bool take_options(int argc, char **argv, struct options *options, bool *help_asked)
{
    size_t count = 0;
    int row, letter;

    while ((letter = getopt_long(argc, argv, "c:h", words, &row)) != -1) {
        if (letter == 's') {
            const bool events = !strcmp(words[row].name, "events");

            options->set[count++] = (char *)(events ? "allow" : words[row].name);
            options->set[count++] = optarg;
        }
        options->uri = letter == 'c' ? optarg : options->uri;
        options->dry_run |= letter == 'n';
        *help_asked |= letter == 'h';
        if (letter == '?')
            return false;
    }
    return true;
}

static const struct command {
    const char *name;
    int (*run)(const struct options *, virDomainPtr, const char *xml);
    int words; /* behind it */
    bool sets; /* takes the options of an attribute */
} commands[] = {
    {"enable", enable, 1, true}, {"disable", disable, 1, false},
    {"show", show, 1, false},    {"list", NULL, 0, false},
    {"check", check, 1, false},  {"migrate-check", migrate_check, 2, false},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static int run(int argc, char **argv, struct options *options)
{
    bool help_asked = false;

    if (!take_options(argc, argv, options, &help_asked))
        return usage(stderr);
    if (help_asked)
        return usage(stdout);
    const struct command *command = optind < argc ? find_command(argv[optind]) : NULL;

    if (!command || argc - optind != command->words + 1 || (options->set[0] && !command->sets))
        return usage(stderr);
    if (!command->run)
        return list(options);
    if (command->run == check && !strcmp(argv[optind + 1], "-"))
        return check_input();
    if (command->words == 2)
        options->set[0] = argv[optind + 2];
    return with_definition(options, argv[optind + 1], command->run);
}

int main(int argc, char **argv)
{
    struct options options = {.set = (char **)calloc(2 * (size_t)argc + 2, sizeof(char *))};

    if (!options.set)
        return 1;
    const int status = run(argc, argv, &options);

    free((void *)options.set);
    return status;
}
