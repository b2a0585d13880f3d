/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/id_name.h"
#include "common/messages.h"
#include "common/regular_file.h"
#include "common/units.h"
#include "server/supervisor/config/accounting.h"
#include "server/supervisor/config/limits.h"
#include "server/supervisor/config/reader.h"
#include "server/supervisor/config/sharing.h"
#include "server/supervisor/config/sizes.h"
#include "server/supervisor/config/tree.h"

static uint32_t read_clients(struct config_reader *reader, const struct config_node *value,
                             void *to)
{
    struct config *config = to;
    return config_tree_is_null(value)
               ? 0
               : config_limits_read(reader, value, "clients", NULL, &config->clients);
}

/* ---- GPUs ---- */

static uint32_t read_gpu_device(struct config_reader *reader, const struct config_node *value,
                                void *to)
{
    struct config_gpu *gpu = to;
    struct limits_visible list;
    uint32_t error = config_reader_need_text(reader, value, "gpu", "a number or a UUID (GPU-...)");
    if (error)
        return error;
    struct error unused;
    if (limits_parse_visible(&list, "gpu", value->text, &unused) || list.count != 1)
        return config_refuse(reader, value->line, MESSAGE(config_gpu_name), value->text);
    gpu->line = value->line;
    snprintf(gpu->said, sizeof gpu->said, "%.64s", value->text);
    gpu->device = list.devices[0];
    return 0;
}

static uint32_t read_gpu_schedule(struct config_reader *reader, const struct config_node *value,
                                  enum schedule_part part, const char *name, struct config_gpu *gpu)
{
    if (value->kind != CONFIG_TEXT)
        return config_refuse(reader, value->line, MESSAGE(config_text), name);
    uint32_t error = schedule_set(&gpu->schedule, part, value->text, value->length, reader->why);
    if (error) {
        config_reader_put_place(reader, value->line);
        return error;
    }
    gpu->schedule_parts |= part;
    return 0;
}

static uint32_t read_mode(struct config_reader *reader, const struct config_node *value, void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_MODE, "mode", to);
}

static uint32_t read_lease(struct config_reader *reader, const struct config_node *value, void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_LEASE, "lease", to);
}

static uint32_t read_precision(struct config_reader *reader, const struct config_node *value,
                               void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_PRECISION, "precision", to);
}

static uint32_t read_quantum(struct config_reader *reader, const struct config_node *value,
                             void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_QUANTUM, "quantum", to);
}

static uint32_t read_window_limit(struct config_reader *reader, const struct config_node *value,
                                  void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_WINDOW_LIMIT, "window_limit", to);
}

static uint32_t read_local_memory(struct config_reader *reader, const struct config_node *value,
                                  void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_LOCAL_MEMORY, "local_memory", to);
}

static uint32_t read_departed_time_limit(struct config_reader *reader,
                                         const struct config_node *value, void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_DEPARTED_LIMIT, "departed_time_limit", to);
}

static uint32_t read_watchdog_warning(struct config_reader *reader, const struct config_node *value,
                                      void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_WATCHDOG_WARNING, "watchdog_warning", to);
}

static uint32_t read_watchdog_limit(struct config_reader *reader, const struct config_node *value,
                                    void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_WATCHDOG_LIMIT, "watchdog_limit", to);
}

static uint32_t read_standby(struct config_reader *reader, const struct config_node *value,
                             void *to)
{
    return read_gpu_schedule(reader, value, SCHEDULE_STANDBY, "standby", to);
}

static uint32_t read_gpu(struct config_reader *reader, const struct config_node *node,
                         struct config_gpu *gpu)
{
    static const struct config_field fields[] = {{"gpu", read_gpu_device},
                                                 {"mode", read_mode},
                                                 {"lease", read_lease},
                                                 {"precision", read_precision},
                                                 {"quantum", read_quantum},
                                                 {"window_limit", read_window_limit},
                                                 {"local_memory", read_local_memory},
                                                 {"departed_time_limit", read_departed_time_limit},
                                                 {"watchdog_warning", read_watchdog_warning},
                                                 {"watchdog_limit", read_watchdog_limit},
                                                 {"standby", read_standby}};
    struct config_table own = CONFIG_TABLE(fields, gpu);
    gpu->schedule = schedule_default();
    uint32_t error = config_limits_read(reader, node, "an entry of gpus", &own, &gpu->limits);
    if (!error && !gpu->line)
        return config_refuse(reader, node->line, MESSAGE(config_gpu_missing));
    return error;
}

