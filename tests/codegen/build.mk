# SPDX-License-Identifier: BSD-3-Clause
# Generated code, patched against unpatched; see tests/codegen/run.

SUITES += codegen
codegen_PACKAGES := base source qemu firmware
codegen_NEEDS = qemu qemu-stock $(CODEGEN_IMAGE)

CODEGEN_OUT := $(BUILD)/codegen
CODEGEN_IMAGE := $(CODEGEN_OUT)/image.elf
CODEGEN_OBJS := $(CODEGEN_OUT)/image.c.o $(CODEGEN_OUT)/blocks.S.o

$(CODEGEN_OUT)/%.o: tests/codegen/% tests/codegen/build.mk tests/guest/build.mk | setup-base
	@mkdir -p $(@D)
	$(call run,CC,$@) $(GUEST_CC) $(GUEST_CFLAGS) -MMD -c -o $@ $<

# By its path: the library's own fragment comes later.
$(CODEGEN_IMAGE): $(CODEGEN_OBJS) $(BUILD)/tests/guest/libguest.a tests/guest/lib/image.lds
	$(call run,LD,$@) $(GUEST_CC) $(GUEST_CFLAGS) $(GUEST_LDFLAGS) -o $@ $(CODEGEN_OBJS) \
		$(GUEST_OUT)/lib/boot.S.o $(GUEST_LIB)

-include $(CODEGEN_OBJS:.o=.d)
