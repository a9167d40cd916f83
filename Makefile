# SPDX-License-Identifier: BSD-3-Clause
#
# vpmu: real hardware counters for virtual machines. `make help` lists the targets.
#
# Fragments (build.mk) beside the sources say what there is; the rules are here and in build-aux/.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := /bin/bash

BUILD ?= build
override BUILD := $(abspath $(BUILD))
FUZZ_S ?= 60
export BUILD FUZZ_S
# A tool manager's python3 ahead in PATH lacks Debian's packages.
export PYTHON := /usr/bin/python3
export QEMU := $(BUILD)/qemu/build/qemu-system-x86_64
export QEMU_STOCK := $(BUILD)/qemu-stock/build/qemu-system-x86_64
export QEMU_DATA := /usr/share/qemu /usr/share/seabios /usr/lib/ipxe/qemu

CC := gcc
CLANG := clang-19
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Werror
CFLAGS_LIB := -std=c11 -g $(WARNINGS) -Ihv/include -I. -MMD -MP
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

UNIT_TESTS :=
FUZZ_TARGETS :=
PROGRAMS :=
FREESTANDING :=
SUITES := unit fuzz

unit_PACKAGES := base unit lint source host domain
fuzz_PACKAGES := base fuzz
unit_NEEDS = $(UNIT_TESTS:%=$(BUILD)/unit/%) $(FREESTANDING:%.c=$(BUILD)/free/%.o)
fuzz_NEEDS = $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%)
qemu_PACKAGES := source qemu firmware

include $(wildcard hv/*/build.mk guest-drivers/build.mk tests/*/build.mk)

export CC UNIT_TESTS FUZZ_TARGETS FREESTANDING $(FUZZ_TARGETS:%=fuzz_%_FLAGS)

#@ The two commands
#: demo         what a Linux guest and a Windows driver read, beside an unpatched QEMU
#: test         set up what is missing and run every test; one sum at the end
#@ Building
#: qemu         the patched QEMU; its path is the last line
#: qemu-stock   the unpatched QEMU, configured alike
#: drivers      the Windows binaries below build/guest-drivers/
#: programs     the host programs below build/bin/
#: deb          Debian packages below build/deb/
#: clean        remove the build folder
#@ Tests, each ending with "N passed, N failed, N skipped"
#: check-unit   unit tests, layering, formatting, the patch series
#: check-guest  bare guest images under TCG
#: check-qemu   QEMU from outside: command line, monitor, migration, debugger
#: check-codegen generated code against the unpatched QEMU's
#: check-linux  Debian's kernel and perf in a guest
#: check-drivers the Windows images: what they import, how they are laid out
#: check-nt     the Windows drivers on the NT test guest
#: check-daemon vpmud over its real socket
#: check-deb    the Debian packages: built, installed, used, purged
#: check-lab    the real KVM in a TCG guest
#: check-libvirt a domain's XML, the hook, a loud refusal
#: check-wine   the Windows programs under Wine
#: fuzz         FUZZ_S seconds (60) for each fuzz target; 0 replays the corpora, as make test does
#: bench        patched against unpatched QEMU; build/bench/report.json, a table and a plot
#@ Variables
#: BUILD        the build folder (build)
#: SETUP=no     install nothing
#: V=1          show the compiler's command lines
#: QEMU_SRC     an unpacked QEMU source tree of yours, in place of Debian's
#: VPMU_CACHE   keeps QEMU's source and builds (~/.cache/vpmu if that folder exists, else below BUILD)

# What the tree does not have yet is not offered.
absent = $(filter-out $(SUITES:%=check-%),$(filter check-%,$(shell sed -n 's/^#: \(check-[a-z]*\).*/\1/p' Makefile))) \
	$(foreach t,demo bench,$(if $(wildcard tests/$(t)/run),,$(t))) $(if $(wildcard guest-drivers/build.mk),,drivers)

.PHONY: help
help:
	@awk -v absent=' $(absent) ' '/^#@/ { print "\n" substr($$0, 4) } \
		/^#: / && !index(absent, " " $$2 " ") { name = $$2; sub(/^#: [^ ]+ +/, ""); printf "  %-15s%s\n", name, $$0 }' Makefile