static bool same_device(const struct limits_selector *a, const struct limits_selector *b)
{
    return a->by_uuid == b->by_uuid &&
           (a->by_uuid ? strcmp(a->uuid, b->uuid) == 0 : a->ordinal == b->ordinal);
}

/* Finds what is written twice in the same way, without knowing the GPUs: config_resolve finds the
 * rest. */
static uint32_t refuse_equal(struct config_reader *reader, const struct config_gpu *gpus, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (same_device(&gpus[i].device, &gpus[at].device))
            return config_refuse(reader, gpus[at].line, MESSAGE(config_gpu_equal), gpus[at].said,
                                 gpus[i].line);
    return 0;
}

static uint32_t read_gpus(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct config *config = to;
    void *items;
    uint32_t error = config_reader_open_list(reader, value, "gpus", DEVICES_MAX,
                                             sizeof *config->gpus, &items, &config->gpu_count);
    config->gpus = items;
    if (error)
        return error;
    const struct config_node *item = value->first;
    for (size_t i = 0; !error && i < config->gpu_count; i++, item = item->next) {
        error = read_gpu(reader, item, &config->gpus[i]);
        if (!error)
            error = refuse_equal(reader, config->gpus, i);
    }
    return error;
}

/* ---- profiles ---- */

static bool profile_name_is_valid(const struct config_node *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return name->length && name->length <= LIMITS_NAME_MAX &&
           strspn(name->text, allowed) == name->length;
}

static uint32_t read_profiles(struct config_reader *reader, const struct config_node *value,
                              void *to)
{
    struct config *config = to;
    if (config_tree_is_null(value))
        return 0;
    if (value->kind != CONFIG_MAP)
        return config_refuse(reader, value->line, MESSAGE(config_profiles_mapping));
    if (value->keys > CONFIG_PROFILES_MAX)
        return config_refuse(reader, value->line, MESSAGE(config_profiles_max),
                             CONFIG_PROFILES_MAX);
    config->profiles = calloc(value->keys + 1, sizeof *config->profiles);
    if (!config->profiles)
        return config_reader_no_memory(reader, value->line);
    for (const struct config_node *key = value->first; key; key = key->next->next) {
        struct config_profile *profile = &config->profiles[config->profile_count++];
        char what[96];
        if (!profile_name_is_valid(key))
            return config_refuse(reader, key->line, MESSAGE(config_profile_name), LIMITS_NAME_MAX);
        memcpy(profile->name, key->text, key->length);
        snprintf(what, sizeof what, "profile %s", profile->name);
        uint32_t error = config_limits_read(reader, key->next, what, NULL, &profile->limits);
        if (error)
            return error;
    }
    return 0;
}

/* ---- rules ---- */

static const char *const id_keys[] = {[ID_NAME_USER] = "uid", [ID_NAME_GROUP] = "gid"};

/* A number or two of them. Names may have a dash too, and are no mistake here. */
static int parse_range(const struct config_node *node, struct config_range *range)
{
    uint64_t first, last;
    if (node->kind != CONFIG_TEXT)
        return -EINVAL;
    const char *dash = strchr(node->text, '-');
    size_t length = dash ? (size_t)(dash - node->text) : node->length;
    /* UINT32_MAX is what the kernel calls "no uid". */
    if (units_parse_number(node->text, length, UINT32_MAX - 1, &first) < 0)
        return -EINVAL;
    last = first;
    if (dash && units_parse_number(dash + 1, node->length - length - 1, UINT32_MAX - 1, &last) < 0)
        return -EINVAL;
    if (last < first)
        return -EINVAL;
    *range = (struct config_range){(uint32_t)first, (uint32_t)last};
    return 0;
}

