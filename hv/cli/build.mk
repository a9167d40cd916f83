# SPDX-License-Identifier: BSD-3-Clause
PROGRAMS += vpmuctl
prog_vpmuctl_SRC = $(wildcard hv/cli/*.c) $(host_SRC)
prog_vpmuctl_CFLAGS = $(host_CFLAGS)
prog_vpmuctl_LIBS = $(host_LIBS)
