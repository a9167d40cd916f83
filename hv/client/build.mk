# SPDX-License-Identifier: BSD-3-Clause
# The client's library. Users add client_SRC, with =, and -D_GNU_SOURCE.
client_SRC = $(wildcard hv/client/*.c) $(wire_SRC)

UNIT_TESTS += client
unit_client_SRC = $(wildcard tests/unit/client_*.c) $(client_SRC)
unit_client_CFLAGS := -D_GNU_SOURCE

FUZZ_TARGETS += client
fuzz_client_SRC = tests/fuzz/client.c $(client_SRC)
fuzz_client_CFLAGS := -D_GNU_SOURCE
fuzz_client_FLAGS := -max_len=4096
