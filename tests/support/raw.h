/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * raw: a client that speaks the protocol by hand, so that it can also misuse it. It knows common/
 * (rings, channel) and nothing of the client library. One thread.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_RAW_H
#define GPUSHARE_TESTS_SUPPORT_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ipc/channel.h"
#include "common/ipc/ring.h"
#include "common/ipc/ring_memory.h"
#include "common/ipc/shm.h"
#include "tests/support/server.h"

struct raw {
    int fd;
    uint64_t serial;
    struct proto_attached attached;
    int ring_fd, status_fd, eventfd;
    int segment_fd; /* of the rings that were made last; or -1 */
    struct ring_memory memory;
    uint8_t *rings, *status;      /* mapped: rings read-write, status read-only */
    struct channel_message reply; /* the latest message */
};

/* Connects and sends nothing. Fails the test if there is no server. */
void raw_connect(struct raw *raw, const struct server *server);

/* Connects, says hello, attaches to device 0, and maps the memory, but for the rings. memory_limit:
 * bytes; PROTO_UNSET for none. */
void raw_attach(struct raw *raw, const struct server *server, uint64_t memory_limit);

/*
 * Sends a request and waits for its answer; notifications (serial 0) are passed over. fd: a
 * descriptor to send, or -1. Returns 0 for the reply, which is in raw->reply; the error number for
 * "failed"; or PROTO_ERROR_CONNECTION_LOST if the server closed the connection.
 */
uint32_t raw_ask(struct raw *raw, uint16_t opcode, const void *body, const void *tail,
                 size_t tail_bytes, int fd);

/* Sends the bytes as one packet, with these descriptors. Nothing is checked. */
void raw_send(struct raw *raw, const void *bytes, size_t count, const int *fds, unsigned fd_count);

/* Asks for the ring of a stream and maps it. Returns as raw_ask does. raw_push asks for a ring that
 * is not there. */
uint32_t raw_ring(struct raw *raw, uint32_t stream);

/* Waits until the server closes the connection. Returns false after ten seconds. */
bool raw_wait_end(struct raw *raw);

/* Waits until the fault word is set, and returns it; 0 after ten seconds. */
uint32_t raw_wait_fault(struct raw *raw);

/* Allocates device memory and returns its address; 0 if it was refused. */
uint64_t raw_alloc(struct raw *raw, uint64_t bytes);

/* Loads PTX text, looks a kernel up and returns its handle. raw->reply holds the function_info. */
uint32_t raw_function(struct raw *raw, const char *ptx, const char *name);

/* Returns a memfd with these bytes, which the caller closes. */
int raw_memfd(const void *bytes, size_t count);

/* Writes a descriptor at the ring's tail, publishes it, and rings the doorbell. */
void raw_push(struct raw *raw, uint32_t stream, const void *descriptor);

/* Waits until the stream's timeline reaches a value. Returns false after ten seconds, or if the
 * fault word is set. */
bool raw_wait_value(struct raw *raw, uint32_t stream, uint64_t value);

/* Closes and unmaps everything; idempotent. */
void raw_close(struct raw *raw);

#endif
