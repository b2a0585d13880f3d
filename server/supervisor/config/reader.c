/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/messages.h"
#include "common/units.h"

void config_reader_put_place(struct config_reader *reader, unsigned line)
{
    error_prefix(reader->why, "%s:%u: ", reader->file, line);
}

uint32_t config_reader_no_memory(struct config_reader *reader, unsigned line)
{
    return config_refuse(reader, line, MESSAGE(config_no_memory));
}

static uint32_t unknown_key(struct config_reader *reader, const struct config_node *key,
                            const char *what, const struct config_table *tables, size_t table_count)
{
    char known[300] = "";
    size_t used = 0;
    for (size_t t = 0; t < table_count; t++)
        for (size_t i = 0; i < tables[t].count && used < sizeof known; i++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                     tables[t].fields[i].name);
    return config_refuse(reader, key->line, MESSAGE(config_key_unknown), key->text, what, known);
}

static const struct config_field *find_field(const struct config_table *tables, size_t table_count,
                                             const char *name, void **to)
{
    for (size_t t = 0; t < table_count; t++) {
        *to = tables[t].to;
        for (size_t i = 0; i < tables[t].count; i++)
            if (!strcmp(tables[t].fields[i].name, name))
                return &tables[t].fields[i];
    }
    return NULL;
}

uint32_t config_reader_read_map(struct config_reader *reader, const struct config_node *map,
                                const char *what, const struct config_table *tables,
                                size_t table_count)
{
    if (map->kind != CONFIG_MAP)
        return config_refuse(reader, map->line, MESSAGE(config_mapping), what);
    for (const struct config_node *key = map->first; key; key = key->next->next) {
        void *to;
        const struct config_field *field = find_field(tables, table_count, key->text, &to);
        if (!field)
            return unknown_key(reader, key, what, tables, table_count);
        uint32_t error = field->read(reader, key->next, to);
        if (error)
            return error;
    }
    return 0;
}

static size_t count_items(const struct config_node *node)
{
    size_t count = 0;
    for (const struct config_node *item = node->first; item; item = item->next)
        count++;
    return count;
}

uint32_t config_reader_open_list(struct config_reader *reader, const struct config_node *list,
                                 const char *what, size_t most, size_t item_bytes, void **items,
                                 size_t *count)
{
    *items = NULL;
    *count = 0;
    if (config_tree_is_null(list))
        return 0;
    if (list->kind != CONFIG_LIST)
        return config_refuse(reader, list->line, MESSAGE(config_list), what);
    *count = count_items(list);
    if (*count > most) {
        *count = 0;
        return config_refuse(reader, list->line, MESSAGE(config_list_max), what, most);
    }
    if (*count && !(*items = calloc(*count, item_bytes))) {
        *count = 0;
        return config_reader_no_memory(reader, list->line);
    }
    return 0;
}

uint32_t config_reader_need_text(struct config_reader *reader, const struct config_node *node,
                                 const char *what, const char *form)
{
    if (node->kind == CONFIG_TEXT && !config_tree_is_null(node))
        return 0;
    return config_refuse(reader, node->line, MESSAGE(config_form), what, form);
}

uint32_t config_reader_read_number(struct config_reader *reader, const struct config_node *node,
                                   const char *what, uint64_t least, uint64_t most,
                                   uint64_t *number)
{
    if (node->kind == CONFIG_TEXT && node->plain &&
        !units_parse_number(node->text, node->length, most, number) && *number >= least)
        return 0;
    if (node->kind == CONFIG_TEXT)
        return config_refuse(reader, node->line, MESSAGE(config_number_not), what,
                             (unsigned long long)least, (unsigned long long)most, node->text);
    return config_refuse(reader, node->line, MESSAGE(config_number), what,
                         (unsigned long long)least, (unsigned long long)most);
}
