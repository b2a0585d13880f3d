/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * code_memory: the worker's own memory for clients' code, which no client may use up.
 *
 * One half is for loads at work, in equal parts. Each load reads its image within its part or is
 * refused; while all parts are in use the next load waits for its turn. The other half is for what
 * loaded modules keep; one client may have a quarter of that.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CODE_MEMORY_H
#define GPUSHARE_SERVER_WORKER_CODE_CODE_MEMORY_H

#include <pthread.h>
#include <stdint.h>

#include "common/error.h"

enum { CODE_MEMORY_LOADS = 2 /* loads at work at the same time */ };

struct code_memory {
    uint64_t load;       /* bytes that one load may take while it works */
    uint64_t client_max; /* bytes that the modules of one client may keep */
    uint64_t max;        /* bytes that all modules may keep */
    pthread_mutex_t lock;
    uint64_t kept; /* bytes that all modules keep now; under the lock */
};

/* bytes: both halves together; 0: a quarter of the machine's memory. */
void code_memory_open(struct code_memory *code_memory, uint64_t bytes);
/* Everything that was charged must have been refunded; an assertion checks that. */
void code_memory_close(struct code_memory *code_memory);

/* Charges bytes that stay, to all and to *client, the bytes that one client keeps. Returns 0, or an
 * error number with a sentence in why; nothing is charged then. Any thread; *client is read and
 * written under the lock only. code_memory_refund takes the same bytes off again. */
uint32_t code_memory_charge(struct code_memory *code_memory, uint64_t *client, uint64_t bytes,
                            struct error *why);
void code_memory_refund(struct code_memory *code_memory, uint64_t *client, uint64_t bytes);

/* Bytes that loaded modules leave of what they may keep. Compiled code that nobody loads now may
 * have them meanwhile. Any thread. */
uint64_t code_memory_room(struct code_memory *code_memory);

#endif
