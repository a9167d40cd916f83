# SPDX-License-Identifier: BSD-3-Clause
# QEMU from outside: command line, monitor, migration, debugger; see tests/qemu/run.

QEMU_TEST_SRC := tests/qemu/images
QEMU_TEST_OUT := $(BUILD)/tests/qemu
QEMU_TEST_IMAGES := $(patsubst $(QEMU_TEST_SRC)/%.c,$(QEMU_TEST_OUT)/%.elf,$(wildcard $(QEMU_TEST_SRC)/*.c))

# Its packages are those of the targets qemu and vpmud.
SUITES += qemu
qemu_NEEDS = qemu qemu-stock qemu-images $(BUILD)/bin/vpmud

.PHONY: qemu-images
qemu-images: $(QEMU_TEST_IMAGES)

$(QEMU_TEST_OUT)/%.elf: $(QEMU_TEST_SRC)/%.c $(GUEST_LIB) $(GUEST_SRC)/lib/image.lds
	@mkdir -p $(@D)
	$(call run,LD,$@) $(GUEST_CC) $(GUEST_CFLAGS) $(GUEST_LDFLAGS) -MMD -MF $(@:.elf=.d) -o $@ $< \
		$(GUEST_OUT)/lib/boot.S.o $(GUEST_LIB)

-include $(QEMU_TEST_IMAGES:.elf=.d)
