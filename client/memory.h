/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory: what an address is to a connection, and shared host buffers as this
 * process maps them.
 */
#ifndef GPUSHARE_CLIENT_MEMORY_H
#define GPUSHARE_CLIENT_MEMORY_H

#include <stdint.h>

#include "client/gpushare.h"

/* A shared host buffer that this process has mapped. */
struct memory_buffer {
    uint64_t address, bytes;
    struct memory_buffer *next;
};

enum memory_kind {
    MEMORY_ORDINARY, /* of this process alone */
    MEMORY_DEVICE,   /* in the connection's device window */
    MEMORY_HOST,     /* in its host window: a shared host buffer */
    MEMORY_ASTRAY    /* leaves a window, or the address space */
};

/* What the range is by its addresses; count is at least 1. */
enum memory_kind memory_classify(const gpushare_connection *connection, uint64_t address,
                                 uint64_t count);

/* Allocates a shared host buffer and maps it. */
gpushare_error memory_host_alloc(gpushare_connection *connection, uint64_t count, void **buffer);

/* Unmaps it here, then frees it. address: as allocated. */
gpushare_error memory_host_free(gpushare_connection *connection, uint64_t address);

/* At close: forgets all buffers; their mappings go with the window. */
void memory_forget(gpushare_connection *connection);

#endif
