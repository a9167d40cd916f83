// SPDX-License-Identifier: BSD-3-Clause
/* Looks at the host, and enters into the books what is there without having asked. */
#ifndef VPMUD_OBSERVE_H
#define VPMUD_OBSERVE_H

#include "daemon.h"

/* The first look: fills daemon->host. 0, or -1 and error. */
int observe_begin(struct daemon *daemon, struct vpmu_host_error *error);

/* Enters what was seen, and looks again at the configuration's interval. After books_new(). */
void observe_start(struct daemon *daemon);

/* Looks now, and from now on at the configuration's interval. */
void observe_again(struct daemon *daemon);

/* Whether KVM gives no guest of this host a PMU; text says why. */
bool observe_bars_vms(const struct daemon *daemon, char *text, size_t size);

#endif
