# SPDX-License-Identifier: BSD-3-Clause
# Bare test images and their library; see tests/guest/run.

GUEST_SRC := tests/guest
GUEST_OUT := $(BUILD)/tests/guest
GUEST_CC ?= gcc

GUEST_CFLAGS := -std=gnu11 -O2 -g -ffreestanding -fno-pic -fno-stack-protector -fcf-protection=none \
	-fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns -mno-red-zone \
	-mgeneral-regs-only -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wconversion -Werror -I$(GUEST_SRC)/lib -Ihv/include
GUEST_LDFLAGS := -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,max-page-size=4096 \
	-Wl,--no-warn-rwx-segments -Wl,-T,$(GUEST_SRC)/lib/image.lds

GUEST_LIB := $(GUEST_OUT)/libguest.a
GUEST_LIB_OBJS := $(patsubst $(GUEST_SRC)/lib/%,$(GUEST_OUT)/lib/%.o, \
	$(wildcard $(GUEST_SRC)/lib/*.c $(GUEST_SRC)/lib/*.S))
GUEST_IMAGES := $(patsubst $(GUEST_SRC)/%.c,$(GUEST_OUT)/%.elf,$(wildcard $(GUEST_SRC)/*.c))

SUITES += guest
guest_PACKAGES := base source qemu firmware
guest_NEEDS = qemu $(GUEST_IMAGES)

.PHONY: guest-images
guest-images: $(GUEST_IMAGES)

$(GUEST_OUT)/lib/%.o: $(GUEST_SRC)/lib/% $(GUEST_SRC)/build.mk | setup-base
	@mkdir -p $(@D)
	$(call run,CC,$@) $(GUEST_CC) $(GUEST_CFLAGS) -MMD -c -o $@ $<

$(GUEST_LIB): $(GUEST_LIB_OBJS)
	@rm -f $@
	$(call run,AR,$@) ar rcs $@ $^

# boot.S.o by name: nothing refers to it but the linker script's entry.
$(GUEST_OUT)/%.elf: $(GUEST_SRC)/%.c $(GUEST_LIB) $(GUEST_SRC)/lib/image.lds
	$(call run,LD,$@) $(GUEST_CC) $(GUEST_CFLAGS) $(GUEST_LDFLAGS) -MMD -MF $(@:.elf=.d) -o $@ $< \
		$(GUEST_OUT)/lib/boot.S.o $(GUEST_LIB)

-include $(GUEST_LIB_OBJS:.o=.d) $(GUEST_IMAGES:.elf=.d)
