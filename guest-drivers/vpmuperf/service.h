/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VPMUPERF_SERVICE_H
#define VPMUPERF_SERVICE_H

#include "provider.h"

/** Runs the provider for the service manager. Returns 0, or 1 where that has not started us. */
int service_run(struct provider_options *options);

#endif
