# SPDX-License-Identifier: BSD-3-Clause
# The Windows drivers, and the tests of what in them needs no Windows.

DRIVERS_OUT := $(BUILD)/guest-drivers
DRIVERS_CC := x86_64-w64-mingw32-gcc
DRIVERS_WINDRES := x86_64-w64-mingw32-windres
DRIVERS_INCLUDE := -Iguest-drivers/include -Iguest-drivers/vpmu -Ihv/include

# General registers alone: a driver's callbacks run where nobody has saved the others.
DRIVERS_CFLAGS := -std=gnu11 -O2 $(WARNINGS) $(DRIVERS_INCLUDE) -ffreestanding -mno-red-zone \
	-mgeneral-regs-only -fno-stack-protector -fno-ident -MMD -MP
# Windows 10 as the least system; no time stamp, so that a source has one image.
DRIVERS_LDFLAGS := -nostdlib -s -Wl,--subsystem,native:10.0,--major-os-version,10,--minor-os-version,0 \
	-Wl,-e,DriverEntry,--image-base,0x140000000 \
	-Wl,--dynamicbase,--nxcompat,--high-entropy-va,--no-insert-timestamp
DRIVERS_LIBS := -lntoskrnl -lhal -lgcc

vpmu_sys_SRC := $(wildcard guest-drivers/vpmu/*.[cS]) guest-drivers/vpmu/vpmu.rc
# What every client driver shares, then each one's own.
client_COMMON := guest-drivers/clients/client.c $(addprefix guest-drivers/vpmu/,os.c guarded.S memory.c)
probe_sys_SRC := $(client_COMMON) guest-drivers/clients/probe.c
wholepmu_sys_SRC := $(client_COMMON) guest-drivers/clients/wholepmu.c
amdpower_sys_SRC := $(client_COMMON) guest-drivers/clients/amdpower.c
nohal_sys_SRC := $(client_COMMON) $(addprefix guest-drivers/clients/,nohal.c nohal_interrupt.S)

DRIVERS := vpmu probe wholepmu amdpower nohal
DRIVERS_IMAGES := $(DRIVERS:%=$(DRIVERS_OUT)/%.sys)

drivers_PACKAGES := drivers
.PHONY: drivers
drivers: $(DRIVERS_IMAGES) $(DRIVERS_OUT)/vpmu.inf $(DRIVERS_OUT)/vpmu-primitive.inf | setup-drivers
drivers: programs-windows

$(DRIVERS_OUT)/%.inf: guest-drivers/vpmu/%.inf
	@mkdir -p $(@D)
	cp -- $< $@

$(DRIVERS_OUT)/obj/%.c.o: %.c guest-drivers/build.mk | setup-drivers
	@mkdir -p $(@D)
	$(call run,MINGW,$@) $(DRIVERS_CC) $(DRIVERS_CFLAGS) -c -o $@ $<
$(DRIVERS_OUT)/obj/%.S.o: %.S guest-drivers/build.mk | setup-drivers
	@mkdir -p $(@D)
	$(call run,MINGW,$@) $(DRIVERS_CC) $(DRIVERS_CFLAGS) -c -o $@ $<
$(DRIVERS_OUT)/obj/%.rc.o: %.rc | setup-drivers
	@mkdir -p $(@D)
	$(call run,RC,$@) $(DRIVERS_WINDRES) -O coff -o $@ $<

driver_objects = $($(1)_sys_SRC:%=$(DRIVERS_OUT)/obj/%.o)
define DRIVER_RULES
$(DRIVERS_OUT)/$(1).sys: $(call driver_objects,$(1))
	$$(call run,LD,$$@) $(DRIVERS_CC) $(DRIVERS_LDFLAGS) -o $$@ $$^ $(DRIVERS_LIBS)
-include $(patsubst %.o,%.d,$(filter-out %.rc.o,$(call driver_objects,$(1))))
endef
$(foreach d,$(DRIVERS),$(eval $(call DRIVER_RULES,$(d))))

# check-drivers: the images themselves.
SUITES += drivers
drivers_NEEDS := drivers

# All but what talks to Windows or to registers also runs on the host, over tests/unit/driver_fake.c.
driver_host_SRC := $(filter-out %/driver.c %/pnp.c %/pending.c %/os.c %/memory.c,$(wildcard guest-drivers/vpmu/*.c)) \
	tests/unit/driver_fake.c

UNIT_TESTS += driver
unit_driver_SRC := $(filter-out %/driver_fake.c,$(wildcard tests/unit/driver_*.c)) $(driver_host_SRC)
unit_driver_CFLAGS := $(DRIVERS_INCLUDE) -D_GNU_SOURCE

FUZZ_TARGETS += ioctl
fuzz_ioctl_SRC := tests/fuzz/ioctl.c $(driver_host_SRC)
fuzz_ioctl_CFLAGS := $(DRIVERS_INCLUDE)
fuzz_ioctl_FLAGS := -max_len=2048

# --- Programs -------------------------------------------------------------------------------------

# Fragments below: EXES += p, with exe_p_SRC (C and .rc), exe_p_CFLAGS, exe_p_LIBS.
EXES :=
include $(wildcard guest-drivers/*/build.mk)

EXES_CFLAGS := -std=gnu11 -O2 $(WARNINGS) $(DRIVERS_INCLUDE) -I. -DUNICODE -D_UNICODE \
	-D_WIN32_WINNT=0x0A00 -D__USE_MINGW_ANSI_STDIO=1 -fno-ident -MMD -MP
EXES_LDFLAGS := -static -s -municode -Wl,--dynamicbase,--nxcompat,--high-entropy-va,--no-insert-timestamp

.PHONY: programs-windows
programs-windows: $(EXES:%=$(DRIVERS_OUT)/%.exe)

exe_objects = $(exe_$(1)_SRC:%=$(DRIVERS_OUT)/exe/$(1)/%.o)
define EXE_RULES
$(DRIVERS_OUT)/exe/$(1)/%.c.o: %.c guest-drivers/build.mk | setup-drivers
	@mkdir -p $$(@D)
	$$(call run,MINGW,$$@) $(DRIVERS_CC) $(EXES_CFLAGS) $$(exe_$(1)_CFLAGS) -c -o $$@ $$<
$(DRIVERS_OUT)/exe/$(1)/%.rc.o: %.rc | setup-drivers
	@mkdir -p $$(@D)
	$$(call run,RC,$$@) $(DRIVERS_WINDRES) -O coff -o $$@ $$<
$(DRIVERS_OUT)/$(1).exe: $(call exe_objects,$(1))
	$$(call run,LD,$$@) $(DRIVERS_CC) $(EXES_LDFLAGS) -o $$@ $$^ $$(exe_$(1)_LIBS)
-include $(patsubst %.o,%.d,$(filter-out %.rc.o,$(call exe_objects,$(1))))
endef
$(foreach p,$(EXES),$(eval $(call EXE_RULES,$(p))))
