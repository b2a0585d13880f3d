/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * symbols: what is kept of a PTX text while its module is loaded: where variables
 * went, and kernels' parameters. The text's tree takes many times as much and goes.
 *
 * First room is counted, then filled, then sorted; after that it is immutable.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_SYMBOLS_H
#define GPUSHARE_SERVER_WORKER_CODE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;

struct symbols_room {
    uint32_t variables, kernels, parameters;
    size_t name_bytes;
};

void symbols_room_variable(struct symbols_room *room, const char *name);
void symbols_room_kernel(struct symbols_room *room, const char *name, uint32_t parameters);

/* NULL without memory. */
struct symbols *symbols_create(const struct symbols_room *room);
void symbols_free(struct symbols *symbols); /* NULL allowed */

/* Exactly what was counted; names are copied. pairs: offset and size of each parameter; end: of the
 * last one. */
void symbols_add_variable(struct symbols *symbols, const char *name, uint64_t address,
                          uint64_t count);
void symbols_add_kernel(struct symbols *symbols, const char *name, const uint32_t *pairs,
                        uint32_t parameters, uint64_t end);
void symbols_sort(struct symbols *symbols);

/* False if there is none of that name. */
bool symbols_variable(const struct symbols *symbols, const char *name, uint64_t *address,
                      uint64_t *count);
/* pairs has room for PROTO_PARAMETER_COUNT_MAX of them. Returns as above. */
bool symbols_kernel(const struct symbols *symbols, const char *name, uint32_t *pairs,
                    uint32_t *parameters, uint64_t *end);

uint32_t symbols_kernel_count(const struct symbols *symbols);

/* Bytes of memory that it takes. */
size_t symbols_bytes(const struct symbols *symbols);

#endif
