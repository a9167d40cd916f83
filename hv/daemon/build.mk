# SPDX-License-Identifier: BSD-3-Clause
# vpmud; host_SRC, wire_SRC and arbiter_SRC come from the fragments of those folders.
daemon_SRC := $(wildcard hv/daemon/*.c)
daemon_CFLAGS = $(host_CFLAGS)
daemon_LIBS = $(host_LIBS) $(shell pkg-config --libs libsystemd libseccomp libcap-ng)

# Shared by the programs that are made of vpmud's files.
vpmud_SRC = $(daemon_SRC) $(host_SRC) $(wire_SRC) $(arbiter_SRC)

PROGRAMS += vpmud
prog_vpmud_SRC = $(vpmud_SRC)
prog_vpmud_CFLAGS = $(daemon_CFLAGS)
prog_vpmud_LIBS = $(daemon_LIBS)
prog_vpmud_PACKAGES := host

host_PACKAGES := base host