/* kind: of the range; its key is said in sentences. */
static uint32_t read_range(struct config_reader *reader, const struct config_node *node,
                           enum id_name_kind kind, struct config_range *range)
{
    const char *what = id_keys[kind];
    if (parse_range(node, range) == 0)
        return 0;
    if (node->kind == CONFIG_TEXT && !config_tree_is_null(node) &&
        id_name_is_possible(node->text)) {
        uint32_t id, error = id_name_find(kind, node->text, &id, reader->why);
        if (error)
            config_reader_put_place(reader, node->line);
        else
            *range = (struct config_range){id, id};
        return error;
    }
    if (node->kind == CONFIG_TEXT)
        return config_refuse(reader, node->line, MESSAGE(config_range_not), what, node->text);
    return config_refuse(reader, node->line, MESSAGE(config_range), what);
}

/* One item, or a list of them that is not empty: a rule without anybody is a mistake. */
static uint32_t open_items(struct config_reader *reader, const struct config_node *value,
                           const char *what, size_t item_bytes, void **items, size_t *count,
                           const struct config_node **first)
{
    *first = value;
    *count = 0;
    if (value->kind != CONFIG_LIST) {
        *items = calloc(1, item_bytes);
        *count = *items != NULL;
        return *items ? 0 : config_reader_no_memory(reader, value->line);
    }
    uint32_t error =
        config_reader_open_list(reader, value, what, CONFIG_ITEMS_MAX, item_bytes, items, count);
    if (!error && !*count)
        return config_refuse(reader, value->line, MESSAGE(config_list_empty), what);
    *first = value->first;
    return error;
}

static uint32_t read_ranges(struct config_reader *reader, const struct config_node *value,
                            enum id_name_kind kind, struct config_range **ranges, size_t *count)
{
    const struct config_node *item;
    void *items = NULL;
    uint32_t error =
        open_items(reader, value, id_keys[kind], sizeof **ranges, &items, count, &item);
    *ranges = items;
    for (size_t i = 0; !error && i < *count; i++, item = item->next)
        error = read_range(reader, item, kind, &(*ranges)[i]);
    return error;
}

static uint32_t read_patterns(struct config_reader *reader, const struct config_node *value,
                              const char *what, bool path, char ***patterns, size_t *count)
{
    const struct config_node *item;
    void *items = NULL;
    uint32_t error = open_items(reader, value, what, sizeof **patterns, &items, count, &item);
    *patterns = items;
    for (size_t i = 0; !error && i < *count; i++, item = item->next) {
        if (item->kind != CONFIG_TEXT || !item->length || item->length > CONFIG_PATTERN_MAX ||
            config_tree_is_null(item) || (path && item->text[0] != '/'))
            return path ? config_refuse(reader, item->line, MESSAGE(config_pattern_path), what)
                        : config_refuse(reader, item->line, MESSAGE(config_pattern_text), what);
        /* "/a/" means the same as "/a". */
        size_t length = item->length;
        while (path && length > 1 && item->text[length - 1] == '/')
            length--;
        if (!((*patterns)[i] = strndup(item->text, length)))
            return config_reader_no_memory(reader, item->line);
    }
    return error;
}

static uint32_t read_uids(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct config_match *match = to;
    return read_ranges(reader, value, ID_NAME_USER, &match->uids, &match->uid_count);
}

static uint32_t read_gids(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct config_match *match = to;
    return read_ranges(reader, value, ID_NAME_GROUP, &match->gids, &match->gid_count);
}

static uint32_t read_cgroups(struct config_reader *reader, const struct config_node *value,
                             void *to)
{
    struct config_match *match = to;
    return read_patterns(reader, value, "cgroup", true, &match->cgroups, &match->cgroup_count);
}

static uint32_t read_names(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct config_match *match = to;
    return read_patterns(reader, value, "name", false, &match->names, &match->name_count);
}

static const struct config_field match_fields[] = {
    {"uid", read_uids}, {"gid", read_gids}, {"cgroup", read_cgroups}, {"name", read_names}};

static uint32_t read_match(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct config_rule *rule = to;
    struct config_table table = CONFIG_TABLE(match_fields, &rule->match);
    return config_reader_read_map(reader, value, "match", &table, 1);
}

static uint32_t refuse_name(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    return config_refuse(reader, value->line, MESSAGE(config_except_name));
}

static uint32_t read_except(struct config_reader *reader, const struct config_node *value, void *to)
{
    static const struct config_field fields[] = {
        {"uid", read_uids}, {"gid", read_gids}, {"cgroup", read_cgroups}, {"name", refuse_name}};
    struct config_rule *rule = to;
    struct config_table table = CONFIG_TABLE(fields, &rule->except);
    rule->excepts = true;
    uint32_t error = config_reader_read_map(reader, value, "except", &table, 1);
    if (!error && !value->first)
        return config_refuse(reader, value->line, MESSAGE(config_except_empty));
    return error;
}

