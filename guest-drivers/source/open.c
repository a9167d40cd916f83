/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "internal.h"

#define FILE_PREFIX "file:"

static struct source *open_driver(struct source_error *error)
{
    struct source_driver *driver = malloc(sizeof(*driver));
    struct source_device device;

    if (!driver) {
        *error = (struct source_error){.what = "out of memory"};
        return NULL;
    }
    if (source_device_open(&device, error) < 0) {
        free(driver);
        return NULL;
    }
    source_driver_init(driver, device);
    driver->release = free;
    return &driver->source;
}

struct source *source_open(const char *from, struct source_error *error)
{
    *error = (struct source_error){0};
    if (!from || strcmp(from, "driver") == 0)
        return open_driver(error);
    if (strncmp(from, FILE_PREFIX, strlen(FILE_PREFIX)) == 0)
        return source_open_file(from + strlen(FILE_PREFIX), error);
    error->what = "a source is \"driver\" or \"file:PATH\"";
    return NULL;
}
