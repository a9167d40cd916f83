# SPDX-License-Identifier: BSD-3-Clause
# Debian's kernel and perf in a guest; see tests/linux/run.

SUITES += linux
linux_PACKAGES := base firmware linux
linux_NEEDS = qemu qemu-stock linux-guest

LINUX_SRC := tests/linux
LINUX_OUT := $(BUILD)/linux
LINUX_NAMES := $(notdir $(basename $(wildcard $(LINUX_SRC)/programs/*.S)))
LINUX_PROGRAMS := $(LINUX_NAMES:%=$(LINUX_OUT)/bin/%) $(LINUX_NAMES:%=$(LINUX_OUT)/bin/%.short) \
	$(LINUX_OUT)/bin/step

.PHONY: linux-guest
linux-guest: $(LINUX_OUT)/vmlinuz $(LINUX_OUT)/initrd

$(LINUX_OUT)/vmlinuz: $(LINUX_SRC)/fetch-kernel | setup-linux
	@$< $@

$(LINUX_OUT)/initrd: $(LINUX_SRC)/make-initrd $(LINUX_SRC)/init $(LINUX_PROGRAMS) | setup-linux
	$(call run,PACK,$@) $< $@ $(LINUX_PROGRAMS)

LINUX_AS = $(CC) -nostdlib -static -no-pie -Wl,--build-id=none

$(LINUX_OUT)/bin/%.short: $(LINUX_SRC)/programs/%.S $(wildcard $(LINUX_SRC)/programs/*) | setup-base
	@mkdir -p $(@D)
	$(call run,AS,$@) $(LINUX_AS) -DSHORT -o $@ $<

$(LINUX_OUT)/bin/%: $(LINUX_SRC)/programs/%.S $(wildcard $(LINUX_SRC)/programs/*) | setup-base
	@mkdir -p $(@D)
	$(call run,AS,$@) $(LINUX_AS) -o $@ $<

$(LINUX_OUT)/bin/step: $(LINUX_SRC)/programs/step.c | setup-base
	@mkdir -p $(@D)
	$(call run,CC,$@) $(CC) -std=gnu11 -O2 -static $(WARNINGS) -o $@ $<
