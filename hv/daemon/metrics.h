// SPDX-License-Identifier: BSD-3-Clause
/* Metrics as OpenMetrics text, on a socket and as a textfile of node_exporter. */
#ifndef VPMUD_METRICS_H
#define VPMUD_METRICS_H

#include "daemon.h"

/* A connection to the metrics' socket: any line is answered, "GET ..." as HTTP. */
void metrics_accept(struct daemon *daemon, int fd);

/* Writes the textfile now and then, if the configuration has one. */
void metrics_start(struct daemon *daemon);

#endif
