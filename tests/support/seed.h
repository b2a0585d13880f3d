/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * seed: where a test's random numbers begin. $TEST_SEED sets it, so that a failure can be repeated.
 * Any thread that does not run while the environment is changed.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_SEED_H
#define GPUSHARE_TESTS_SUPPORT_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A number in the environment; `otherwise` where the variable is not set. */
static inline uint64_t seed_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

/* $TEST_SEED, or else a seed from the clock; printed, and flushed before anybody forks. */
static inline unsigned seed_draw(void)
{
    unsigned seed = (unsigned)seed_number("TEST_SEED", (uint64_t)time(NULL));
    printf("TEST_SEED=%u\n", seed);
    fflush(stdout);
    return seed;
}

#endif
