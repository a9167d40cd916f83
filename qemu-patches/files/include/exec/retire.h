/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Retirement accounting.
 *
 * A block that is translated under CF_RETIRE charges what it retires to a word
 * of its class of execution (on x86: privilege level, SVM guest mode), before
 * its first instruction:
 *
 *     word = budget << RETIRE_BRANCH_BITS | branches
 *
 * The budget is the number of instructions that may still retire in the class
 * before the target must be asked; the low bits count branches since the word
 * was last folded. A budget that is too small for the block makes the word
 * negative, and the block leaves as on an exit request, with nothing executed.
 * No branch is counted that is not an instruction, so a budget below
 * 2^RETIRE_BRANCH_BITS keeps the low bits from carrying into the budget.
 *
 * A branch is always the last instruction of its block. Under CF_RETIRE_KINDS
 * the block also adds to a second word, which has one field for each kind.
 *
 * What was charged and does not retire is taken back: retire_undo() when an
 * exception unwinds or a block did not start, the translator's own code where
 * it knows that an instruction does not complete.
 */
#ifndef EXEC_RETIRE_H
#define EXEC_RETIRE_H

enum RetireKind {
    RETIRE_OTHER,    /* not a branch */
    RETIRE_JUMP,     /* a near jump: counted as a branch only */
    RETIRE_COND,     /* the kinds from here on have a field each */
    RETIRE_CALL,
    RETIRE_RETURN,
    RETIRE_FAR,
};

#define RETIRE_BRANCH_BITS      22
#define RETIRE_KIND_BITS        16

/* Budgets that no field can overflow in, without and with CF_RETIRE_KINDS. */
#define RETIRE_BUDGET_MAX       ((1 << RETIRE_BRANCH_BITS) - 1)
#define RETIRE_BUDGET_MAX_KINDS ((1 << RETIRE_KIND_BITS) - 1)

/* The most instructions of a block: its charge fits a 32-bit immediate. */
#define RETIRE_MAX_INSNS        ((1 << (31 - RETIRE_BRANCH_BITS)) - 1)

/* What a block of @insns instructions that ends in @kind adds to its word. */
static inline int64_t retire_charge(int insns, enum RetireKind kind)
{
    return (kind != RETIRE_OTHER) - ((int64_t)insns << RETIRE_BRANCH_BITS);
}

/* The field of @kind in the word of kinds. */
static inline int retire_kind_shift(enum RetireKind kind)
{
    return (kind - RETIRE_COND) * RETIRE_KIND_BITS;
}

/* What a block that ends in @kind adds to its word of kinds. */
static inline uint64_t retire_kind_charge(enum RetireKind kind)
{
    return kind < RETIRE_COND ? 0 : 1ull << retire_kind_shift(kind);
}

#endif
