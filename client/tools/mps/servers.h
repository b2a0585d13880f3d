/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * servers: what the commands of MPS call a server, and its clients. The worker of a GPU has the
 * CUDA context, as a server of MPS has, so each GPU has a server of its own. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_MPS_SERVERS_H
#define GPUSHARE_CLIENT_TOOLS_MPS_SERVERS_H

#include <stdbool.h>

#include <jansson.h>

#include "client/tools/admin_client.h"
#include "common/error.h"

struct servers {
    const char *socket; /* of administrators */
    struct error why;   /* of the latest failure: what a person is told */
};

/* Sends a request, which is taken over, and stores the answer, which the caller owns. After a
 * failure *answer is NULL, and why has its sentence. */
enum admin_outcome servers_ask(struct servers *servers, json_t *request, json_t **answer);

/* The answer to "status" or "clients". */
enum admin_outcome servers_ask_for(struct servers *servers, const char *request, json_t **answer);

/* Ends a command with the number that error_set has returned. */
enum admin_outcome servers_refuse(uint32_t error);

/* Finds the server with this process number. *status: the answer to "status", which the caller
 * owns, and which *device lies in. After a failure *status is NULL. */
enum admin_outcome servers_find(struct servers *servers, const char *pid, json_t **status,
                                const json_t **device);

/* Reads the number of a process. Returns 0, or an error number. */
uint32_t servers_read_pid(struct servers *servers, const char *text, json_int_t *pid);

/* Whether a row of the answer to "clients" is a client of this device. */
bool servers_has_client(const json_t *device, const json_t *client);

#endif
