/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NT_SEH_H
#define NT_SEH_H

/** From now on exceptions in driver images look for a handler in their .pdata and .xdata. */
void seh_init(void);

#endif
