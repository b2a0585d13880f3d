/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/sharing.h"

#include <stdlib.h>
#include <string.h>

#include "server/supervisor/config/config.h"
#include "server/supervisor/config/limits.h"

#define RESOURCE "nvidia.com/gpu"

struct sharing {
    const char *method; /* "mps", "timeSlicing" */
    uint64_t replicas;  /* of every GPU; 0: unsaid */
};

/* Both are off where they stand not, and we have nothing that they could switch on. */
static int need_false(struct config_reader *reader, const struct config_node *value,
                      const char *name, const char *reason)
{
    if (value->kind == CONFIG_TEXT && value->plain && !strcmp(value->text, "false"))
        return 0;
    if (value->kind == CONFIG_TEXT && value->plain && !strcmp(value->text, "true"))
        return config_refuse(reader, value->line, "%s: true can't be honoured here: %s", name,
                             reason);
    return config_refuse(reader, value->line, "%s must be false", name);
}

static int read_rename(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    return need_false(reader, value, "renameByDefault",
                      "gpushared advertises no resource to Kubernetes whose name it could change");
}

static int read_fail(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    return need_false(reader, value, "failRequestsGreaterThanOne",
                      "a pod's request is the kubelet's business, and each connection of a client "
                      "gets one share");
}

static int read_name(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    if (value->kind == CONFIG_TEXT && !strcmp(value->text, RESOURCE))
        return 0;
    return config_refuse(reader, value->line,
                         "name must be " RESOURCE ": other resources (MIG instances) can't be "
                         "shared by this name");
}

static int refuse_new_name(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    return config_refuse(reader, value->line,
                         "rename can't be honoured here: gpushared advertises no resource to "
                         "Kubernetes whose name it could change");
}

static int read_devices(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    if (value->kind == CONFIG_TEXT && !strcmp(value->text, "all"))
        return 0;
    return config_refuse(reader, value->line,
                         "devices must be all: to share some GPUs in another way than others, "
                         "write an entry with replicas, or mode, for each in gpus");
}

static int read_replicas(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct sharing *sharing = to;
    return config_reader_read_number(reader, value, "replicas", 1, CONFIG_REPLICAS_MAX,
                                     &sharing->replicas);
}

static int read_resource(struct config_reader *reader, const struct config_node *node,
                         struct sharing *sharing)
{
    static const struct config_field fields[] = {{"name", read_name},
                                                 {"replicas", read_replicas},
                                                 {"devices", read_devices},
                                                 {"rename", refuse_new_name}};
    struct config_table table = CONFIG_TABLE(fields, sharing);
    if (sharing->replicas)
        return config_refuse(reader, node->line,
                             "resources names " RESOURCE " twice: one entry is for all GPUs");
    int result = config_reader_read_map(reader, node, "an entry of resources", &table, 1);
    if (result == 0 && !sharing->replicas)
        return config_refuse(reader, node->line, "an entry of resources needs the key replicas");
    return result;
}

static int read_resources(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct sharing *sharing = to;
    if (value->kind != CONFIG_LIST || !value->first)
        return config_refuse(reader, value->line,
                             "resources must be a list: - {name: " RESOURCE ", replicas: 4}");
    int result = 0;
    for (const struct config_node *item = value->first; result == 0 && item; item = item->next)
        result = read_resource(reader, item, sharing);
    return result;
}

static int read_method(struct config_reader *reader, const struct config_node *value,
                       struct sharing *sharing, const char *method)
{
    static const struct config_field fields[] = {{"resources", read_resources},
                                                 {"renameByDefault", read_rename},
                                                 {"failRequestsGreaterThanOne", read_fail}};
    struct config_table table = CONFIG_TABLE(fields, sharing);
    if (sharing->method)
        return config_refuse(reader, value->line,
                             "sharing says both %s and %s: a server shares in one way, or in "
                             "another for each of gpus",
                             sharing->method, method);
    sharing->method = method;
    int result = config_reader_read_map(reader, value, method, &table, 1);
    if (result == 0 && !sharing->replicas)
        return config_refuse(reader, value->line, "%s needs the key resources", method);
    return result;
}

static int read_mps(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct sharing *sharing = to;
    int result = read_method(reader, value, sharing, "mps");
    if (result == 0)
        config_limits_replicate(&reader->config->shared, sharing->replicas, value->line);
    return result;
}

static int read_time_slicing(struct config_reader *reader, const struct config_node *value,
                             void *to)
{
    int result = read_method(reader, value, to, "timeSlicing");
    reader->config->time_sliced = true;
    return result;
}

int config_sharing_read(struct config_reader *reader, const struct config_node *value, void *to)
{
    static const struct config_field fields[] = {{"timeSlicing", read_time_slicing},
                                                 {"mps", read_mps}};
    struct sharing sharing = {0};
    struct config_table table = CONFIG_TABLE(fields, &sharing);
    (void)to;
    return config_tree_is_null(value) ? 0
                                      : config_reader_read_map(reader, value, "sharing", &table, 1);
}
