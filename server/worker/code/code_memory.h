/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * code_memory: the worker's own memory for clients' code, which no client may use up.
 *
 * Half of it is for loads at work, in equal parts: each reads its image within its
 * part or is refused; while all of them are at work the next load waits for its turn. The other
 * half is for what loaded modules keep; of that a client may have a quarter.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CODE_MEMORY_H
#define GPUSHARE_SERVER_WORKER_CODE_CODE_MEMORY_H

#include <pthread.h>
#include <stdint.h>

#include "common/error.h"

enum { CODE_MEMORY_LOADS = 2 /* at work at once */ };

struct code_memory {
    uint64_t load;       /* bytes that one load may take while it works */
    uint64_t client_max; /* bytes that one client's modules may keep */
    uint64_t max;        /* ...and all clients' */
    pthread_mutex_t lock;
    uint64_t kept;
};

/* bytes: the whole; 0: a quarter of the machine's memory. */
void code_memory_open(struct code_memory *code_memory, uint64_t bytes);
/* Asserts that nothing is kept. */
void code_memory_close(struct code_memory *code_memory);

/* Counts bytes that stay, in *client's count too. 0, or an error number and nothing counted. Any
 * thread; *client is looked at under the lock only. */
uint32_t code_memory_charge(struct code_memory *code_memory, uint64_t *client, uint64_t bytes,
                            struct error *why);
void code_memory_refund(struct code_memory *code_memory, uint64_t *client, uint64_t bytes);

#endif
