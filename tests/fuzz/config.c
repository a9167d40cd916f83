// SPDX-License-Identifier: BSD-3-Clause
/* vpmud's configuration: any text is either valid, and then within its limits, or refused in words.
 */
#include <stdlib.h>
#include <string.h>

#include "hv/daemon/config.h"

static void must(bool good)
{
    if (!good)
        abort();
}

static void check_policy(const struct policy *policy)
{
    const struct credentials root = {.uid = 0};

    must(policy->may && policy->may < 1u << RIGHTS);
    must(policy->max_gp <= 32 && policy->max_fixed <= 0xFFFF);
    must(strlen(policy->name) < POLICY_NAME);
    (void)policy_find(policy, 1, &root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config_error error = {""};
    struct config *config = config_parse((const char *)data, size, &error);

    if (!config) {
        must(*error.text && strlen(error.text) < sizeof(error.text));
        return 0;
    }
    must(config->policy_count && *config->socket == '/' && *config->state == '/');
    must(config->leases && config->connections && config->queue_bytes >= 8192);
    must(config_may_follow(config, config, &error));
    for (size_t i = 0; i < config->policy_count; i++)
        check_policy(&config->policies[i]);
    config_free(config);
    return 0;
}
