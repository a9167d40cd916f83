# SPDX-License-Identifier: BSD-3-Clause
# A KVM host in software; see docs/lab.md.

SUITES += lab
lab_PACKAGES := base source qemu firmware linux lab domain libvirt
lab_NEEDS = qemu linux-guest $(GUEST_OUT)/selftest.elf $(GUEST_OUT)/winboot.elf $(QEMU_TEST_OUT)/grant.elf $(BUILD)/bin/vpmuctl $(BUILD)/bin/vpmud $(BUILD)/bin/vpmuctl-domain $(BUILD)/bin/vpmu-libvirt-hook nt-guest drivers lab-programs $(LAB_KERNELS:%=$(LAB_OUT)/%/initrd)

LAB_SRC := tests/lab
LAB_OUT := $(BUILD)/lab
LAB_KERNELS := $(shell awk '!/^\#/ && NF { print $$1 }' $(LAB_SRC)/kernels)
LAB_PROGRAMS := $(patsubst $(LAB_SRC)/programs/%.c,$(LAB_OUT)/bin/%,$(wildcard $(LAB_SRC)/programs/*.c))

# What `make lab` boots and runs.
KERNEL ?= 6.12
VCPUS ?= 1
SCRIPT ?= $(LAB_SRC)/tour

.PHONY: lab lab-shell lab-programs
lab: | setup-lab
	@$(LAB_SRC)/lab -k $(KERNEL) -c $(VCPUS) sh $(SCRIPT)
lab-shell: | setup-lab
	@$(LAB_SRC)/lab -k $(KERNEL) -c $(VCPUS)
lab lab-shell: qemu linux-guest $(GUEST_OUT)/selftest.elf lab-programs $(LAB_OUT)/$(KERNEL)/initrd
lab-programs: $(LAB_PROGRAMS)

# A kernel that only its initrd has asked for is kept.
.SECONDARY: $(LAB_KERNELS:%=$(LAB_OUT)/%/vmlinuz)

$(LAB_OUT)/%/vmlinuz: $(LAB_SRC)/fetch-kernel $(LAB_SRC)/kernels | setup-lab
	@$< $* $(@D)
	@touch $@

$(LAB_OUT)/%/initrd: $(LAB_SRC)/make-initrd $(LAB_SRC)/init $(LAB_OUT)/%/vmlinuz | setup-lab
	$(call run,PACK,$@) $< $(@D)

$(LAB_OUT)/bin/%: $(LAB_SRC)/programs/%.c | setup-base
	@mkdir -p $(@D)
	$(call run,CC,$@) $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -static $(WARNINGS) -o $@ $<
