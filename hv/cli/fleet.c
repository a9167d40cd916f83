// SPDX-License-Identifier: BSD-3-Clause
/*
 * vpmuctl fleet: what a VM can have on this host, as schedulers of fleets want to be told.
 *
 * A processor's counters belong to the vCPU that runs on it: VMs do not use each other's up. So
 * what limits a VM is how many counters a processor has beside CPU-wide holders, and not how many
 * VMs there are. An inventory says the first by the most that one VM can have, and has more pieces
 * than there will ever be VMs.
 */
#include "hv/cli/cli.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define PIECES 65536u /* for so many VMs: as many leases as vpmud keeps, unless configured */
#define FIXED_MAX 16u

struct inventory {
    unsigned gp, fixed; /* on every processor, beside CPU-wide holders; fixed: set */
    char vendor[16];    /* in capitals */
};

static unsigned amount(struct json_object *row, const char *of, const char *which)
{
    struct json_object *object = json_object_object_get(row, of);

    return (unsigned)json_object_get_int(json_object_object_get(object, which));
}

/* From vpmud's answer to {"op": "host"}. Nothing where no VM gets counters. */
static struct inventory inventory_of(struct json_object *host)
{
    struct json_object *rows = json_object_object_get(host, "processors");
    const char *bars = json_object_get_string(json_object_object_get(host, "bars_vms"));
    const char *vendor = json_object_get_string(json_object_object_get(host, "vendor"));
    const size_t count =
        json_object_is_type(rows, json_type_array) ? json_object_array_length(rows) : 0;
    struct inventory inventory = {.gp = UINT32_MAX, .fixed = (1u << FIXED_MAX) - 1};
    bool online = false;

    for (size_t i = 0; vendor && vendor[i] && i < sizeof(inventory.vendor) - 1; i++)
        inventory.vendor[i] =
            (char)(isalnum((unsigned char)vendor[i]) ? toupper((unsigned char)vendor[i]) : '_');
    for (size_t i = 0; i < count; i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        const unsigned gp = amount(row, "capacity", "gp"), taken = amount(row, "cpu_wide", "gp");
        const unsigned left = taken < gp ? gp - taken : 0;

        if (!json_object_get_boolean(json_object_object_get(row, "online")))
            continue;
        online = true;
        inventory.gp = left < inventory.gp ? left : inventory.gp;
        inventory.fixed &= amount(row, "capacity", "fixed") & ~amount(row, "cpu_wide", "fixed");
    }
    if (!online || (bars && *bars))
        inventory.gp = inventory.fixed = 0;
    return inventory;
}

/* ---- OpenStack Nova: a provider configuration file, schema 1.0 ------------------------------- */

/* Of one resource class a VM can have `most`. */
static void print_class(const char *name, unsigned most)
{
    printf("        - %s:\n"
           "            total: %u\n"
           "            reserved: 0\n"
           "            min_unit: 1\n"
           "            max_unit: %u\n"
           "            step_size: 1\n"
           "            allocation_ratio: 1.0\n",
           name, most * PIECES, most);
}

static void print_nova(const struct inventory *inventory)
{
    fputs("meta:\n"
          "  schema_version: '1.0'\n"
          "providers:\n"
          "  - identification:\n"
          "      uuid: $COMPUTE_NODE\n",
          stdout);
    if (!inventory->gp && !inventory->fixed)
        return;
    puts("    inventories:\n"
         "      additional:");
    if (inventory->gp)
        print_class("CUSTOM_VPMU_GP", inventory->gp);
    for (unsigned i = 0; i < FIXED_MAX; i++) {
        char name[24];

        snprintf(name, sizeof(name), "CUSTOM_VPMU_FIXED%u", i);
        if (inventory->fixed >> i & 1)
            print_class(name, 1);
    }
    printf("    traits:\n"
           "      additional:\n"
           "        - CUSTOM_VPMU_%s\n",
           inventory->vendor);
}

/* ---- Kubernetes ------------------------------------------------------------------------------ */

static struct json_object *child(struct json_object *parent, const char *name)
{
    struct json_object *object = json_object_new_object();

    json_object_object_add(parent, name, object);
    return object;
}

static void add_number(struct json_object *object, const char *key, unsigned number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    json_object_object_add(object, key, json_object_new_string(text));
}

/* A merge patch of a Node. A label's value is a text; node affinity compares it as a number (Gt).
 */
static void print_labels(const struct inventory *inventory)
{
    struct json_object *patch = json_object_new_object();
    struct json_object *labels = child(child(patch, "metadata"), "labels");

    add_number(labels, "vpmu/gp", inventory->gp);
    for (unsigned i = 0; i < FIXED_MAX; i++) {
        char name[24];

        snprintf(name, sizeof(name), "vpmu/fixed%u", i);
        json_object_object_add(labels, name,
                               inventory->fixed >> i & 1 ? json_object_new_string("yes") : NULL);
    }
    json_object_object_add(labels, "vpmu/vendor", json_object_new_string(inventory->vendor));
    cli_print_json(patch);
}

/*
 * A merge patch of a Node's status. Kubernetes has no most for one pod, so there is a resource for
 * each number of counters, and a VM takes one piece of that.
 */
static void print_resources(const struct inventory *inventory)
{
    struct json_object *patch = json_object_new_object();
    struct json_object *capacity = child(child(patch, "status"), "capacity");

    for (unsigned n = 1; n <= 32; n++) {
        char name[24];

        snprintf(name, sizeof(name), "vpmu/gp-%u", n);
        if (n <= inventory->gp)
            add_number(capacity, name, PIECES);
        else
            json_object_object_add(capacity, name, NULL); /* what an earlier patch gave is taken */
    }
    cli_print_json(patch);
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct format {
    const char *name;
    void (*print)(const struct inventory *inventory);
} formats[] = {
    {"nova", print_nova},
    {"labels", print_labels},
    {"resources", print_resources},
};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static const char help[] =
    "usage: vpmuctl fleet [--control SOCKET] FORMAT\n"
    "\n"
    "What one VM can have on this host, for the scheduler of a fleet. FORMAT:\n"
    "\n"
    "  nova              a provider configuration file for OpenStack's nova-compute\n"
    "  labels            a patch of a Kubernetes node: labels, for affinity\n"
    "  resources         a patch of its status: extended resources\n"
    "\n"
    "  --control SOCKET  vpmud's (" CONTROL_SOCKET ")\n";

static const struct format *format_of(const char *name)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (!strcmp(name, formats[i].name))
            return &formats[i];
    return NULL;
}

int cli_fleet(int argc, char **argv)
{
    const char *path = NULL;
    const struct cli_option options[] = {{"control", 0, NULL, &path}, {NULL, 0, NULL, NULL}};
    int status;
    const int word = cli_options(argc, argv, options, 1, help, &status);
    const struct format *format = word < 0 ? NULL : format_of(argv[word]);
    struct inventory inventory;
    struct json_object *host;

    if (word < 0)
        return status;
    if (!format) {
        fprintf(stderr, "vpmuctl fleet: there is no format %s; --help names them\n", argv[word]);
        return CLI_USAGE;
    }
    host = cli_ask(argv[0], path, "host", NULL, NULL, &status);
    if (!host)
        return status;
    if (json_object_get_boolean(json_object_object_get(host, "described")))
        fputs("vpmuctl fleet: this is about the machine of a file, not about this one\n", stderr);
    inventory = inventory_of(host);
    format->print(&inventory);
    json_object_put(host);
    return 0;
}
