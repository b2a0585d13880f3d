/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_print: what the kernels of this process print, in its own standard output.
 *
 * The first module that prints makes the device's ring (print_ring.h), a shared host buffer, which
 * counts as the process's pinned memory. Nothing here costs a process without such a module more
 * than a look at a counter, and launches not even that.
 *
 * Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_PRINT_DRIVER_PRINT_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_PRINT_DRIVER_PRINT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cuda/driver/print/print_ring.h"
#include "client/gpushare.h"

/* Of one device. All zero but for the lock, it has no ring. */
struct driver_print {
    pthread_mutex_t lock;
    uint64_t limit;         /* bytes of records that were asked for; 0: PRINT_BYTES */
    struct print_ring ring; /* head is NULL without a ring */
};

enum {
    PRINT_BYTES = 1 << 20, /* CUDA's initial limit */
    PRINT_BYTES_MIN = 4096,
    PRINT_BYTES_MAX = 1 << 30, /* a record's size is a word of 32 bits */
};

/* A program's image, with its size, and the PTX of it that the server takes. */
struct driver_image {
    const void *bytes;
    size_t count;
    const char *text; /* NULL: it has none */
    size_t length;
};

/* Loads a module as module_load_image does. One that prints has our function in the place of
 * vprintf. */
gpushare_error driver_print_load(struct driver_print *print, gpushare_connection *connection,
                                 const struct driver_image *image, gpushare_module **module);

/* Whether any device has a ring. */
bool driver_print_is_used(void);

/* Writes to standard output what was printed. all: no work of the connection runs, unless another
 * thread has pushed some just now. */
void driver_print_show(struct driver_print *print, const gpushare_connection *connection, bool all);

/* Waits for all work of the connection, if there is a ring, and shows the rest. Returns as
 * stream_wait_connection. */
gpushare_error driver_print_finish(struct driver_print *print, gpushare_connection *connection);

/* Shows the rest too, and forgets the ring, whose memory goes with the connection. */
void driver_print_forget(struct driver_print *print, gpushare_connection *connection);

/* The bytes that a ring has or will have. driver_print_set_limit returns INVALID_VALUE for a value
 * that no ring can have, and for another one than the ring has that is there. */
uint64_t driver_print_limit(struct driver_print *print);
gpushare_error driver_print_set_limit(struct driver_print *print, uint64_t bytes);

#endif
