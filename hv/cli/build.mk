# SPDX-License-Identifier: BSD-3-Clause
PROGRAMS += vpmuctl
prog_vpmuctl_SRC = $(wildcard hv/cli/*.c) $(host_SRC) $(client_SRC)
prog_vpmuctl_CFLAGS = $(host_CFLAGS)
prog_vpmuctl_LIBS = $(host_LIBS)

UNIT_TESTS += cli
unit_cli_SRC = $(wildcard tests/unit/cli_*.c) $(filter-out hv/cli/main.c,$(wildcard hv/cli/*.c)) $(host_SRC) $(client_SRC)
unit_cli_CFLAGS = $(host_CFLAGS)
unit_cli_LIBS = $(host_LIBS)
