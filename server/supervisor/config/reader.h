/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_reader: reads values of a configuration's tree and checks them.
 *
 * Every function returns 0, or the number that it set in the reader's struct error, with a
 * sentence "FILE:LINE: reason"; the line is the node's. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_READER_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_READER_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "server/supervisor/config/tree.h"

struct config;

struct config_reader {
    struct config *config;
    const char *file; /* for messages */
    struct error *why;
};

/* Puts "FILE:LINE: " before the sentence of reader->why. */
void config_reader_put_place(struct config_reader *reader, unsigned line);
/* Refuses what stands in this line; MESSAGE(name) and its arguments follow. The value: the error
 * number, as it stands here, so that an analyser of one file sees that it is not 0. */
#define config_refuse(...) config_refuse_with(__VA_ARGS__)
#define config_refuse_with(reader, line, number, ...)                                              \
    (error_set((reader)->why, number, __VA_ARGS__), config_reader_put_place((reader), (line)),     \
     (number))

/* Refuses this line for want of memory. Returns the error number. */
uint32_t config_reader_no_memory(struct config_reader *reader, unsigned line);

/* ---- mappings by table ---- */

typedef uint32_t config_field_reader(struct config_reader *reader, const struct config_node *value,
                                     void *to);

struct config_field {
    const char *name;
    config_field_reader *read;
};

/* A table of fields. All of them write to one place. */
struct config_table {
    const struct config_field *fields;
    size_t count;
    void *to;
};

#define CONFIG_TABLE(fields, to)                                                                   \
    {                                                                                              \
        (fields), sizeof(fields) / sizeof *(fields), to                                            \
    }

/* what: the mapping's name in sentences. An unknown key is refused with those that are known. */
uint32_t config_reader_read_map(struct config_reader *reader, const struct config_node *map,
                                const char *what, const struct config_table *tables,
                                size_t table_count);

/* ---- values ---- */

/* A list's items, zeroed; NULL in *items for a list that is empty, or not there. */
uint32_t config_reader_open_list(struct config_reader *reader, const struct config_node *list,
                                 const char *what, size_t most, size_t item_bytes, void **items,
                                 size_t *count);

/* form: what it must be, for the sentence. */
uint32_t config_reader_need_text(struct config_reader *reader, const struct config_node *node,
                                 const char *what, const char *form);

uint32_t config_reader_read_number(struct config_reader *reader, const struct config_node *node,
                                   const char *what, uint64_t least, uint64_t most,
                                   uint64_t *number);

#endif
