# SPDX-License-Identifier: BSD-3-Clause
# The Debian packages, and the life of an installed one.

SUITES += deb
deb_PACKAGES := base host domain drivers deb
deb_NEEDS := deb

.PHONY: deb
deb: | setup-deb
	@build-aux/deb