const struct config_profile *config_find_profile(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->profile_count; i++)
        if (strcmp(config->profiles[i].name, name) == 0)
            return &config->profiles[i];
    return NULL;
}

static uint32_t read_rule_profile(struct config_reader *reader, const struct config_node *value,
                                  void *to)
{
    struct config_rule *rule = to;
    const struct config *config = reader->config;
    uint32_t error = config_reader_need_text(reader, value, "profile", "the name of a profile");
    if (error)
        return error;
    const struct config_profile *profile = config_find_profile(config, value->text);
    if (!profile)
        return config_refuse(reader, value->line, MESSAGE(config_profile_unknown), value->text);
    rule->profile = (uint32_t)(profile - config->profiles);
    return 0;
}

static uint32_t read_per(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct config_rule *rule = to;
    if (value->kind != CONFIG_TEXT || strcmp(value->text, "client") != 0)
        return config_refuse(reader, value->line, MESSAGE(config_per));
    rule->per_client = true;
    return 0;
}

static uint32_t read_rule(struct config_reader *reader, const struct config_node *node,
                          struct config_rule *rule)
{
    static const struct config_field fields[] = {{"match", read_match},
                                                 {"except", read_except},
                                                 {"profile", read_rule_profile},
                                                 {"per", read_per}};
    struct config_table own = CONFIG_TABLE(fields, rule);
    rule->profile = CONFIG_NO_PROFILE;
    rule->line = node->line;
    return config_limits_read(reader, node, "a rule", &own, &rule->limits);
}

static uint32_t read_rules(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct config *config = to;
    void *items;
    uint32_t error = config_reader_open_list(reader, value, "rules", CONFIG_RULES_MAX,
                                             sizeof *config->rules, &items, &config->rule_count);
    config->rules = items;
    if (error)
        return error;
    const struct config_node *item = value->first;
    for (size_t i = 0; !error && i < config->rule_count; i++, item = item->next)
        error = read_rule(reader, item, &config->rules[i]);
    return error;
}

/* ---- users and groups ---- */

static uint32_t read_total_uids(struct config_reader *reader, const struct config_node *value,
                                void *to)
{
    struct config_total *total = to;
    return read_ranges(reader, value, ID_NAME_USER, &total->ids, &total->id_count);
}

static uint32_t read_total_gids(struct config_reader *reader, const struct config_node *value,
                                void *to)
{
    struct config_total *total = to;
    return read_ranges(reader, value, ID_NAME_GROUP, &total->ids, &total->id_count);
}

static uint32_t read_totals(struct config_reader *reader, const struct config_node *value,
                            const char *what, const struct config_field *id,
                            struct config_total **totals, size_t *count)
{
    void *items;
    char entry[32];
    uint32_t error = config_reader_open_list(reader, value, what, CONFIG_ITEMS_MAX, sizeof **totals,
                                             &items, count);
    *totals = items;
    if (error)
        return error;
    snprintf(entry, sizeof entry, "an entry of %s", what);
    const struct config_node *item = value->first;
    for (size_t i = 0; !error && i < *count; i++, item = item->next) {
        struct config_total *total = &(*totals)[i];
        const struct config_totals each = {.what = entry, .id = {id, 1, total}};
        error = config_limits_read_total(reader, item, &each, &total->limits);
    }
    return error;
}

static uint32_t read_users(struct config_reader *reader, const struct config_node *value, void *to)
{
    static const struct config_field uid = {"uid", read_total_uids};
    struct config *config = to;
    return read_totals(reader, value, "users", &uid, &config->users, &config->user_count);
}

static uint32_t read_groups(struct config_reader *reader, const struct config_node *value, void *to)
{
    static const struct config_field gid = {"gid", read_total_gids};
    struct config *config = to;
    return read_totals(reader, value, "groups", &gid, &config->groups, &config->group_count);
}

/* ---- cgroups ---- */

static uint32_t read_cgroup_paths(struct config_reader *reader, const struct config_node *value,
                                  void *to)
{
    struct config_cgroup *cgroup = to;
    return read_patterns(reader, value, "cgroup", true, &cgroup->patterns, &cgroup->pattern_count);
}

