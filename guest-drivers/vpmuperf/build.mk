# SPDX-License-Identifier: BSD-3-Clause
# vpmuperf: the provider of counter sets. What needs no Windows is vpmuperf_pure_SRC.

vpmuperf_pure_SRC := $(addprefix guest-drivers/vpmuperf/,counters.c publish.c sync.c manifest.c)
vpmuperf_SRC := $(vpmuperf_pure_SRC) $(source_SRC) \
	$(addprefix guest-drivers/vpmuperf/,provider.c install.c service.c main.c vpmuperf.rc)

EXES += vpmuperf
exe_vpmuperf_SRC := $(vpmuperf_SRC)
exe_vpmuperf_LIBS := -ladvapi32

UNIT_TESTS += vpmuperf
unit_vpmuperf_SRC := $(wildcard tests/unit/vpmuperf_*.c) $(vpmuperf_pure_SRC) $(source_SRC)
unit_vpmuperf_CFLAGS := $(DRIVERS_INCLUDE) -D_GNU_SOURCE

$(DRIVERS_OUT)/exe/vpmuperf/guest-drivers/vpmuperf/vpmuperf.rc.o \
$(DRIVERS_OUT)/exe/wine/vpmuperf-double/guest-drivers/vpmuperf/vpmuperf.rc.o: guest-drivers/vpmuperf/counters.def
