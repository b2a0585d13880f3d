/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * overrun: finds work that takes longer than it may: a kernel beyond its client's
 * kernel_time_limit, and work of a client that left while others wait. The supervisor is told once,
 * and replaces the worker.
 *
 * A driver does not say when a kernel begins. A command's time counts from when it is seen at the
 * head of its stream, and begins anew for as long as older work is in flight on the same
 * multiprocessors, since the command may wait for that. It also begins anew while the command
 * itself is a wait for a stream of its client that is at work. Time in which the completer was kept
 * from looking does not count.
 *
 * Commands of one batch end together: a batch of n commands may take n times the limit, so no
 * kernel is ended before its limit. Batches of clients with a limit are short, but not those that
 * were under way when the client got it.
 *
 * If work of two clients began at the same time, neither is called the culprit.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_OVERRUN_H
#define GPUSHARE_SERVER_WORKER_RUN_OVERRUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct overrun_head;
struct worker;

/* Belongs to the completer from its start on. */
struct overrun {
    uint64_t departed_limit; /* ns; 0: none; under clients_lock */
    uint64_t looked_at;      /* the time of the latest look */
    uint64_t unseen;         /* ns before it in which nobody looked, and which count for nothing */
    bool told;
    struct overrun_head *heads; /* what is at the head of each stream; of one look */
    size_t count, room;
};

void overrun_open(struct overrun *overrun);
/* The completer has ended. */
void overrun_close(struct overrun *overrun);

/* How long work of clients that left may run while others wait, ns; 0: any time. Time in which a
 * client's work ran under a limit counts for a later limit too. Takes clients_lock. */
void overrun_set_departed(struct overrun *overrun, struct worker *worker, uint64_t limit);

/* The completer, every few milliseconds while the device has work. Takes clients_lock. */
void overrun_look(struct overrun *overrun, struct worker *worker, uint64_t now);

/* Gives the client another limit of its kernels' time. Under client->lock. */
void overrun_set_kernel_time(struct client *client, uint64_t kernel_time);

/* The most commands that a batch of this client may have. The submitter, under client->lock. */
uint32_t overrun_batch(const struct client *client);

#endif
