/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_client: sends one request to the server's admin socket and receives its answer. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_ADMIN_CLIENT_H
#define GPUSHARE_CLIENT_TOOLS_ADMIN_CLIENT_H

#include <stddef.h>

#include <jansson.h>

#include "common/admin_times.h"

/* The schema version of the server's answers, and of answers that are made here. */
#define ADMIN_CLIENT_SCHEMA_VERSION 2

/* Digits with which a number that is no integer is printed. With so many a decimal fraction
 * comes out as it went in. */
#define ADMIN_CLIENT_DIGITS 15

/* How a request ended; also the exit statuses of gpusharectl. */
enum admin_outcome {
    ADMIN_OK = 0,
    ADMIN_FAILED = 1,   /* the server refused; the answer says why */
    ADMIN_USAGE = 2,    /* the command line is wrong; never returned here */
    ADMIN_NO_SERVER = 3 /* no server was reached, or it did not answer */
};

/* How to wait for an answer that takes long. */
struct admin_client_wait {
    double seconds; /* seconds to wait in addition to ADMIN_CLIENT_SECONDS; negative: less */
    /* A descriptor, or -1. Once it is readable, the server is asked to come to an end, by
     * closing the sending side. The descriptor is not read here. */
    int enough;
    int fd; /* result: the descriptor that came with the answer, which the caller owns; or -1 */
};

/*
 * Sends a request to the socket at `path` and waits for the answer. request: stays the caller's.
 * wait: NULL for an answer that comes at once.
 *
 * The caller owns *answer, whatever the outcome; it is NULL without memory. If no server was
 * reached, *answer is an error in the form of the server's, with a sentence that names path and
 * remedy.
 */
enum admin_outcome admin_client_ask(const char *path, json_t *request, json_t **answer,
                                    struct admin_client_wait *wait);

/* Writes the path that is used if the user names none: the socket beside the one for clients if
 * that is named, else the socket of the user's own server if there is one, else the system's.
 * clients: $GPUSHARE_SOCKET or NULL; runtime: $XDG_RUNTIME_DIR or NULL. Returns path. */
const char *admin_client_default_path(const char *clients, const char *runtime, char *path,
                                      size_t size);

/* Makes an error in the form of the server's answers:
 * {"schema_version":2,"ok":false,"error":...,"text":...}. The caller owns it; NULL without
 * memory. */
json_t *admin_client_error(const char *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
