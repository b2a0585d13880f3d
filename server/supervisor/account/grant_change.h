/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* grant_change: what an administrator changes of what a client is granted. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_GRANT_CHANGE_H
#define GPUSHARE_SERVER_SUPERVISOR_GRANT_CHANGE_H

#include <stdint.h>

#include "protocol.h"

/* An administrator's change of a client's grant; it replaces what the client asked for. Shares
 * are hundredths of a per cent. */
struct grant_change {
    uint32_t thread_percentage;    /* 0: stays */
    uint32_t thread_request;       /* UINT32_MAX: stays; 0: none */
    uint32_t time_request;         /* UINT32_MAX: stays; 0: none */
    uint32_t time_limit;           /* 0: stays */
    uint32_t priority;             /* UINT32_MAX: stays */
    uint64_t memory_request;       /* bytes; PROTO_UNSET: stays; 0: none */
    uint32_t memory_request_share; /* of the device's, instead; 0: none */
    uint64_t memory_limit;         /* bytes; PROTO_UNSET: stays */
    uint32_t memory_share;         /* of the device's, hundredths of a per cent, instead; 0: none */
    uint64_t host_request;         /* bytes; PROTO_UNSET: stays; 0: none */
    uint64_t host_limit;           /* bytes; PROTO_UNSET: stays */
};

/* Changes nothing. */
static const struct grant_change grant_change_none = {
    .thread_request = UINT32_MAX,
    .time_request = UINT32_MAX,
    .priority = UINT32_MAX,
    .memory_request = PROTO_UNSET,
    .memory_limit = PROTO_UNSET,
    .host_request = PROTO_UNSET,
    .host_limit = PROTO_UNSET,
};

/*
 * A change of a client or a device (its number) is made, or refused. error: 0, or a number of the
 * error table and a sentence in text, the worker's own where it refused. The callee may make
 * further changes; the client and the device that the caller works on are not freed before control
 * returns to the loop.
 */
typedef void change_done(void *context, uint32_t number, uint32_t error, const char *text);

#endif
