/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory: what an address is to a connection, and shared host buffers as this
 * process maps them. Mappings go with the connection's windows.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_MEMORY_H
#define GPUSHARE_CLIENT_ENGINE_MEMORY_H

#include <stdint.h>

#include "client/gpushare.h"

enum memory_kind {
    MEMORY_ORDINARY, /* of this process alone */
    MEMORY_DEVICE,   /* one allocation's, or one variable's */
    MEMORY_HOST,     /* one shared host buffer's */
    MEMORY_ASTRAY    /* in some connection's window, but not in one allocation of this one's */
};

/* What the range is; count is at least 1. */
enum memory_kind memory_classify(gpushare_connection *connection, uint64_t address, uint64_t count);

/* Allocates a shared host buffer and maps it. */
gpushare_error memory_host_alloc(gpushare_connection *connection, uint64_t count, void **buffer);

/* Unmaps it here, then frees it. address: as allocated. */
gpushare_error memory_host_free(gpushare_connection *connection, uint64_t address);

#endif
