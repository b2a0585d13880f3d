/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dialect.h"
#include "common/units.h"
#include "server/supervisor/config_rules.h"
#include "server/supervisor/config_tree.h"

struct reader {
    struct config *config;
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 3, 4))) static void
say(struct reader *reader, const struct config_node *node, const char *format, ...)
{
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (reader->why_size)
        snprintf(reader->why, reader->why_size, "%s:%u: %s", reader->config->file, node->line,
                 reason);
}
/* The error stands here and not in say(), where an analyser doesn't see that it is one. */
#define refuse(...) (say(__VA_ARGS__), -EINVAL)

static int no_memory(struct reader *reader, const struct config_node *node)
{
    say(reader, node, "memory is short");
    return -ENOMEM;
}

static int not_supported(struct reader *reader, const struct config_node *node, const char *what)
{
    return refuse(reader, node, "%s is not supported by this version yet", what);
}

/* ---- mappings by table ---- */

typedef int field_reader(struct reader *reader, const struct config_node *value, void *to);

struct field {
    const char *name;
    field_reader *read;
};

/* The fields of a table all write to one place. */
struct table {
    const struct field *fields;
    size_t count;
    void *to;
};

static int unknown_key(struct reader *reader, const struct config_node *key, const char *what,
                       const struct table *tables, size_t table_count)
{
    char known[300] = "";
    size_t used = 0;
    for (size_t t = 0; t < table_count; t++)
        for (size_t i = 0; i < tables[t].count && used < sizeof known; i++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                     tables[t].fields[i].name);
    return refuse(reader, key, "unknown key \"%.64s\" in %s: known are %s", key->text, what, known);
}

