/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * symbols: the parts of a PTX text that are kept while its module is loaded: where its variables
 * went, and the parameters of its kernels. The text's tree takes many times as much memory and is
 * freed.
 *
 * The caller counts the room, creates, adds, then sorts. After that the symbols are immutable and
 * any thread may read them.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_SYMBOLS_H
#define GPUSHARE_SERVER_WORKER_IMAGE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;

struct symbols_room {
    uint32_t variables, kernels, parameters;
    size_t name_bytes;
};

/* Count a variable, and a kernel with so many parameters. */
void symbols_room_variable(struct symbols_room *room, const char *name);
void symbols_room_kernel(struct symbols_room *room, const char *name, uint32_t parameters);

/* Room for exactly what was counted. NULL: no memory. */
struct symbols *symbols_create(const struct symbols_room *room);
void symbols_free(struct symbols *symbols); /* NULL allowed */

/* The same symbols, with all variables so much further up (modulo 2^64). After symbols_sort. NULL:
 * no memory. */
struct symbols *symbols_copy(const struct symbols *from, uint64_t further);

/* The symbols of which these are the bytes: a copy of the symbols_bytes bytes at symbols, by a
 * worker of the same build, that nobody has changed. NULL: no memory, or not so many bytes. */
struct symbols *symbols_restore(const void *bytes, size_t count);

/* Add exactly what was counted. Names are copied. pairs: offset and size of each parameter; end:
 * bytes of all parameters. symbols_sort must follow before anything is looked up. */
void symbols_add_variable(struct symbols *symbols, const char *name, uint64_t address,
                          uint64_t count);
void symbols_add_kernel(struct symbols *symbols, const char *name, const uint32_t *pairs,
                        uint32_t parameters, uint64_t end);
void symbols_sort(struct symbols *symbols);

/* The address and size of a variable. False if there is none of that name. */
bool symbols_variable(const struct symbols *symbols, const char *name, uint64_t *address,
                      uint64_t *count);
/* The parameters of a kernel; pairs has room for PROTO_PARAMETER_COUNT_MAX pairs. False if there is
 * none of that name. */
bool symbols_kernel(const struct symbols *symbols, const char *name, uint32_t *pairs,
                    uint32_t *parameters, uint64_t *end);

uint32_t symbols_kernel_count(const struct symbols *symbols);

/* Bytes of memory that the symbols take. */
size_t symbols_bytes(const struct symbols *symbols);

#endif
