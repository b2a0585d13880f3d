/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * raw: a client that speaks the protocol by hand, so that it can also misuse it.
 * It knows common/ (rings, channel) and nothing of the client library.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_RAW_H
#define GPUSHARE_TESTS_SUPPORT_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ipc/channel.h"
#include "common/ipc/ring.h"
#include "common/ipc/shm.h"
#include "tests/support/server.h"

struct raw {
    int fd;
    uint64_t serial;
    struct proto_attached attached;
    int ring_fd, status_fd, eventfd;
    uint8_t *rings, *status;      /* mapped; rings read-write, status read-only */
    struct channel_message reply; /* the latest */
};

/* Connects; sends nothing. Fails the test if there is no server. */
void raw_connect(struct raw *raw, const struct server *server);

/* Connects, says hello, attaches to device 0 (memory_limit: PROTO_UNSET for none), maps. */
void raw_attach(struct raw *raw, const struct server *server, uint64_t memory_limit);

/*
 * Sends a request, waits for its answer (notifications with serial 0 are passed over).
 * Returns 0 for the reply (in raw->reply), the error number for "failed", or
 * PROTO_ERROR_CONNECTION_LOST if the server hung up.
 */
uint32_t raw_ask(struct raw *raw, uint16_t opcode, const void *body, const void *tail,
                 size_t tail_bytes, int fd);

/* Sends bytes as one packet, with these descriptors. */
void raw_send(struct raw *raw, const void *bytes, size_t count, const int *fds, unsigned fd_count);

/* Waits until the server hangs up; false after ten seconds. */
bool raw_wait_end(struct raw *raw);

/* Waits until the fault word is set; returns it, 0 after ten seconds. */
uint32_t raw_wait_fault(struct raw *raw);

/* Allocates device memory; 0 if refused. */
uint64_t raw_alloc(struct raw *raw, uint64_t bytes);

/* Loads PTX text and looks a kernel up; returns its handle, parameter_bytes in raw->reply. */
uint32_t raw_function(struct raw *raw, const char *ptx, const char *name);

/* A memfd with these bytes. */
int raw_memfd(const void *bytes, size_t count);

/* Writes a descriptor at the ring's tail, publishes it, rings the doorbell. */
void raw_push(struct raw *raw, uint32_t stream, const void *descriptor);

/* Waits until the stream's timeline reaches a value; false after ten seconds, or when the fault
 * word is set. */
bool raw_wait_value(struct raw *raw, uint32_t stream, uint64_t value);

/* Closes and unmaps everything; idempotent. */
void raw_close(struct raw *raw);

#endif