static uint32_t read_cgroup(struct config_reader *reader, const struct config_node *node,
                            struct config_cgroup *cgroup)
{
    static const struct config_field path = {"cgroup", read_cgroup_paths};
    const struct config_totals each = {
        .what = "an entry of cgroups", .id = {&path, 1, cgroup}, .by_worker = true};
    uint32_t error = config_limits_read_total(reader, node, &each, &cgroup->limits);
    if (!error && !cgroup->pattern_count)
        return config_refuse(reader, node->line, MESSAGE(config_cgroup_missing));
    return error;
}

static uint32_t read_cgroup_list(struct config_reader *reader, const struct config_node *value,
                                 void *to)
{
    struct config *config = to;
    void *items;
    uint32_t error =
        config_reader_open_list(reader, value, "cgroups", CONFIG_ITEMS_MAX, sizeof *config->cgroups,
                                &items, &config->cgroup_count);
    config->cgroups = items;
    if (error)
        return error;
    const struct config_node *item = value->first;
    for (size_t i = 0; !error && i < config->cgroup_count; i++, item = item->next)
        error = read_cgroup(reader, item, &config->cgroups[i]);
    return error;
}

/* ---- the file ---- */

static uint32_t read_later(struct config_reader *reader, const struct config_node *value, void *to)
{
    (void)reader;
    (void)value;
    (void)to;
    return 0;
}

/* Rules name profiles, which may stand below them in the file; so it is read in two passes. */
static const struct config_field first_pass[] = {{"clients", read_clients},
                                                 {"gpus", read_gpus},
                                                 {"profiles", read_profiles},
                                                 {"rules", read_later},
                                                 {"users", read_users},
                                                 {"groups", read_groups},
                                                 {"cgroups", read_cgroup_list},
                                                 {"sharing", config_sharing_read},
                                                 {"accounting", config_accounting_read}};
static const struct config_field second_pass[] = {
    {"clients", read_later}, {"gpus", read_later},    {"profiles", read_later},
    {"rules", read_rules},   {"users", read_later},   {"groups", read_later},
    {"cgroups", read_later}, {"sharing", read_later}, {"accounting", read_later}};

static uint32_t read_file(struct config_reader *reader, const struct config_node *root)
{
    struct config_table first = CONFIG_TABLE(first_pass, reader->config);
    struct config_table second = CONFIG_TABLE(second_pass, reader->config);
    uint32_t error = config_reader_read_map(reader, root, "the configuration", &first, 1);
    return error ? error : config_reader_read_map(reader, root, "the configuration", &second, 1);
}

static void free_patterns(char **patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(patterns[i]);
    free(patterns);
}

static void free_match(struct config_match *match)
{
    free_patterns(match->cgroups, match->cgroup_count);
    free_patterns(match->names, match->name_count);
    free(match->uids);
    free(match->gids);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->rule_count; i++) {
        free_match(&config->rules[i].match);
        free_match(&config->rules[i].except);
    }
    for (size_t i = 0; i < config->user_count; i++)
        free(config->users[i].ids);
    for (size_t i = 0; i < config->group_count; i++)
        free(config->groups[i].ids);
    for (size_t i = 0; i < config->cgroup_count; i++)
        free_patterns(config->cgroups[i].patterns, config->cgroups[i].pattern_count);
    config_tree_free(&config->tree);
    free(config->users);
    free(config->groups);
    free(config->cgroups);
    free(config->accounting.file);
    free(config->file);
    free(config->text);
    free(config->gpus);
    free(config->profiles);
    free(config->rules);
    free(config);
}

uint32_t config_parse(struct config **out, const char *file, const char *text, size_t bytes,
                      struct error *why)
{
    struct config_tree tree;
    *out = NULL;
    uint32_t error = config_tree_read(&tree, file, text, bytes, why);
    if (error)
        return error;
    struct config *config = calloc(1, sizeof *config);
    struct config_reader reader = {.config = config, .file = file, .why = why};
    if (config)
        config->file = strdup(file);
    if (!config || !config->file) {
        error = config_reader_no_memory(&reader, 1);
    } else {
        config->clients = config->shared = allowance_none;
        if (tree.root && !config_tree_is_null(tree.root))
            error = read_file(&reader, tree.root);
    }
    if (config)
        config->tree = tree;
    else
        config_tree_free(&tree);
    if (error)
        config_free(config);
    else
        *out = config;
    return error;
}

