# SPDX-License-Identifier: BSD-3-Clause
# The protocol, which is pure, and how its bytes come and go. Users add wire_SRC, with =, and
# -D_GNU_SOURCE.
wire_PURE := $(wildcard hv/wire/*.c)
wire_SRC := $(wire_PURE) hv/transport/transport.c

UNIT_TESTS += wire
unit_wire_SRC := tests/unit/wire.c $(wire_PURE)

FUZZ_TARGETS += wire
fuzz_wire_SRC := tests/fuzz/wire.c $(wire_PURE)
fuzz_wire_FLAGS := -max_len=4096
