# SPDX-License-Identifier: BSD-3-Clause
# A libvirt of the tests' own, with the patched QEMU and vpmud; see tests/libvirt/run.
SUITES += libvirt
libvirt_PACKAGES := base host domain firmware libvirt
libvirt_NEEDS = qemu $(addprefix $(BUILD)/bin/,vpmud vpmuctl vpmuctl-domain vpmu-libvirt-hook)
