/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * equal_part: what clients may reserve for themselves, where nobody else says what they may have.
 *
 * The clients of each account may reserve an equal part of the whole: the whole divided by the
 * number of accounts that are there. It is less where requests that others made for clients (rules,
 * totals, administrators) leave less to the accounts that ask. Clients of one account that ask for
 * more together get less in the same proportion.
 *
 *   Worked: accounts a, b and c; a's two clients ask for 60 % and 20 %, b's one for 30 %, c's for
 *   nothing. The part is 33.33 %: a's clients have 24.99 % and 8.33 %, b's has 30 %.
 *   A rule gives c 70 %: 30 % are left for a and b, so the part is 15 %.
 *
 * One account alone gets all that it asks for: whether that fits is asked elsewhere. Pure; any
 * thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_EQUAL_PART_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_EQUAL_PART_H

#include <stddef.h>
#include <stdint.h>

/* A client's requests of one resource. Amounts are in any one unit. */
struct equal_part_client {
    uint64_t account;    /* the number of the account in which it is scheduled */
    uint64_t of_account; /* that account's own request, the same of all its clients; 0: none */
    uint64_t reserved; /* what others requested for it; comes out of of_account, if there is one */
    uint64_t asked;    /* by itself; 0: nothing */
    uint64_t granted;  /* set by equal_part_divide: 0 to asked */
    size_t of;         /* the caller's */
};

/* Sets what each client is granted of what it asked for. Sorts the clients by account. whole: what
 * there is. Returns the number of accounts. */
size_t equal_part_divide(struct equal_part_client *clients, size_t count, uint64_t whole);

#endif
