# SPDX-License-Identifier: BSD-3-Clause
# What the demonstration needs; see tests/demo/run.

demo_PACKAGES := base firmware linux drivers
demo_NEEDS = qemu qemu-stock linux-guest nt-guest drivers
