/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* honest_private: the parts of honest.c, for batch.c and errand.c. One thread. */
#ifndef GPUSHARE_TESTS_PROGRAMS_RECOVERY_HONEST_PRIVATE_H
#define GPUSHARE_TESTS_PROGRAMS_RECOVERY_HONEST_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"
#include "tests/programs/recovery/honest.h"

enum {
    STEPS = 8,
    SLOTS = STEPS + 1, /* results on the device, written round and round */
    BLOCKS = 2,
    WORDS = 64,
    STILL = 4096, /* words that stay as they are */
};

struct honest {
    const struct honest_spec *spec;
    struct page *page;
    unsigned random;
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *step;
    gpushare_stream *streams[3]; /* two for steps, one for copies */
    gpushare_event *stepped[STEPS], *copied[STEPS];
    gpushare_address slots, counts, stamp, total, still;
    uint32_t (*results)[WORDS]; /* host buffer, STEPS of them */
    uint32_t *still_host;       /* host buffer, STILL words */
    int slot;                   /* of the present state */
    uint32_t state[WORDS];      /* as the CPU computes it */
    uint32_t ran[STEPS];        /* blocks counted so far, by step */
    uint64_t sum;               /* of all blocks, as the module's variable has it */
    /* of the present batch */
    int length;                      /* steps that were launched, maybe the last one not */
    uint32_t expected[SLOTS][WORDS]; /* the state, and behind it each step's result */
    bool step_noted[STEPS], copy_noted[STEPS]; /* the events that were recorded */
};

/* Says what does not hold, and ends the process. */
void honest_fail(const struct honest *honest, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* Fails unless the call succeeded. */
#define MUST(honest, call) honest_must((honest), (call), #call)
void honest_must(const struct honest *honest, gpushare_error error, const char *call);

unsigned honest_draw(struct honest *honest, unsigned bound);
void honest_phase(const struct honest *honest, enum phase phase);

/* Copies that wait; again where the worker was lost meanwhile. */
void honest_fetch(const struct honest *honest, void *to, gpushare_address from, uint64_t bytes);
void honest_store(const struct honest *honest, gpushare_address to, const void *from,
                  uint64_t bytes);

/* ---- batch.c ---- */

/* Pushes up to `length` steps. Returns the first error, which is INTERRUPTED or 0 for all but a
 * guilty client. */
gpushare_error batch_push(struct honest *honest, int length);

/* Waits for what was pushed, in one of several ways. */
gpushare_error batch_wait(struct honest *honest);

/* Recovers the streams, if the batch was interrupted, verifies all of it, and moves on behind the
 * last finished step. */
void batch_settle(struct honest *honest, bool interrupted);

/* ---- errand.c ---- */

/* Makes something, uses and verifies it, and gives it back: memory, a buffer, a stream, a module.
 */
void errand_run(struct honest *honest);

#endif