.PHONY: qemu qemu-stock programs clean
qemu: | setup-qemu
	@qemu-patches/build patched
qemu-stock: | setup-qemu
	@qemu-patches/build stock
programs: $(PROGRAMS:%=$(BUILD)/bin/%)
clean:
	rm -rf -- "$(BUILD)"

# --- Setting up -----------------------------------------------------------------------------------

# setup-GROUP installs a group of build-aux/packages; a goal's groups are installed in one go.
setup-%:
	@$(if $(filter no,$(SETUP)),:,build-aux/setup $(or $($*_PACKAGES),$*))

# --- Host code: one object for each source and use ------------------------------------------------

$(BUILD)/free/%.o: %.c Makefile | setup-base
	@mkdir -p $(@D)
	$(call run,CC,$@) $(CC) $(CFLAGS_LIB) -O2 -ffreestanding -c -o $@ $<

# run(WHAT, file): a short line in place of the command, which V=1 shows.
run = $(if $(V),,@echo "  $(1) $(2:$(BUILD)/%=%)";)

# BINARY_RULES(its variables, binary, compiler and flags, set-up group). Each binary has objects of
# its own: objects of different flags never mix.
objects = $(patsubst %.c,$(BUILD)/obj/$(1)/%.o,$($(1)_SRC))

define BINARY_RULES
$(2): $(call objects,$(1))
	@mkdir -p $$(@D)
	$$(call run,LD,$$@) $(3) -o $$@ $$^ $$($(1)_LIBS)
$(BUILD)/obj/$(1)/%.o: %.c Makefile | setup-$(4)
	@mkdir -p $$(@D)
	$$(call run,CC,$$@) $(3) $(CFLAGS_LIB) $$($(1)_CFLAGS) -c -o $$@ $$<
-include $(patsubst %.o,%.d,$(call objects,$(1)))
endef

$(foreach t,$(UNIT_TESTS),$(eval unit_$(t)_LIBS += -lcriterion))
$(foreach t,$(UNIT_TESTS),$(eval $(call BINARY_RULES,unit_$(t),$(BUILD)/unit/$(t),$(CC) -Og $(SANITIZE),unit)))
$(foreach t,$(FUZZ_TARGETS),$(eval $(call BINARY_RULES,fuzz_$(t),$(BUILD)/fuzz/$(t),$(CLANG) -O1 -fsanitize=fuzzer $(SANITIZE),fuzz)))
$(foreach t,$(PROGRAMS),$(eval $(call BINARY_RULES,prog_$(t),$(BUILD)/bin/$(t),$(CC) -O2,$(or $(prog_$(t)_PACKAGES),base))))
-include $(FREESTANDING:%.c=$(BUILD)/free/%.d)

# --- Suites ---------------------------------------------------------------------------------------

# RUNNER(target, its variables, command): packages first, then needs; make keeps that order.
define RUNNER
.PHONY: $(1)
$(1): | setup-$(2)
	@$(3)
$(1): $$($(2)_NEEDS)
endef

$(foreach s,$(filter-out unit fuzz,$(SUITES)),$(eval $(call RUNNER,check-$(s),$(s),tests/$(s)/run)))
$(foreach s,demo bench,$(if $(wildcard tests/$(s)/run),$(eval $(call RUNNER,$(s),$(s),tests/$(s)/run))))
$(eval $(call RUNNER,check-unit,unit,build-aux/check-unit))
$(eval $(call RUNNER,fuzz,fuzz,build-aux/fuzz))
# In `make test` the corpora are replayed; time for new inputs is for `make fuzz`.
check-fuzz: export FUZZ_S := 0
$(eval $(call RUNNER,check-fuzz,fuzz,build-aux/fuzz))

.PHONY: test
test:
	@MAKE='$(MAKE)' build-aux/test '$(filter qemu qemu-stock,$(sort $(foreach s,$(SUITES),$($(s)_NEEDS))))' $(SUITES)
