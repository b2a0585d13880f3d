/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * endless: a client whose kernel runs until it is told to end. A call that fails fails the test as
 * OK does. One thread at a time.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_ENDLESS_H
#define GPUSHARE_TESTS_SUPPORT_ENDLESS_H

#include <stdatomic.h>
#include <stdint.h>

#include "client/gpushare.h"

struct endless {
    gpushare_connection *gpu; /* its own */
    gpushare_function *function;
    _Atomic uint32_t *word; /* on the host, where the kernel reads it; 0: it goes on */
};

/* Loads the kernel. The connection belongs to the endless client from now on. */
void endless_prepare(struct endless *endless, gpushare_connection *gpu);

/* Launches the kernel, once, with so many blocks of so many threads. It may not run yet when this
 * returns. */
void endless_start(struct endless *endless, uint32_t blocks, uint32_t threads);

/* Ends the kernel, waits for its end, and closes the connection. */
void endless_end(struct endless *endless);

#endif
