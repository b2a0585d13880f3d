/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/sharing.h"

#include <stdlib.h>
#include <string.h>

#include "common/messages.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/config/limits.h"

#define RESOURCE "nvidia.com/gpu"

struct sharing {
    const char *method; /* "mps", "timeSlicing" */
    uint64_t replicas;  /* of every GPU; 0: not given yet */
};

static bool is_true(const struct config_node *value)
{
    return value->kind == CONFIG_TEXT && value->plain && !strcmp(value->text, "true");
}

/* Both are off where they stand not, and we have nothing that they could switch on. */
static uint32_t need_false(struct config_reader *reader, const struct config_node *value,
                           const char *name)
{
    if (value->kind == CONFIG_TEXT && value->plain && !strcmp(value->text, "false"))
        return 0;
    return config_refuse(reader, value->line, MESSAGE(config_sharing_false), name);
}

static uint32_t read_rename(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    if (is_true(value))
        return config_refuse(reader, value->line, MESSAGE(config_sharing_no_resource));
    return need_false(reader, value, "renameByDefault");
}

static uint32_t read_fail(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    if (is_true(value))
        return config_refuse(reader, value->line, MESSAGE(config_sharing_one_share));
    return need_false(reader, value, "failRequestsGreaterThanOne");
}

static uint32_t read_name(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    if (value->kind == CONFIG_TEXT && !strcmp(value->text, RESOURCE))
        return 0;
    return config_refuse(reader, value->line, MESSAGE(config_sharing_name), RESOURCE);
}

static uint32_t refuse_new_name(struct config_reader *reader, const struct config_node *value,
                                void *to)
{
    (void)to;
    return config_refuse(reader, value->line, MESSAGE(config_sharing_rename));
}

static uint32_t read_devices(struct config_reader *reader, const struct config_node *value,
                             void *to)
{
    (void)to;
    if (value->kind == CONFIG_TEXT && !strcmp(value->text, "all"))
        return 0;
    return config_refuse(reader, value->line, MESSAGE(config_sharing_devices));
}

static uint32_t read_replicas(struct config_reader *reader, const struct config_node *value,
                              void *to)
{
    struct sharing *sharing = to;
    return config_reader_read_number(reader, value, "replicas", 1, CONFIG_REPLICAS_MAX,
                                     &sharing->replicas);
}

static uint32_t read_replicated(struct config_reader *reader, const struct config_node *node,
                                struct sharing *sharing)
{
    static const struct config_field fields[] = {{"name", read_name},
                                                 {"replicas", read_replicas},
                                                 {"devices", read_devices},
                                                 {"rename", refuse_new_name}};
    struct config_table table = CONFIG_TABLE(fields, sharing);
    if (sharing->replicas)
        return config_refuse(reader, node->line, MESSAGE(config_sharing_twice), RESOURCE);
    uint32_t error = config_reader_read_map(reader, node, "an entry of resources", &table, 1);
    if (!error && !sharing->replicas)
        return config_refuse(reader, node->line, MESSAGE(config_sharing_replicas));
    return error;
}

static uint32_t read_resources(struct config_reader *reader, const struct config_node *value,
                               void *to)
{
    struct sharing *sharing = to;
    if (value->kind != CONFIG_LIST || !value->first)
        return config_refuse(reader, value->line, MESSAGE(config_sharing_list), RESOURCE);
    uint32_t error = 0;
    for (const struct config_node *item = value->first; !error && item; item = item->next)
        error = read_replicated(reader, item, sharing);
    return error;
}

static uint32_t read_method(struct config_reader *reader, const struct config_node *value,
                            struct sharing *sharing, const char *method)
{
    static const struct config_field fields[] = {{"resources", read_resources},
                                                 {"renameByDefault", read_rename},
                                                 {"failRequestsGreaterThanOne", read_fail}};
    struct config_table table = CONFIG_TABLE(fields, sharing);
    if (sharing->method)
        return config_refuse(reader, value->line, MESSAGE(config_sharing_both), sharing->method,
                             method);
    sharing->method = method;
    uint32_t error = config_reader_read_map(reader, value, method, &table, 1);
    if (!error && !sharing->replicas)
        return config_refuse(reader, value->line, MESSAGE(config_sharing_resources), method);
    return error;
}

static uint32_t read_mps(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct sharing *sharing = to;
    uint32_t error = read_method(reader, value, sharing, "mps");
    if (!error)
        config_limits_replicate(&reader->config->shared, sharing->replicas, value->line);
    return error;
}

static uint32_t read_time_slicing(struct config_reader *reader, const struct config_node *value,
                                  void *to)
{
    uint32_t error = read_method(reader, value, to, "timeSlicing");
    reader->config->time_sliced = true;
    return error;
}

uint32_t config_sharing_read(struct config_reader *reader, const struct config_node *value,
                             void *to)
{
    static const struct config_field fields[] = {{"timeSlicing", read_time_slicing},
                                                 {"mps", read_mps}};
    struct sharing sharing = {0};
    struct config_table table = CONFIG_TABLE(fields, &sharing);
    (void)to;
    return config_tree_is_null(value) ? 0
                                      : config_reader_read_map(reader, value, "sharing", &table, 1);
}
