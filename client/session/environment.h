/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * environment: what this process's environment asks for, together with what the
 * program's options ask for. The one module of the library that reads the environment.
 * The dialect is common/limits.h's.
 */
#ifndef GPUSHARE_CLIENT_SESSION_ENVIRONMENT_H
#define GPUSHARE_CLIENT_SESSION_ENVIRONMENT_H

#include "client/gpushare.h"
#include "common/limits.h"

/* One wish, the stricter of options and environment in each respect. */
struct environment {
    struct limits_wish wish; /* name and priority are final; socket is not */
    uint32_t device;         /* ordinal among the visible ones */
    uint64_t memory_limit;   /* the options' own; PROTO_UNSET: not asked */
    uint64_t memory_request; /* likewise; 0: not asked */
    gpushare_warn warn;      /* NULL: nobody is warned */
    void *warn_context;
    char sockets[2][LIMITS_SOCKET_MAX + 1]; /* where the server may be, in this order; "" ends */
};

/*
 * Reads both. options: whole, not NULL. Returns GPUSHARE_SUCCESS, INVALID_VALUE (a bad
 * option) or INVALID_ENVIRONMENT (a bad variable), with the sentence set.
 */
gpushare_error environment_read(struct environment *environment,
                                const struct gpushare_options *options);

#endif
