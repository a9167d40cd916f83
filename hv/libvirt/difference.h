// SPDX-License-Identifier: BSD-3-Clause
/* What a change of a definition would be, for people. */
#ifndef VPMU_LIBVIRT_DIFFERENCE_H
#define VPMU_LIBVIRT_DIFFERENCE_H

/* Prints the differing lines of two documents, as diff -u does. -1: there is no diff. */
int difference_print(const char *before, const char *after);

#endif
