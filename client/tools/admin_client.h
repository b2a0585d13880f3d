/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_client: one request to the server's admin socket, and its answer.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_ADMIN_CLIENT_H
#define GPUSHARE_CLIENT_TOOLS_ADMIN_CLIENT_H

#include <stddef.h>

#include <jansson.h>

#include "common/admin_times.h"

/* Of the answers, the server's and those made here. */
#define ADMIN_CLIENT_SCHEMA_VERSION 2

/* Digits of a number that is no integer: a decimal fraction comes out as it went in. */
#define ADMIN_CLIENT_DIGITS 15

/* What became of it; also the exit statuses of gpusharectl. */
enum admin_outcome {
    ADMIN_OK = 0,
    ADMIN_FAILED = 1,   /* the server refused; the answer says why */
    ADMIN_USAGE = 2,    /* of the command line alone */
    ADMIN_NO_SERVER = 3 /* it could not be reached, or did not answer */
};

/* How to wait for an answer that takes long. */
struct admin_client_wait {
    double seconds; /* more than ADMIN_CLIENT_SECONDS */
    int enough; /* a descriptor that becomes readable when the server is to come to an end, which
                 * is told by closing the sending side; it is not read here. -1: none */
    int fd;     /* out: the descriptor that came with the answer, the caller's; or -1 */
};

/*
 * Sends request (borrowed) to the socket at path and waits for the answer. *answer is the caller's
 * whatever the outcome, or NULL where memory is short: where there was no server, it is an error of
 * the same form as the server's, with a sentence that names path and remedy. wait: NULL for an
 * answer that comes at once.
 */
enum admin_outcome admin_client_ask(const char *path, json_t *request, json_t **answer,
                                    struct admin_client_wait *wait);

/* The path to use where none was named: the user's own server's if it has a socket, else the
 * system's. runtime: $XDG_RUNTIME_DIR or NULL. Returns path. */
const char *admin_client_default_path(const char *runtime, char *path, size_t size);

/* An answer of the server's form: {"schema_version":2,"ok":false,"error":...,"text":...}. */
json_t *admin_client_error(const char *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
