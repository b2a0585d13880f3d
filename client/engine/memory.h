/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory: device memory and shared host buffers of a connection, and what kind of memory an
 * address is in. Buffers are mapped in the connection's window and unmapped with it.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_MEMORY_H
#define GPUSHARE_CLIENT_ENGINE_MEMORY_H

#include <stdint.h>

#include "client/gpushare.h"

struct memory_hold;

enum memory_kind {
    MEMORY_ORDINARY, /* only this process can reach it */
    MEMORY_DEVICE,   /* one allocation's, or one variable's */
    MEMORY_HOST,     /* one shared host buffer's */
    MEMORY_ASTRAY    /* in some connection's window, but not in one allocation of this one's */
};

/* Says in what kind of memory a range of `count` bytes is; count is at least 1. */
enum memory_kind memory_classify(gpushare_connection *connection, uint64_t address, uint64_t count);

/*
 * Allocates count bytes of device memory; count is at least 1. *address is written on success only.
 * The memory may be the connection's own, freed before: its bytes are not defined.
 * memory_device_free frees the memory, or the end of the connection. Returns OUT_OF_MEMORY among
 * others.
 */
gpushare_error memory_device_alloc(gpushare_connection *connection, uint64_t count,
                                   gpushare_address *address);

/* Frees device memory. address: as allocated; INVALID_HANDLE for any other. After memory_keep_freed
 * it may stay with the connection, for its next allocations. */
gpushare_error memory_device_free(gpushare_connection *connection, gpushare_address address);

/* Device memory that is freed stays with the connection from now on, up to half of its limit, if
 * the server knows how to take it back. */
void memory_keep_freed(gpushare_connection *connection);

/* Gives freed memory that stayed with the connection back to the server. Returns the first
 * error. */
gpushare_error memory_device_trim(gpushare_connection *connection);

/* Asks the server for the connection's limits and use. *info is written whole, on success only. */
gpushare_error memory_usage(gpushare_connection *connection, struct gpushare_memory_info *info);

/* Allocates a shared host buffer of count bytes, at least 1, and maps it. *buffer is written on
 * success only. memory_buffer_free frees it, or the end of the connection. Returns OUT_OF_MEMORY
 * among others. */
gpushare_error memory_buffer_alloc(gpushare_connection *connection, uint64_t count, void **buffer);

/* The same, for a buffer that is given out as memory of both sides: memory_classify calls it a host
 * buffer, and memory_managed_free alone frees it. */
gpushare_error memory_managed_alloc(gpushare_connection *connection, uint64_t count, void **buffer);
gpushare_error memory_managed_free(gpushare_connection *connection, uint64_t address);

/*
 * Holds `count` bytes at an address, at least 1, which lie in one allocation: they stay where they
 * are until memory_let_go, also when the program frees them. *kind becomes MEMORY_DEVICE or
 * MEMORY_HOST, and *hold the hold, on success only. Returns INVALID_VALUE, or OUT_OF_MEMORY.
 */
gpushare_error memory_hold(gpushare_connection *connection, uint64_t address, uint64_t count,
                           struct memory_hold *hold, enum memory_kind *kind);

/* Ends a hold. Memory that was freed meanwhile goes to the server now, whose answer the call
 * waits for. */
void memory_let_go(gpushare_connection *connection, struct memory_hold *hold);

/* Unmaps a buffer in this process, then frees it. address: as allocated; INVALID_HANDLE for any
 * other. */
gpushare_error memory_buffer_free(gpushare_connection *connection, uint64_t address);

#endif
