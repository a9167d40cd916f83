/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VPMUPERF_INSTALL_H
#define VPMUPERF_INSTALL_H

#include <windows.h>

#define SERVICE_NAME L"vpmuperf"

/**
 * Writes the manifest beside this program, registers the counter sets with lodctr and the service.
 * options: what the service gets behind its command, or NULL. Returns 0, or 1: it has been said.
 */
int install(const WCHAR *options);

/** Undoes install as far as it was done. Returns 0, or 1 where something remains: it has been said.
 */
int uninstall(void);

#endif
