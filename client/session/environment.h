/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * environment: the limits that this process's environment and the program's options ask for. No
 * other module of the library reads the environment. Values are written as common/limits/limits.h
 * says.
 */
#ifndef GPUSHARE_CLIENT_SESSION_ENVIRONMENT_H
#define GPUSHARE_CLIENT_SESSION_ENVIRONMENT_H

#include "client/gpushare.h"
#include "common/limits/limits.h"

/* The options and the environment together: of each limit the stricter one. */
struct environment {
    struct limits_wish wish; /* as merged; for the socket see below */
    uint32_t device;         /* ordinal among the visible ones */
    uint64_t memory_limit;   /* of the options alone, in bytes; PROTO_UNSET: not asked for */
    uint64_t memory_request; /* of the options alone, in bytes; 0: not asked for */
    gpushare_warn warn;      /* NULL: nobody is warned */
    void *warn_context;
    char sockets[2][LIMITS_SOCKET_MAX + 1]; /* where the server may be, in this order; "" ends */
};

/*
 * Reads the environment and merges the options, which are whole and not NULL. Returns SUCCESS,
 * INVALID_VALUE (a bad option) or INVALID_ENVIRONMENT (a bad variable), with the sentence set.
 */
gpushare_error environment_read(struct environment *environment,
                                const struct gpushare_options *options);

#endif
