# SPDX-License-Identifier: BSD-3-Clause
# vpmud over its real sockets; see tests/daemon/run. The sanitized one goes through the same cases.

PROGRAMS += vpmuctl-asan vpmud-asan sandbox-probe bench-client client-probe die-at.so
prog_bench-client_SRC := tests/daemon/bench_client.c
prog_bench-client_CFLAGS := -D_GNU_SOURCE

prog_die-at.so_SRC := tests/daemon/die_at.c
prog_die-at.so_CFLAGS := -D_GNU_SOURCE -fPIC
prog_die-at.so_LIBS := -shared

prog_client-probe_SRC = tests/daemon/client_probe.c $(client_SRC)
prog_client-probe_CFLAGS := -D_GNU_SOURCE $(SANITIZE)
prog_client-probe_LIBS := $(SANITIZE)

# As odd answers are borne.
prog_vpmuctl-asan_SRC = $(prog_vpmuctl_SRC)
prog_vpmuctl-asan_CFLAGS = $(prog_vpmuctl_CFLAGS) $(SANITIZE)
prog_vpmuctl-asan_LIBS = $(prog_vpmuctl_LIBS) $(SANITIZE)

prog_vpmud-asan_SRC = $(vpmud_SRC)
prog_vpmud-asan_CFLAGS = $(daemon_CFLAGS) $(SANITIZE)
prog_vpmud-asan_LIBS = $(daemon_LIBS) $(SANITIZE)
prog_vpmud-asan_PACKAGES := host

prog_sandbox-probe_SRC = tests/daemon/sandbox_probe.c $(filter-out hv/daemon/main.c,$(vpmud_SRC))
prog_sandbox-probe_CFLAGS = $(daemon_CFLAGS)
prog_sandbox-probe_LIBS = $(daemon_LIBS)
prog_sandbox-probe_PACKAGES := host

SUITES += daemon
daemon_PACKAGES := base unit host manual daemon
daemon_NEEDS = $(addprefix $(BUILD)/bin/,vpmud vpmud-asan sandbox-probe bench-client client-probe die-at.so vpmuctl vpmuctl-asan)

FUZZ_TARGETS += config
fuzz_config_SRC := tests/fuzz/config.c hv/daemon/config.c hv/daemon/policy.c hv/host/file.c
fuzz_config_CFLAGS = $(host_CFLAGS)
fuzz_config_LIBS = $(host_LIBS)
fuzz_config_FLAGS := -max_len=2048
