# SPDX-License-Identifier: BSD-3-Clause
# Patched against unpatched QEMU, and what operations of the arbiter and of vpmud cost; see
# tests/bench/run.

PROGRAMS += bench-arbiter
prog_bench-arbiter_SRC := tests/bench/arbiter.c $(wildcard hv/arbiter/*.c)

PROGRAMS += bench-admission
prog_bench-admission_SRC := tests/bench/admission.c $(wildcard hv/arbiter/*.c)

BENCH_OUT := $(BUILD)/bench
BENCH_IMAGE := $(BENCH_OUT)/bench.elf
BENCH_OBJS := $(patsubst tests/bench/guest/%.c,$(BENCH_OUT)/%.o,$(wildcard tests/bench/guest/*.c))

bench_PACKAGES := base source qemu firmware linux host
bench_NEEDS += qemu qemu-stock $(addprefix $(BUILD)/bin/,bench-arbiter bench-admission bench-client vpmud) $(BENCH_IMAGE) $(BENCH_OUT)/rom.bin $(BUILD)/linux/vmlinuz

# The library's own fragment comes later: what it defines is not known yet where make looks for names at once.
BENCH_GUEST := $(BUILD)/tests/guest

$(BENCH_OUT)/%.o: tests/bench/guest/%.c tests/bench/build.mk tests/guest/build.mk | setup-base
	@mkdir -p $(@D)
	$(call run,CC,$@) $(GUEST_CC) $(GUEST_CFLAGS) -MMD -c -o $@ $<

$(BENCH_IMAGE): $(BENCH_OBJS) $(BENCH_GUEST)/libguest.a tests/guest/lib/image.lds
	$(call run,LD,$@) $(GUEST_CC) $(GUEST_CFLAGS) $(GUEST_LDFLAGS) -o $@ $(BENCH_OBJS) \
		$(GUEST_OUT)/lib/boot.S.o $(GUEST_LIB)

$(BENCH_OUT)/rom.bin: tests/bench/guest/rom.S | setup-base
	@mkdir -p $(@D)
	$(call run,AS,$@) $(GUEST_CC) -m32 -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-e,0 -Wl,-Ttext=0 -Wl,--oformat=binary -o $@ $<

-include $(BENCH_OBJS:.o=.d)
