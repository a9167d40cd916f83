// SPDX-License-Identifier: BSD-3-Clause
#include "policy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "needs.h"

NEEDS("getsockopt");

const char *const right_names[RIGHTS] = {
    [RIGHT_VM] = "vm",         [RIGHT_PROFILER] = "profiler",
    [RIGHT_HOOK] = "hook",     [RIGHT_OBSERVER] = "observer",
    [RIGHT_REVOKE] = "revoke",
};

/* SO_PEERGROUPS (Linux 4.13) says with ERANGE how much room it wants. */
static int read_groups(int fd, struct credentials *credentials, gid_t own)
{
    gid_t none;
    socklen_t size = 0;

    getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &none, &size);
    credentials->groups = malloc(sizeof(gid_t) + size);
    if (!credentials->groups)
        return -1;
    credentials->groups[0] = own;
    if (size && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, credentials->groups + 1, &size))
        return -1;
    credentials->group_count = 1 + (uint32_t)(size / sizeof(gid_t));
    return 0;
}

int credentials_read(int fd, struct credentials *credentials)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    memset(credentials, 0, sizeof(*credentials));
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return -1;
    credentials->pid = peer.pid;
    credentials->uid = peer.uid;
    return read_groups(fd, credentials, peer.gid);
}

void credentials_free(struct credentials *credentials)
{
    free(credentials->groups);
    credentials->groups = NULL;
    credentials->group_count = 0;
}

static bool names(const struct ids *ids, uint32_t id)
{
    if (ids->any)
        return true;
    for (uint32_t i = 0; i < ids->count; i++)
        if (ids->list[i] == id)
            return true;
    return false;
}

static bool names_peer(const struct policy *policy, const struct credentials *credentials)
{
    if (names(&policy->uids, credentials->uid))
        return true;
    for (uint32_t i = 0; i < credentials->group_count; i++)
        if (names(&policy->gids, credentials->groups[i]))
            return true;
    return false;
}

const struct policy *policy_find(const struct policy *policies, size_t count,
                                 const struct credentials *credentials)
{
    for (size_t i = 0; i < count; i++)
        if (names_peer(&policies[i], credentials))
            return &policies[i];
    return NULL;
}
