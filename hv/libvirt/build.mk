# SPDX-License-Identifier: BSD-3-Clause
# Domains of libvirt. The hook and the schema need libxml2, vpmuctl-domain libvirt too.
domain_SRC = hv/libvirt/xml.c hv/libvirt/pmu.c hv/libvirt/domain.c $(filter_SRC)
domain_CFLAGS = -D_GNU_SOURCE $(shell pkg-config --cflags libxml-2.0)
domain_LIBS = $(shell pkg-config --libs libxml-2.0)

PROGRAMS += vpmu-libvirt-hook
prog_vpmu-libvirt-hook_SRC = hv/libvirt/hook.c hv/libvirt/ask.c $(domain_SRC) $(client_SRC)
prog_vpmu-libvirt-hook_CFLAGS = $(domain_CFLAGS)
prog_vpmu-libvirt-hook_LIBS = $(domain_LIBS)

PROGRAMS += vpmuctl-domain
prog_vpmuctl-domain_SRC = hv/libvirt/vpmuctl_domain.c hv/libvirt/difference.c hv/libvirt/ask.c $(domain_SRC) $(client_SRC)
prog_vpmuctl-domain_CFLAGS = $(domain_CFLAGS) $(shell pkg-config --cflags libvirt)
prog_vpmuctl-domain_LIBS = $(domain_LIBS) $(shell pkg-config --libs libvirt)
prog_vpmuctl-domain_PACKAGES := domain

domain_PACKAGES := base domain

UNIT_TESTS += domain
unit_domain_SRC = $(wildcard tests/unit/domain_*.c) $(domain_SRC)
unit_domain_CFLAGS = $(domain_CFLAGS)
unit_domain_LIBS = $(domain_LIBS)

FUZZ_TARGETS += domain
fuzz_domain_SRC = tests/fuzz/domain.c $(domain_SRC)
fuzz_domain_CFLAGS = $(domain_CFLAGS)
fuzz_domain_LIBS = $(domain_LIBS)
fuzz_domain_FLAGS := -max_len=8192

FUZZ_TARGETS += hook
fuzz_hook_SRC = tests/fuzz/hook.c hv/libvirt/ask.c $(domain_SRC)
fuzz_hook_CFLAGS = $(domain_CFLAGS)
fuzz_hook_LIBS = $(domain_LIBS)
fuzz_hook_FLAGS := -max_len=8192
