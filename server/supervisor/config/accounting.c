/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/accounting.h"

#include <limits.h>
#include <string.h>

#include "common/messages.h"
#include "common/units.h"
#include "server/supervisor/config/config.h"

/* A day ends with a line anyhow. Each line of a client has some 700 bytes. */
#define INTERVAL_LEAST UNITS_SECOND
#define INTERVAL_MOST  (86400 * UNITS_SECOND)

static uint32_t read_path(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct config_accounting *accounting = to;
    uint32_t error = config_reader_need_text(reader, value, "file", "the path of a file");
    if (error)
        return error;
    if (value->text[0] != '/' || value->length >= PATH_MAX || strlen(value->text) != value->length)
        return config_refuse(reader, value->line, MESSAGE(config_accounting_file), value->text);
    accounting->file = strdup(value->text);
    return accounting->file ? 0 : config_reader_no_memory(reader, value->line);
}

static uint32_t read_interval(struct config_reader *reader, const struct config_node *value,
                              void *to)
{
    struct config_accounting *accounting = to;
    uint64_t ns;
    uint32_t error = config_reader_need_text(reader, value, "interval", "a time, like 1h");
    if (error)
        return error;
    if (units_parse_duration(value->text, value->length, &ns) < 0 || ns < INTERVAL_LEAST ||
        ns > INTERVAL_MOST || ns % UNITS_SECOND)
        return config_refuse(reader, value->line, MESSAGE(config_accounting_interval), value->text);
    accounting->interval_ns = ns;
    return 0;
}

uint32_t config_accounting_read(struct config_reader *reader, const struct config_node *value,
                                void *to)
{
    static const struct config_field fields[] = {{"file", read_path}, {"interval", read_interval}};
    struct config *config = to;
    struct config_table table = CONFIG_TABLE(fields, &config->accounting);
    if (config_tree_is_null(value))
        return 0;
    uint32_t error = config_reader_read_map(reader, value, "accounting", &table, 1);
    if (!error && !config->accounting.file)
        return config_refuse(reader, value->line, MESSAGE(config_accounting_no_file));
    return error;
}
