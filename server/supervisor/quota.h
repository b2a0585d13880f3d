/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * quota: accounts of a countable resource, and charges against them.
 *
 * Charge first, then allocate. The charge is a member of what it pays for, so what
 * is freed without being paid back shows when its account is closed. An account
 * may stand under another (a client's under the server's): both must have room.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_QUOTA_H
#define GPUSHARE_SERVER_SUPERVISOR_QUOTA_H

#include <stdint.h>

struct quota {
    const char *name; /* static, for messages: "device memory limit" */
    uint64_t limit;
    uint64_t used;
    struct quota *parent; /* or NULL */
};

/* What one object has been charged. All zero: nothing. */
struct charge {
    struct quota *quota;
    uint64_t amount;
};

#define CHARGE_NONE ((struct charge){0})

enum { QUOTA_OVER = 1 };

void quota_open(struct quota *quota, const char *name, uint64_t limit, struct quota *parent);

/* Asserts that every charge has come back. */
void quota_close(struct quota *quota);

/*
 * Charges amount to the account and to those above it, or to none of them. The
 * charge must be empty. Returns 0; QUOTA_OVER with the account that lacks room in
 * *culprit (which may be NULL).
 */
int quota_charge(struct quota *quota, struct charge *charge, uint64_t amount,
                 const struct quota **culprit);

/* What could be charged now, all accounts considered. */
uint64_t quota_left(const struct quota *quota);

/* Pays back; idempotent. */
void charge_return(struct charge *charge);

#endif
