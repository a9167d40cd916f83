# SPDX-License-Identifier: BSD-3-Clause
# The NT test guest and its test drivers; see tests/nt/README.md and tests/nt/run.

NT_SRC := tests/nt
NT_OUT := $(BUILD)/tests/nt
NT_MINGW ?= x86_64-w64-mingw32-gcc

NT_CFLAGS := $(GUEST_CFLAGS) -Iguest-drivers/include -Ihv/include -I$(NT_SRC)
NT_OBJS := $(patsubst $(NT_SRC)/%,$(NT_OUT)/%.o,$(wildcard $(NT_SRC)/*.c $(NT_SRC)/*.S)) \
	$(patsubst hv/arbiter/%,$(NT_OUT)/arbiter/%.o,$(wildcard hv/arbiter/*.c))
NT_IMAGE := $(NT_OUT)/ntguest.elf

# Sections must be 4 KiB apart, and the image must be relocatable.
NT_DRIVER_FLAGS := -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror -ffreestanding -fno-stack-protector \
	-mno-red-zone -Iguest-drivers/include -I$(NT_SRC)
NT_DRIVER_LDFLAGS := -nostdlib -s -Wl,--subsystem,native -Wl,--entry,DriverEntry \
	-Wl,--dynamicbase -Wl,--nxcompat -Wl,--image-base,0x140000000
NT_DRIVERS := $(patsubst $(NT_SRC)/drivers/%.c,$(NT_OUT)/%.sys,$(wildcard $(NT_SRC)/drivers/*.c))

.PHONY: nt-guest
nt-guest: $(NT_IMAGE) $(NT_DRIVERS)

$(NT_OUT)/%.o: $(NT_SRC)/%
	@mkdir -p $(@D)
	$(GUEST_CC) $(NT_CFLAGS) -MMD -c -o $@ $<

$(NT_OUT)/arbiter/%.o: hv/arbiter/%
	@mkdir -p $(@D)
	$(GUEST_CC) $(NT_CFLAGS) -MMD -c -o $@ $<

$(NT_IMAGE): $(NT_OBJS) $(GUEST_LIB) $(GUEST_SRC)/lib/image.lds
	$(GUEST_CC) $(GUEST_CFLAGS) $(GUEST_LDFLAGS) -o $@ $(NT_OBJS) $(GUEST_OUT)/lib/boot.S.o $(GUEST_LIB)

# Each driver: its C file, assembly NAME_*.S where it has some, and the library (hello has none).
nt_driver_SRC = $(NT_SRC)/drivers/$(1).c $(wildcard $(NT_SRC)/drivers/$(1)_*.S) \
	$(if $(filter hello,$(1)),,$(NT_SRC)/drivers/lib/testdriver.c)

.SECONDEXPANSION:
$(NT_DRIVERS): $(NT_OUT)/%.sys: $$(call nt_driver_SRC,$$*) $(wildcard $(NT_SRC)/drivers/lib/*.h $(NT_SRC)/*.h) \
		$(wildcard guest-drivers/include/nt/*.h) | setup-drivers
	@mkdir -p $(@D)
	$(NT_MINGW) $(NT_DRIVER_FLAGS) $(NT_DRIVER_LDFLAGS) -o $@ $(call nt_driver_SRC,$*) \
		-lntoskrnl -lhal -lgcc

-include $(NT_OBJS:.o=.d)
