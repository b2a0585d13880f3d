/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * administer: requests to the server through its admin socket, as gpusharectl makes them. A
 * function ends the program if its request is refused or the socket is closed, except
 * administer_try.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_ADMINISTER_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_ADMINISTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/support/server.h"

/* Opens a connection to the admin socket, which the caller closes. */
int administer_open(const struct server *server);

/* Sends one request, a JSON object made as printf does, and returns the answer, which the caller
 * gives to json_decref. administer_try also returns an answer that is a refusal. */
json_t *administer(int admin, const char *format, ...) __attribute__((format(printf, 2, 3)));
json_t *administer_try(int admin, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Gives a client another limit of threads, such as "25%". */
void administer_threads(int admin, uint32_t client, const char *limit);

/* The mode of device 0, which administer_mode sets. lease, quantum ("20ms") and precision ("5%")
 * are written as for gpusharectl; NULL: the default. */
struct administer_mode {
    const char *mode, *lease, *precision, *quantum;
};
void administer_mode(int admin, const struct administer_mode *mode);

#endif
