/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * kill: `gpusharectl kill`, which ends connections of clients. The server knows clients by number;
 * a client's name is looked up here. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_KILL_H
#define GPUSHARE_CLIENT_TOOLS_KILL_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "client/tools/admin_client.h"
#include "common/error.h"

struct kill_whom {
    const char *user; /* --user, or NULL */
    bool all;         /* --all: everybody's, or all clients of the name */
    const char *name; /* result of kill_read: the name that was meant, or NULL */
};

/*
 * Reads the words behind the command: "7", "client 7" or "client:7", "user 1000" or "user:1000",
 * "name train" or "name:train"; a word that is no number and no kind of target is a name too. Adds
 * the target to request, unless it is a name. Names are the caller's words. Returns 0, or an error
 * number that *why explains.
 */
uint32_t kill_read(struct kill_whom *whom, json_t *request, int count, char *const words[],
                   struct error *why);

/*
 * Asks the server. A name that several clients have is refused, and the answer lists them, unless
 * `all` is set: then each of them is ended. request: stays the caller's, and is changed. The caller
 * owns *answer, as that of admin_client_ask.
 */
enum admin_outcome kill_run(const char *socket, const struct kill_whom *whom, json_t *request,
                            json_t **answer);

/* Prints a line for each client that was ended, and for those whose work that interrupted. */
void kill_print(FILE *out, const json_t *answer);

#endif
