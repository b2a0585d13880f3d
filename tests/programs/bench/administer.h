/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * administer: what rows ask of the server through its admin socket, as gpusharectl does.
 * Everything ends the program when it is refused or the socket is closed, but for
 * administer_try.
 */
#ifndef GPUSHARE_TESTS_BENCH_ADMINISTER_H
#define GPUSHARE_TESTS_BENCH_ADMINISTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/support/server.h"

/* A connection of its own; the caller closes it. */
int administer_open(const struct server *server);

/* Sends one request, a JSON object made as printf does, and returns the answer: the caller's
 * to json_decref. try: the answer may be a refusal. */
json_t *administer(int admin, const char *format, ...) __attribute__((format(printf, 2, 3)));
json_t *administer_try(int admin, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Another limit of threads ("25%") for a client. */
void administer_threads(int admin, uint32_t client, const char *limit);

/* The mode of device 0. lease and quantum: as gpusharectl takes them ("20ms"); precision too
 * ("5%"); NULL: the default. */
struct administer_mode {
    const char *mode, *lease, *precision, *quantum;
};
void administer_mode(int admin, const struct administer_mode *mode);

#endif
