# SPDX-License-Identifier: BSD-3-Clause
# The NT test guest and its test drivers; see tests/nt/README.md and tests/nt/run.

NT_SRC := tests/nt
NT_OUT := $(BUILD)/tests/nt
NT_MINGW ?= x86_64-w64-mingw32-gcc

NT_CFLAGS := $(GUEST_CFLAGS) -Iguest-drivers/include -Iguest-drivers -Ihv/include -I$(NT_SRC)
NT_OBJS := $(patsubst $(NT_SRC)/%,$(NT_OUT)/%.o,$(wildcard $(NT_SRC)/*.c $(NT_SRC)/*.S)) \
	$(patsubst hv/arbiter/%,$(NT_OUT)/arbiter/%.o,$(wildcard hv/arbiter/*.c)) \
	$(patsubst guest-drivers/source/%,$(NT_OUT)/source/%.o,$(source_free_SRC))
NT_IMAGE := $(NT_OUT)/ntguest.elf

# Sections must be 4 KiB apart, and the image must be relocatable.
NT_DRIVER_FLAGS := -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror -ffreestanding -fno-stack-protector \
	-mno-red-zone -Iguest-drivers/include -I$(NT_SRC)
NT_DRIVER_LDFLAGS := -nostdlib -s -Wl,--subsystem,native -Wl,--entry,DriverEntry \
	-Wl,--dynamicbase -Wl,--nxcompat -Wl,--image-base,0x140000000
NT_DRIVERS := $(patsubst $(NT_SRC)/drivers/%.c,$(NT_OUT)/%.sys,$(wildcard $(NT_SRC)/drivers/*.c))

# The loader also runs on the host, where sanitizers watch it.
UNIT_TESTS += pe
unit_pe_SRC := $(NT_SRC)/pe.c $(wildcard $(NT_SRC)/unit/*.c)

FUZZ_TARGETS += pe
fuzz_pe_SRC := tests/fuzz/pe.c $(NT_SRC)/pe.c
fuzz_pe_FLAGS := -max_len=8192

SUITES += nt
nt_PACKAGES := base source qemu firmware drivers
nt_NEEDS = qemu qemu-stock drivers nt-guest

.PHONY: nt-guest
nt-guest: $(NT_IMAGE) $(NT_DRIVERS)

$(NT_OUT)/%.o: $(NT_SRC)/% $(NT_SRC)/build.mk | setup-base
	@mkdir -p $(@D)
	$(call run,CC,$@) $(GUEST_CC) $(NT_CFLAGS) -MMD -c -o $@ $<

$(NT_OUT)/arbiter/%.o: hv/arbiter/% | setup-base
	@mkdir -p $(@D)
	$(call run,CC,$@) $(GUEST_CC) $(NT_CFLAGS) -MMD -c -o $@ $<

# The portable reader of vpmu.sys, as the Windows programs have it.
$(NT_OUT)/source/%.o: guest-drivers/source/% | setup-base
	@mkdir -p $(@D)
	$(call run,CC,$@) $(GUEST_CC) $(NT_CFLAGS) -MMD -c -o $@ $<

$(NT_IMAGE): $(NT_OBJS) $(GUEST_LIB) $(GUEST_SRC)/lib/image.lds
	$(call run,LD,$@) $(GUEST_CC) $(GUEST_CFLAGS) $(GUEST_LDFLAGS) -o $@ $(NT_OBJS) $(GUEST_OUT)/lib/boot.S.o $(GUEST_LIB)

# Each driver: its C file, assembly NAME_*.S where it has some, and the library.
nt_driver_SRC = $(NT_SRC)/drivers/$(1).c $(wildcard $(NT_SRC)/drivers/$(1)_*.S) \
	$(if $(filter ordinal,$(1)),,$(NT_SRC)/drivers/lib/testdriver.c)
nt_driver_LIB = $(if $(filter ordinal,$(1)),$(NT_OUT)/libordinal.a)
nt_driver_HEADERS := $(wildcard $(NT_SRC)/drivers/lib/*.h guest-drivers/include/nt/*.h) $(NT_SRC)/ntmore.h

define NT_DRIVER_RULE
$(NT_OUT)/$(1).sys: $(call nt_driver_SRC,$(1)) $(call nt_driver_LIB,$(1)) $(nt_driver_HEADERS) \
		$(NT_SRC)/build.mk | setup-drivers
	@mkdir -p $$(@D)
	$$(call run,MINGW,$$@) $(NT_MINGW) $(NT_DRIVER_FLAGS) $(NT_DRIVER_LDFLAGS) -o $$@ \
		$(call nt_driver_SRC,$(1)) $(call nt_driver_LIB,$(1)) -lntoskrnl -lhal -lgcc
endef
$(foreach d,$(NT_DRIVERS:$(NT_OUT)/%.sys=%),$(eval $(call NT_DRIVER_RULE,$(d))))

$(NT_OUT)/libordinal.a: $(NT_SRC)/drivers/ordinal.def | setup-drivers
	@mkdir -p $(@D)
	$(call run,DLLTOOL,$@) x86_64-w64-mingw32-dlltool -d $< -l $@

-include $(NT_OBJS:.o=.d)
