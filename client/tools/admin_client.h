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

/* The schema version of answers, of the server's and of those made here. */
#define ADMIN_CLIENT_SCHEMA_VERSION 2

/* Digits that a number which is no integer is printed with: a decimal fraction comes out as it went
 * in. */
#define ADMIN_CLIENT_DIGITS 15

/* How a request ended; also the exit statuses of gpusharectl. */
enum admin_outcome {
    ADMIN_OK = 0,
    ADMIN_FAILED = 1,   /* the server refused; the answer says why */
    ADMIN_USAGE = 2,    /* the command line is wrong; never returned here */
    ADMIN_NO_SERVER = 3 /* it could not be reached, or did not answer */
};

/* How to wait for an answer that takes longer. */
struct admin_client_wait {
    double seconds; /* to wait beyond ADMIN_CLIENT_SECONDS */
    int enough;     /* a descriptor: once it is readable, the server is asked to come to an end, by
                     * closing the sending side. It is not read here. -1: none */
    int fd;         /* out: the descriptor that came with the answer, the caller's; or -1 */
};

/*
 * Sends request (borrowed) to the socket at path and waits for the answer. *answer is the caller's,
 * whatever the outcome; NULL where memory is short. Where no server was reached, it is an error of
 * the same form as the server's, with a sentence that names path and remedy. wait: NULL for an
 * answer that comes at once.
 */
enum admin_outcome admin_client_ask(const char *path, json_t *request, json_t **answer,
                                    struct admin_client_wait *wait);

/* The path to use where the user named none: the socket of the user's own server if there is one,
 * else the system's. runtime: $XDG_RUNTIME_DIR or NULL. Returns path. */
const char *admin_client_default_path(const char *runtime, char *path, size_t size);

/* An error in the form of the server's answers:
 * {"schema_version":2,"ok":false,"error":...,"text":...}. */
json_t *admin_client_error(const char *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
