# SPDX-License-Identifier: BSD-3-Clause
# The protocol: pure but for transport.c. Users add wire_SRC, with =.
wire_SRC := $(wildcard hv/wire/*.c)

FUZZ_TARGETS += wire
fuzz_wire_SRC := tests/fuzz/wire.c $(filter-out %/transport.c,$(wire_SRC))
fuzz_wire_FLAGS := -max_len=4096
