/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that C and assembly share; the C side asserts them. */
#ifndef NT_LAYOUT_H
#define NT_LAYOUT_H

#define EXPORT_ROUTINE 0
#define EXPORT_LOWEST 8
#define EXPORT_HIGHEST 9

#define CONTEXT_EFLAGS 0x44
#define CONTEXT_RAX 0x78
#define CONTEXT_RCX 0x80
#define CONTEXT_RDX 0x88
#define CONTEXT_RBX 0x90
#define CONTEXT_RSP 0x98
#define CONTEXT_RBP 0xa0
#define CONTEXT_RSI 0xa8
#define CONTEXT_RDI 0xb0
#define CONTEXT_R8 0xb8
#define CONTEXT_RIP 0xf8

#endif
