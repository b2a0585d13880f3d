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
    struct limits_wish wish;  /* of the environment; name and profile as the options say */
    struct allowance program; /* of the options; it holds beside the environment's */
    uint32_t device;          /* ordinal among the visible ones */
    gpushare_warn warn;       /* NULL: nobody is warned */
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
