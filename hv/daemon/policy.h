// SPDX-License-Identifier: BSD-3-Clause
/* Who may ask for what: a peer's credentials, as the kernel gives them, against the configuration.
 */
#ifndef VPMUD_POLICY_H
#define VPMUD_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a policy lets its peers do. */
enum right {
    RIGHT_VM,       /* have a lease for a VM */
    RIGHT_PROFILER, /* have a CPU-wide lease */
    RIGHT_HOOK,     /* reserve for a VM that starts */
    RIGHT_OBSERVER, /* see what there is */
    RIGHT_REVOKE,   /* take a lease away, have the configuration read */
    RIGHTS,
};

/* As the configuration writes them. */
extern const char *const right_names[RIGHTS];

/* Ids of users or groups. */
struct ids {
    bool any;
    uint32_t count;
    uint32_t *list;
};

#define POLICY_NAME 32u

/* A section [policy NAME]. A peer is under the first one that names its user or one of its groups.
 */
struct policy {
    char name[POLICY_NAME];
    struct ids uids;
    struct ids gids;
    uint32_t may;       /* set of enum right */
    uint32_t max_gp;    /* counters that one lease may ask for */
    uint32_t max_fixed; /* set of fixed counters that one lease may ask for */
};

/* Who is at the other end of a socket. */
struct credentials {
    pid_t pid;
    uid_t uid;
    uint32_t group_count; /* of groups: its group, then the supplementary ones */
    gid_t *groups;
};

/* Reads them from a connected UNIX socket. 0, or -1 and errno. credentials_free() in any case. */
int credentials_read(int fd, struct credentials *credentials);
void credentials_free(struct credentials *credentials);

/* NULL: no policy names this peer. */
const struct policy *policy_find(const struct policy *policies, size_t count,
                                 const struct credentials *credentials);

static inline bool policy_allows(const struct policy *policy, enum right right)
{
    return policy && policy->may >> right & 1;
}

#endif