static const struct field *find_field(const struct table *tables, size_t table_count,
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

static int read_map(struct reader *reader, const struct config_node *map, const char *what,
                    const struct table *tables, size_t table_count)
{
    if (map->kind != CONFIG_MAP)
        return refuse(reader, map, "%s must be a mapping (key: value)", what);
    for (const struct config_node *key = map->first; key; key = key->next->next) {
        void *to;
        const struct field *field = find_field(tables, table_count, key->text, &to);
        if (!field)
            return unknown_key(reader, key, what, tables, table_count);
        int result = field->read(reader, key->next, to);
        if (result < 0)
            return result;
    }
    return 0;
}

#define TABLE(fields, to)                                                                          \
    {                                                                                              \
        (fields), sizeof(fields) / sizeof *(fields), to                                            \
    }

static size_t count_items(const struct config_node *node)
{
    size_t count = 0;
    for (const struct config_node *item = node->first; item; item = item->next)
        count++;
    return count;
}

static int need_text(struct reader *reader, const struct config_node *node, const char *what,
                     const char *form)
{
    if (node->kind == CONFIG_TEXT && !config_node_is_null(node))
        return 0;
    return refuse(reader, node, "%s must be %s", what, form);
}

static int read_number(struct reader *reader, const struct config_node *node, const char *what,
                       uint64_t least, uint64_t most, uint64_t *number)
{
    if (node->kind == CONFIG_TEXT && node->plain &&
        !units_parse_number(node->text, node->length, most, number) && *number >= least)
        return 0;
    return refuse(reader, node, "%s must be a number from %llu to %llu", what,
                  (unsigned long long)least, (unsigned long long)most);
}

/* ---- what is shared ---- */

struct dial {
    const char *name, *form;
    int (*parse)(const char *text, size_t length, struct dialect_amount *amount);
};

static const struct dial dial_threads = {"threads", DIALECT_FORM_SHARE, dialect_parse_share};
static const struct dial dial_time = {"time", DIALECT_FORM_SHARE, dialect_parse_share};
static const struct dial dial_memory = {"memory", DIALECT_FORM_AMOUNT, dialect_parse_amount};
static const struct dial dial_host = {"host_memory", DIALECT_FORM_SIZE, dialect_parse_size};

struct pair {
    const struct dial *dial;
    struct dialect_amount request, limit;
    const struct config_node *request_node, *limit_node;
};

static int read_amount(struct reader *reader, const struct config_node *value,
                       const struct pair *pair, const char *which, struct dialect_amount *amount)
{
    if (value->kind == CONFIG_TEXT && !pair->dial->parse(value->text, value->length, amount))
        return 0;
    return refuse(reader, value, "%s.%s%s%.64s%s must be %s", pair->dial->name, which,
                  value->kind == CONFIG_TEXT ? " \"" : "", value->text,
                  value->kind == CONFIG_TEXT ? "\"" : "", pair->dial->form);
}

static int read_request(struct reader *reader, const struct config_node *value, void *to)
{
    struct pair *pair = to;
    pair->request_node = value;
    return read_amount(reader, value, pair, "request", &pair->request);
}

static int read_limit(struct reader *reader, const struct config_node *value, void *to)
{
    struct pair *pair = to;
    pair->limit_node = value;
    return read_amount(reader, value, pair, "limit", &pair->limit);
}

static const struct field pair_fields[] = {{"request", read_request}, {"limit", read_limit}};

static int read_pair(struct reader *reader, const struct config_node *value,
                     const struct dial *dial, struct dialect_amount *limit)
{
    struct pair pair = {.dial = dial};
    char what[64], request[UNITS_TEXT], most[UNITS_TEXT];
    snprintf(what, sizeof what, "%s", dial->name);
    if (value->kind != CONFIG_MAP)
        return refuse(reader, value, "%s must be a mapping: %s: {limit: ...}", what, what);
    struct table table = TABLE(pair_fields, &pair);
    int result = read_map(reader, value, what, &table, 1);
    if (result < 0)
        return result;
    if (pair.request_node && pair.limit.unit == pair.request.unit &&
        pair.request.value > pair.limit.value)
        return refuse(reader, pair.request_node, "%s: the request %s exceeds the limit %s", what,
                      dialect_format(pair.request, request), dialect_format(pair.limit, most));
    if (pair.request_node) {
        snprintf(what, sizeof what, "%s.request", dial->name);
        return not_supported(reader, pair.request_node, what);
    }
    *limit = pair.limit;
    return 0;
}

static int read_threads(struct reader *reader, const struct config_node *value, void *to)
{
    struct dialect_amount limit = {0};
    struct config_limits by = config_limits_none;
    int result = read_pair(reader, value, &dial_threads, &limit);
    by.threads = (uint32_t)limit.value;
    config_limits_tighten(to, &by);
    return result;
}

static int read_memory(struct reader *reader, const struct config_node *value, void *to)
{
    struct dialect_amount limit = {0};
    struct config_limits by = config_limits_none;
    int result = read_pair(reader, value, &dial_memory, &limit);
    if (limit.unit == DIALECT_BYTES)
        by.memory = limit.value;
    else
        by.memory_share = (uint32_t)limit.value;
    config_limits_tighten(to, &by);
    return result;
}

static int read_host_memory(struct reader *reader, const struct config_node *value, void *to)
{
    struct dialect_amount limit = {0};
    struct config_limits by = config_limits_none;
    int result = read_pair(reader, value, &dial_host, &limit);
    if (limit.unit)
        by.host_memory = limit.value;
    config_limits_tighten(to, &by);
    return result;
}

static int read_time(struct reader *reader, const struct config_node *value, void *to)
{
    struct dialect_amount limit = {0};
    (void)to;
    int result = read_pair(reader, value, &dial_time, &limit);
    return result < 0 ? result : not_supported(reader, value, "time");
}

/* Run:ai's: memory and time together. Where time is not shared it binds memory. */
static int read_fraction(struct reader *reader, const struct config_node *value, void *to)
{
    struct dialect_amount share;
    struct config_limits by = config_limits_none;
    if (value->kind != CONFIG_TEXT || dialect_parse_share(value->text, value->length, &share) < 0)
        return refuse(reader, value, "fraction must be %s", DIALECT_FORM_SHARE);
    if (!reader->config->fraction_line)
        reader->config->fraction_line = value->line;
    by.memory_share = (uint32_t)share.value;
    config_limits_tighten(to, &by);
    return 0;
}

/* NVIDIA's for MPS: each of n gets one n-th of memory and threads. */
static int read_replicas(struct reader *reader, const struct config_node *value, void *to)
{
    uint64_t replicas;
    struct config_limits by = config_limits_none;
    int result = read_number(reader, value, "replicas", 1, CONFIG_REPLICAS_MAX, &replicas);
    if (result < 0)
        return result;
    by.memory_share = by.threads = (uint32_t)(PROTO_PERCENT_WHOLE / replicas);
    config_limits_tighten(to, &by);
    return 0;
}

static int read_priority(struct reader *reader, const struct config_node *value, void *to)
{
    uint64_t priority;
    struct config_limits by = config_limits_none;
    int result = read_number(reader, value, "priority", 0, LIMITS_PRIORITY_MAX, &priority);
    if (result < 0)
        return result;
    by.priority = (uint32_t)priority;
    config_limits_tighten(to, &by);
    return 0;
}

static const struct field limit_fields[] = {
    {"threads", read_threads},   {"memory", read_memory},     {"host_memory", read_host_memory},
    {"time", read_time},         {"fraction", read_fraction}, {"replicas", read_replicas},
    {"priority", read_priority},
};

static int read_clients(struct reader *reader, const struct config_node *value, void *to)
{
    struct config *config = to;
    struct table table = TABLE(limit_fields, &config->clients);
    return config_node_is_null(value) ? 0 : read_map(reader, value, "clients", &table, 1);
}

/* ---- GPUs ---- */

static int read_gpu_device(struct reader *reader, const struct config_node *value, void *to)
{
    struct config_gpu *gpu = to;
    struct limits_visible list;
    int result = need_text(reader, value, "gpu", "a number or a UUID (GPU-...)");
    if (result < 0)
        return result;
    if (limits_parse_visible(&list, "gpu", value->text, NULL, 0) < 0 || list.count != 1)
        return refuse(reader, value,
                      "gpu \"%.64s\" must be the number of a GPU, from 0, or its "
                      "UUID (GPU-...)",
                      value->text);
    gpu->line = value->line;
    gpu->device = list.devices[0];
    return 0;
}

static int read_mode(struct reader *reader, const struct config_node *value, void *to)
{
    static const char *const later[] = {"strict", "fair", "turns"};
    char what[32];
    (void)to;
    if (value->kind == CONFIG_TEXT && !strcmp(value->text, "concurrent"))
        return 0;
    for (size_t i = 0; value->kind == CONFIG_TEXT && i < sizeof later / sizeof *later; i++) {
        if (strcmp(value->text, later[i]))
            continue;
        snprintf(what, sizeof what, "mode %s", later[i]);
        return not_supported(reader, value, what);
    }
    return refuse(reader, value, "mode must be concurrent, strict, fair or turns");
}

static int refuse_lease(struct reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    return not_supported(reader, value, "lease");
}

static int refuse_precision(struct reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    return not_supported(reader, value, "precision");
}

static int refuse_quantum(struct reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    return not_supported(reader, value, "quantum");
}

static const struct field gpu_fields[] = {{"gpu", read_gpu_device},
                                          {"mode", read_mode},
                                          {"lease", refuse_lease},
                                          {"precision", refuse_precision},
                                          {"quantum", refuse_quantum}};

static int read_gpu(struct reader *reader, const struct config_node *node, struct config_gpu *gpu)
{
    gpu->limits = config_limits_none;
    struct table tables[] = {TABLE(gpu_fields, gpu), TABLE(limit_fields, &gpu->limits)};
    int result = read_map(reader, node, "an entry of gpus", tables, 2);
    if (result == 0 && !gpu->line)
        return refuse(reader, node, "an entry of gpus needs the key gpu, which says which GPU");
    return result;
}

/* A list's items; NULL in *items for an empty one. */
static int open_list(struct reader *reader, const struct config_node *list, const char *what,
                     size_t most, size_t item_bytes, void **items, size_t *count)
{
    *items = NULL;
    *count = 0;
    if (config_node_is_null(list))
        return 0;
    if (list->kind != CONFIG_LIST)
        return refuse(reader, list, "%s must be a list (- ...)", what);
    *count = count_items(list);
    if (*count > most) {
        *count = 0;
        return refuse(reader, list, "%s has more than %zu entries", what, most);
    }
    if (*count && !(*items = calloc(*count, item_bytes))) {
        *count = 0;
        return no_memory(reader, list);
    }
    return 0;
}

static int read_gpus(struct reader *reader, const struct config_node *value, void *to)
{
    struct config *config = to;
    void *items;
    int result = open_list(reader, value, "gpus", LIMITS_DEVICES_MAX, sizeof *config->gpus, &items,
                           &config->gpu_count);
    config->gpus = items;
    if (result < 0)
        return result;
    const struct config_node *item = value->first;
    for (size_t i = 0; result == 0 && i < config->gpu_count; i++, item = item->next)
        result = read_gpu(reader, item, &config->gpus[i]);
    return result;
}

/* ---- profiles ---- */

static bool profile_name_is_valid(const struct config_node *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return name->length && name->length <= LIMITS_NAME_MAX &&
           strspn(name->text, allowed) == name->length;
}

static int read_profiles(struct reader *reader, const struct config_node *value, void *to)
{
    struct config *config = to;
    if (config_node_is_null(value))
        return 0;
    if (value->kind != CONFIG_MAP)
        return refuse(reader, value, "profiles must be a mapping (name: {...})");
    if (value->keys > CONFIG_PROFILES_MAX)
        return refuse(reader, value, "profiles has more than %d entries", CONFIG_PROFILES_MAX);
    config->profiles = calloc(value->keys + 1, sizeof *config->profiles);
    if (!config->profiles)
        return no_memory(reader, value);
    for (const struct config_node *key = value->first; key; key = key->next->next) {
        struct config_profile *profile = &config->profiles[config->profile_count++];
        char what[96];
        if (!profile_name_is_valid(key))
            return refuse(reader, key,
                          "a profile's name is 1 to %d letters, digits, '_', '.' or "
                          "'-'",
                          LIMITS_NAME_MAX);
        memcpy(profile->name, key->text, key->length);
        profile->limits = config_limits_none;
        struct table table = TABLE(limit_fields, &profile->limits);
        snprintf(what, sizeof what, "profile %s", profile->name);
        int result = read_map(reader, key->next, what, &table, 1);
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- rules ---- */

static int parse_range(const struct config_node *node, struct config_range *range)
{
    uint64_t first, last;
    if (node->kind != CONFIG_TEXT)
        return -EINVAL;
    const char *dash = strchr(node->text, '-');
    size_t length = dash ? (size_t)(dash - node->text) : node->length;
    /* The highest is what the kernel calls "no uid". */
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

static int read_range(struct reader *reader, const struct config_node *node, const char *what,
                      struct config_range *range)
{
    if (parse_range(node, range) == 0)
        return 0;
    return refuse(reader, node,
                  "%s must be a number, or a range like 1000-1999 (names are not "
                  "looked up; see id(1))",
                  what);
}

/* One item, or a list of them that is not empty: a rule without anybody is a mistake. */
static int open_items(struct reader *reader, const struct config_node *value, const char *what,
                      size_t item_bytes, void **items, size_t *count,
                      const struct config_node **first)
{
    *first = value;
    *count = 0;
    if (value->kind != CONFIG_LIST) {
        *items = calloc(1, item_bytes);
        *count = *items != NULL;
        return *items ? 0 : no_memory(reader, value);
    }
    int result = open_list(reader, value, what, CONFIG_ITEMS_MAX, item_bytes, items, count);
    if (result == 0 && !*count)
        return refuse(reader, value, "%s is an empty list: leave the key out to mean everybody",
                      what);
    *first = value->first;
    return result;
}

static int read_ranges(struct reader *reader, const struct config_node *value, const char *what,
                       struct config_range **ranges, size_t *count)
{
    const struct config_node *item;
    void *items = NULL;
    int result = open_items(reader, value, what, sizeof **ranges, &items, count, &item);
    *ranges = items;
    for (size_t i = 0; result == 0 && i < *count; i++, item = item->next)
        result = read_range(reader, item, what, &(*ranges)[i]);
    return result;
}

static int read_patterns(struct reader *reader, const struct config_node *value, const char *what,
                         bool path, char ***patterns, size_t *count)
{
    const struct config_node *item;
    void *items = NULL;
    int result = open_items(reader, value, what, sizeof **patterns, &items, count, &item);
    *patterns = items;
    for (size_t i = 0; result == 0 && i < *count; i++, item = item->next) {
        if (item->kind != CONFIG_TEXT || !item->length || item->length > CONFIG_PATTERN_MAX ||
            config_node_is_null(item) || (path && item->text[0] != '/'))
            return refuse(reader, item,
                          path ? "%s must be an absolute path, '*' for any part of a "
                                 "name in it"
                               : "%s must be a text, '*' for any part of it",
                          what);
        /* "/a/" means the same as "/a". */
        size_t length = item->length;
        while (path && length > 1 && item->text[length - 1] == '/')
            length--;
        if (!((*patterns)[i] = strndup(item->text, length)))
            return no_memory(reader, item);
    }
    return result;
}

static int read_uids(struct reader *reader, const struct config_node *value, void *to)
{
    struct config_match *match = to;
    return read_ranges(reader, value, "uid", &match->uids, &match->uid_count);
}

static int read_gids(struct reader *reader, const struct config_node *value, void *to)
{
    struct config_match *match = to;
    return read_ranges(reader, value, "gid", &match->gids, &match->gid_count);
}

static int read_cgroups(struct reader *reader, const struct config_node *value, void *to)
{
    struct config_match *match = to;
    return read_patterns(reader, value, "cgroup", true, &match->cgroups, &match->cgroup_count);
}

static int read_names(struct reader *reader, const struct config_node *value, void *to)
{
    struct config_match *match = to;
    return read_patterns(reader, value, "name", false, &match->names, &match->name_count);
}

static const struct field match_fields[] = {
    {"uid", read_uids}, {"gid", read_gids}, {"cgroup", read_cgroups}, {"name", read_names}};

static int read_match(struct reader *reader, const struct config_node *value, void *to)
{
    struct config_rule *rule = to;
    struct table table = TABLE(match_fields, &rule->match);
    return read_map(reader, value, "match", &table, 1);
}

static int refuse_name(struct reader *reader, const struct config_node *value, void *to)
{
    (void)to;
    return refuse(reader, value, "except can't go by name: a client chooses its own");
}

static int read_except(struct reader *reader, const struct config_node *value, void *to)
{
    static const struct field fields[] = {
        {"uid", read_uids}, {"gid", read_gids}, {"cgroup", read_cgroups}, {"name", refuse_name}};
    struct config_rule *rule = to;
    struct table table = TABLE(fields, &rule->except);
    rule->excepts = true;
    int result = read_map(reader, value, "except", &table, 1);
    if (result == 0 && !value->first)
        return refuse(reader, value, "except is empty: it must name uid, gid or cgroup");
    return result;
}

static int read_rule_profile(struct reader *reader, const struct config_node *value, void *to)
{
    struct config_rule *rule = to;
    const struct config *config = reader->config;
    int result = need_text(reader, value, "profile", "the name of a profile");
    for (uint32_t i = 0; result == 0 && i < config->profile_count; i++) {
        if (strcmp(config->profiles[i].name, value->text))
            continue;
        rule->profile = i;
        return 0;
    }
    return result < 0 ? result
                      : refuse(reader, value, "there is no profile \"%.64s\"", value->text);
}

static const struct field rule_fields[] = {
    {"match", read_match}, {"except", read_except}, {"profile", read_rule_profile}};

static int read_rule(struct reader *reader, const struct config_node *node,
                     struct config_rule *rule)
{
    rule->limits = config_limits_none;
    rule->profile = CONFIG_NO_PROFILE;
    rule->line = node->line;
    struct table tables[] = {TABLE(rule_fields, rule), TABLE(limit_fields, &rule->limits)};
    return read_map(reader, node, "a rule", tables, 2);
}

static int read_rules(struct reader *reader, const struct config_node *value, void *to)
{
    struct config *config = to;
    void *items;
    int result = open_list(reader, value, "rules", CONFIG_RULES_MAX, sizeof *config->rules, &items,
                           &config->rule_count);
    config->rules = items;
    if (result < 0)
        return result;
    const struct config_node *item = value->first;
    for (size_t i = 0; result == 0 && i < config->rule_count; i++, item = item->next)
        result = read_rule(reader, item, &config->rules[i]);
    return result;
}

/* ---- the file ---- */

static int later(struct reader *reader, const struct config_node *value, void *to)
{
    (void)reader;
    (void)value;
    (void)to;
    return 0;
}

/* Rules name profiles, which may stand below them: two passes. */
static const struct field first_pass[] = {
    {"clients", read_clients}, {"gpus", read_gpus}, {"profiles", read_profiles}, {"rules", later}};
static const struct field second_pass[] = {
    {"clients", later}, {"gpus", later}, {"profiles", later}, {"rules", read_rules}};

static int read_file(struct reader *reader, const struct config_node *root)
{
    struct table first = TABLE(first_pass, reader->config);
    struct table second = TABLE(second_pass, reader->config);
    int result = read_map(reader, root, "the configuration", &first, 1);
    return result < 0 ? result : read_map(reader, root, "the configuration", &second, 1);
}

static void free_match(struct config_match *match)
{
    for (size_t i = 0; i < match->cgroup_count; i++)
        free(match->cgroups[i]);
    for (size_t i = 0; i < match->name_count; i++)
        free(match->names[i]);
    free(match->uids);
    free(match->gids);
    free(match->cgroups);
    free(match->names);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->rule_count; i++) {
        free_match(&config->rules[i].match);
        free_match(&config->rules[i].except);
    }
    free(config->file);
    free(config->gpus);
    free(config->profiles);
    free(config->rules);
    free(config);
}

int config_parse(struct config **out, const char *file, const char *text, size_t bytes, char *why,
                 size_t why_size)
{
    struct config_tree tree;
    *out = NULL;
    int result = config_tree_read(&tree, file, text, bytes, why, why_size);
    if (result < 0)
        return result;
    struct config *config = calloc(1, sizeof *config);
    if (config)
        config->file = strdup(file);
    if (!config || !config->file) {
        if (why_size)
            snprintf(why, why_size, "%s:1: memory is short", file);
        result = -ENOMEM;
    } else {
        struct reader reader = {.config = config, .why = why, .why_size = why_size};
        config->clients = config_limits_none;
        if (tree.root && !config_node_is_null(tree.root))
            result = read_file(&reader, tree.root);
    }
    config_tree_free(&tree);
    if (result < 0)
        config_free(config);
    else
        *out = config;
    return result;
}

/* Not blocking: a pipe at that path must not hold the server up. */
static int read_text(const char *path, char *text, size_t room, size_t *bytes)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int result = fstat(fd, &status) < 0 ? -errno : S_ISREG(status.st_mode) ? 0 : -EINVAL;
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

int config_load(struct config **out, const char *path, char *why, size_t why_size)
{
    /* One more than may be, so that a file that is too long is seen as such. */
    size_t bytes = 0, room = CONFIG_BYTES_MAX + 1;
    char *text = malloc(room);
    *out = NULL;
    int result = text ? read_text(path, text, room, &bytes) : -ENOMEM;
    if (result < 0 && why_size)
        snprintf(why, why_size, "%s: %s", path,
                 result == -EINVAL ? "is not a regular file" : strerror(-result));
    if (result == 0)
        result = config_parse(out, path, text, bytes, why, why_size);
    free(text);
    return result;
}

int config_resolve(struct config *config, const uint8_t (*uuids)[LIMITS_UUID_BYTES], unsigned count,
                   char *why, size_t why_size)
{
    unsigned named[LIMITS_DEVICES_MAX] = {0}, index[LIMITS_DEVICES_MAX];
    config->device_count = count;
    for (unsigned i = 0; i < count; i++)
        config->ceilings[i] = config->clients;
    for (size_t i = 0; i < config->gpu_count; i++) {
        const struct config_gpu *gpu = &config->gpus[i];
        struct limits_wish wish = {.visible = {.listed = true, .count = 1}};
        wish.visible.devices[0] = gpu->device;
        if (limits_visible_resolve(&wish, uuids, count, index, NULL, 0) != 1) {
            snprintf(why, why_size,
                     "%s:%u: there is no such GPU, or the UUID fits several: this "
                     "server has %u, numbered from 0",
                     config->file, gpu->line, count);
            return -EINVAL;
        }
        if (named[index[0]]) {
            snprintf(why, why_size, "%s:%u: GPU %u has an entry already, in line %u", config->file,
                     gpu->line, index[0], named[index[0]]);
            return -EINVAL;
        }
        named[index[0]] = gpu->line;
        config_limits_tighten(&config->ceilings[index[0]], &gpu->limits);
    }
    return 0;
}
