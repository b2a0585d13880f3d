/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/print/driver_print.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cuda/driver/print/print_code.h"
#include "client/engine/connection.h"
#include "client/engine/copy.h"
#include "client/engine/memory.h"
#include "client/engine/module.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/messages.h"

/* Rings of the process. While there is none, nobody takes a lock. */
static atomic_uint rings;

/* ---- the ring ---- */

static uint64_t bytes_of(const struct driver_print *print)
{
    return print->limit ? print->limit : PRINT_BYTES;
}

/* The lock is held. */
static gpushare_error make_ring(struct driver_print *print, gpushare_connection *connection)
{
    uint64_t bytes = bytes_of(print);
    void *memory;
    if (print->ring.head)
        return GPUSHARE_SUCCESS;
    gpushare_error error = memory_buffer_alloc(connection, print_ring_memory(bytes), &memory);
    if (error)
        return error;
    if (print_ring_open(&print->ring, memory, bytes) < 0) {
        print->ring.head = NULL;
        (void)memory_buffer_free(connection, (uint64_t)(uintptr_t)memory);
        return failure(MESSAGE(process_no_memory));
    }
    atomic_fetch_add(&rings, 1);
    return GPUSHARE_SUCCESS;
}

/* Writes the ring's address into the module's variable. No kernel of the module runs yet. */
static gpushare_error connect_module(const struct driver_print *print, gpushare_module *module,
                                     const char *variable)
{
    uint64_t bytes, ring = (uint64_t)(uintptr_t)print->ring.head;
    gpushare_address address;
    gpushare_connection *connection = module->connection;
    gpushare_error error = module_find_variable(module, variable, &address, &bytes);
    if (!error)
        error = copy_submit(connection->default_stream, address, (uint64_t)(uintptr_t)&ring,
                            sizeof ring);
    return error ? error : stream_wait_pushed(connection->default_stream);
}

static gpushare_error load_printing(struct driver_print *print, gpushare_connection *connection,
                                    const struct print_code *code, gpushare_module **module)
{
    pthread_mutex_lock(&print->lock);
    gpushare_error error = make_ring(print, connection);
    pthread_mutex_unlock(&print->lock);
    if (error)
        return error;
    error = module_load_image(connection, code->text, code->bytes, module);
    if (error)
        return error;
    error = connect_module(print, *module, code->ring);
    if (error)
        (void)module_unload(*module);
    return error;
}

/* ---- modules ---- */

gpushare_error driver_print_load(struct driver_print *print, gpushare_connection *connection,
                                 const struct driver_image *image, gpushare_module **module)
{
    struct print_code code = {.text = NULL};
    if (image->text && print_code_make(image->text, image->length, &code) < 0)
        return failure(MESSAGE(process_no_memory));
    gpushare_error error = code.text
                               ? load_printing(print, connection, &code, module)
                               : module_load_image(connection, image->bytes, image->count, module);
    free(code.text);
    return error;
}

/* ---- showing ---- */

bool driver_print_is_used(void)
{
    return atomic_load_explicit(&rings, memory_order_relaxed) != 0;
}

/* A forked child does not have the ring's memory. */
static bool may_have_ring(const gpushare_connection *connection)
{
    return driver_print_is_used() && connection->generation == connection_generation;
}

void driver_print_show(struct driver_print *print, const gpushare_connection *connection, bool all)
{
    if (!may_have_ring(connection))
        return;
    pthread_mutex_lock(&print->lock);
    if (print->ring.head) {
        print_ring_show(&print->ring, all, stdout);
        /* At once, as NVIDIA's driver does: the program may end by a signal. */
        (void)fflush(stdout);
    }
    pthread_mutex_unlock(&print->lock);
}

gpushare_error driver_print_finish(struct driver_print *print, gpushare_connection *connection)
{
    if (!may_have_ring(connection))
        return GPUSHARE_SUCCESS;
    gpushare_error error = stream_wait_connection(connection);
    driver_print_show(print, connection, true);
    return error;
}

void driver_print_forget(struct driver_print *print, gpushare_connection *connection)
{
    /* Nobody is left to be told of errors in the work. */
    (void)driver_print_finish(print, connection);
    pthread_mutex_lock(&print->lock);
    print->limit = 0;
    if (print->ring.head) {
        print_ring_close(&print->ring);
        print->ring.head = NULL;
        atomic_fetch_sub(&rings, 1);
    }
    pthread_mutex_unlock(&print->lock);
}

/* ---- the limit ---- */

uint64_t driver_print_limit(struct driver_print *print)
{
    pthread_mutex_lock(&print->lock);
    uint64_t bytes = print->ring.head ? print->ring.bytes : bytes_of(print);
    pthread_mutex_unlock(&print->lock);
    return bytes;
}

gpushare_error driver_print_set_limit(struct driver_print *print, uint64_t bytes)
{
    uint64_t size = PRINT_BYTES_MIN;
    if (bytes > PRINT_BYTES_MAX)
        return failure(MESSAGE(print_limit_max), (unsigned long long)bytes, PRINT_BYTES_MAX);
    while (size < bytes)
        size *= 2;
    pthread_mutex_lock(&print->lock);
    bool fixed = print->ring.head && print->ring.bytes != size;
    if (!fixed)
        print->limit = size;
    pthread_mutex_unlock(&print->lock);
    return fixed ? failure(MESSAGE(print_limit_late)) : GPUSHARE_SUCCESS;
}
