/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * suspicion: whether a client's kernels that a lost worker had under way, or its next ones, have
 * run alone since, without a fault.
 *
 * The journal says how often each kernel was interrupted. It is proven when it has run so often
 * while the worker serves one client and one command at a time (gate_set_singly). A client of which
 * no kernel was interrupted is proven by its next one. Where more kernels than are counted here
 * were interrupted, nothing proves the client.
 *
 * Under client->lock, but for suspicion_read, which comes before other threads know the client.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_SUSPICION_H
#define GPUSHARE_SERVER_WORKER_CLIENT_SUSPICION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/ring.h"

enum { SUSPICION_KERNELS = 16 };

/* All zero: nothing of the client was interrupted. */
struct suspicion {
    bool pending; /* something was, and it is not proven yet */
    bool proven;  /* it is, and the supervisor is to be told */
    uint32_t count;
    struct {
        uint32_t function, times; /* that it is still to run */
    } kernels[SUSPICION_KERNELS];
    uint64_t value; /* the launch that runs alone now; 0: none */
    uint32_t stream, function;
};

/* Reads what a lost worker left in the client's shadow memory; to be called before anything there
 * is changed. */
void suspicion_read(struct suspicion *suspicion, void *shadow, uint32_t streams);

/* The command is handed over, as this value of the stream's timeline. singly: nothing else is in
 * flight on the device, and nothing will be until it has ended. */
void suspicion_begin(struct suspicion *suspicion, uint32_t stream, uint64_t value,
                     const struct ring_descriptor *command, bool singly);

/* The stream's timeline has reached this value. */
void suspicion_reach(struct suspicion *suspicion, uint32_t stream, uint64_t reached);

#endif
