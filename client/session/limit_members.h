/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * limit_members: which members of the public structs hold each value of a resource, and each
 * scalar, in tables. A share is a double in per cent there, and bytes are a uint64_t; 0 is what
 * nobody asked for. Pure; any thread.
 */
#ifndef GPUSHARE_CLIENT_SESSION_LIMIT_MEMBERS_H
#define GPUSHARE_CLIENT_SESSION_LIMIT_MEMBERS_H

#include "client/gpushare.h"
#include "common/limits/allowance.h"

struct limit_members {
    const char *name;      /* of the members */
    size_t option;         /* offset in struct gpushare_options */
    size_t asked, granted; /* offsets in struct gpushare_limits */
};

/* The row of a value. Static. */
const struct limit_members *limit_members(enum resource resource, enum allowance_bound bound);

/* A scalar of the program's options, as it stands there. */
uint64_t limit_members_option(const struct gpushare_options *options, enum scalar scalar);

/* Writes what was asked for and what is granted; the other members of *limits stay. */
void limit_members_write(struct gpushare_limits *limits, const struct proto_allowance *asked,
                         const struct proto_allowance *granted);

/* Both back. In *asked a resource that nobody asked for is unset, and a scalar is as
 * allowance_scalar_said has it. */
void limit_members_read(const struct gpushare_limits *limits, struct allowance *asked,
                        struct allowance *granted);

#endif