static int read_text(const char *path, char *text, size_t room, size_t *bytes)
{
    int fd = regular_file_open(path, O_RDONLY), result = 0;
    if (fd < 0)
        return fd;
    for (*bytes = 0; result == 0 && *bytes < room;) {
        ssize_t got = read(fd, text + *bytes, room - *bytes);
        if (got == 0)
            break;
        if (got > 0)
            *bytes += (size_t)got;
        else if (errno != EINTR)
            result = -errno;
    }
    close(fd);
    return result;
}

static uint32_t refuse_access(const char *path, int error, struct error *why)
{
    char number[16], *name = id_name_of(ID_NAME_USER, geteuid());
    snprintf(number, sizeof number, "%u", (unsigned)geteuid());
    error_set(why, MESSAGE(config_not_permitted), path, strerror(error), name ? name : number);
    free(name);
    return why->number;
}

uint32_t config_load(struct config **out, const char *path, struct error *why)
{
    /* Room for one byte more than is allowed shows that a file is too long. */
    size_t bytes = 0, room = CONFIG_BYTES_MAX + 1;
    char *text = malloc(room);
    *out = NULL;
    int result = text ? read_text(path, text, room, &bytes) : -ENOMEM;
    uint32_t error = 0;
    if (result == 0)
        error = config_parse(out, path, text, bytes, why);
    else if (result == -ENOENT)
        error = error_set(why, MESSAGE(config_missing), path);
    else if (result == -EINVAL)
        error = error_set(why, MESSAGE(config_not_a_file), path);
    else if (result == -EACCES || result == -EPERM)
        error = refuse_access(path, -result, why);
    else
        error = error_set(why, MESSAGE(config_unreadable), path, strerror(-result));
    if (*out) {
        (*out)->text = text;
        (*out)->text_bytes = bytes;
    } else {
        free(text);
    }
    return error;
}

uint32_t config_resolve(struct config *config, const struct schedule *unsaid,
                        const uint8_t (*uuids)[LIMITS_UUID_BYTES], unsigned count,
                        struct error *why)
{
    unsigned named[DEVICES_MAX] = {0};
    struct limits_devices devices = {.uuids = uuids, .count = count};
    struct config_reader reader = {.config = config, .file = config->file, .why = why};
    config->device_count = count;
    for (unsigned i = 0; i < count; i++) {
        config->ceilings[i] = config->clients;
        allowance_tighten(&config->ceilings[i], &config->shared);
        config->schedules[i] = *unsaid;
        if (config->time_sliced) {
            config->schedules[i].mode = PROTO_MODE_FAIR;
            config->schedule_parts[i] = SCHEDULE_MODE;
        }
    }
    for (size_t i = 0; i < config->gpu_count; i++) {
        const struct config_gpu *gpu = &config->gpus[i];
        struct limits_wish wish = {.visible = {.listed = true, .count = 1}};
        wish.visible.devices[0] = gpu->device;
        struct error unused;
        if (limits_selector_fits_several(&gpu->device, uuids, count))
            return config_refuse(&reader, gpu->line, MESSAGE(config_gpu_several), gpu->said);
        if (limits_visible_resolve(&wish, &devices, &unused) || devices.visible != 1)
            return config_refuse(&reader, gpu->line, MESSAGE(config_gpu_unknown), gpu->said, count);
        const unsigned index = devices.indices[0];
        if (named[index])
            return config_refuse(&reader, gpu->line, MESSAGE(config_gpu_twice), index,
                                 named[index]);
        named[index] = gpu->line;
        allowance_tighten(&config->ceilings[index], &gpu->limits);
        schedule_merge(&config->schedules[index], &gpu->schedule, gpu->schedule_parts);
        config->schedule_parts[index] |= gpu->schedule_parts;
    }
    for (unsigned i = 0; i < count; i++)
        config_sizes_find(config, i, config->schedules[i].partition_sizes);
    return 0;
}

const struct schedule *config_schedule(const struct config *config, uint32_t device,
                                       const struct schedule *unsaid)
{
    return config ? &config->schedules[device] : unsaid;
}
