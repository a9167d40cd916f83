// SPDX-License-Identifier: BSD-3-Clause
#include "reload.h"

#include <inttypes.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>

#include "log.h"
#include "observe.h"

static bool replace_config(struct daemon *daemon, struct config_error *error)
{
    struct config *next = config_load(daemon->config_path, error);

    if (!next)
        return false;
    if (!config_may_follow(daemon->config, next, error)) {
        config_free(next);
        return false;
    }
    config_free(daemon->config);
    daemon->config = next;
    return true;
}

bool reload_config(struct daemon *daemon, char *why, size_t size)
{
    struct config_error error;

    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, loop_now(daemon->loop) * 1000);
    if (replace_config(daemon, &error)) {
        daemon->statistics.reloads++;
        log_event(LOG_NOTICE, "reloaded", TEXT("file", daemon->config_path));
        observe_again(daemon);
        sd_notify(0, "READY=1\nSTATUS=serving");
        return true;
    }
    daemon->statistics.reload_errors++;
    snprintf(why, size, "%s: %s", daemon->config_path, error.text);
    log_event(LOG_ERR, "not-reloaded", TEXT("why", why), TEXT("then", "the old one stays"));
    sd_notify(0, "READY=1\nSTATUS=serving; the configuration on disk is not valid");
    return false;
}
