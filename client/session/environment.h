/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * environment: the limits that this process's environment and the program's options ask for. No
 * other module of the library reads the environment. common/limits/limits.h says how values are
 * written. Any thread, as long as no thread changes the environment meanwhile.
 */
#ifndef GPUSHARE_CLIENT_SESSION_ENVIRONMENT_H
#define GPUSHARE_CLIENT_SESSION_ENVIRONMENT_H

#include "client/gpushare.h"
#include "client/session/session.h"
#include "common/limits/limits.h"

/* The options and the environment together: the stricter one for each limit. */
struct environment {
    struct limits_wish wish;  /* of the environment; name and profile as the options say */
    struct allowance program; /* of the options; it holds beside the environment's */
    uint32_t device;          /* ordinal among the visible devices */
    gpushare_warn warn;       /* NULL: warnings are dropped */
    void *warn_context;
    gpushare_warn notice; /* NULL: notices are dropped */
    void *notice_context;
    gpushare_observe observe; /* NULL: nobody is told */
    void *observe_context;
    struct session_address server;
};

/*
 * Reads the environment and merges the options, which are whole and not NULL. Returns SUCCESS,
 * INVALID_VALUE (a bad option) or INVALID_ENVIRONMENT (a bad variable), with the sentence set.
 */
gpushare_error environment_read(struct environment *environment,
                                const struct gpushare_options *options);

#endif
