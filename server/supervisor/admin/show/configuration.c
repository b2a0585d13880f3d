/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/show/configuration.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/limits/allowance.h"
#include "common/limits/dialect.h"
#include "common/messages.h"
#include "common/units.h"
#include "server/supervisor/account/total_override.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/admin/json.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/config/tree.h"
#include "server/supervisor/view.h"

/* ---- the file ---- */

static json_t *node_json(const struct config_node *node);

static json_t *list_json(const struct config_node *list)
{
    json_t *json = json_array();
    for (const struct config_node *item = list->first; json && item; item = item->next)
        if (json_array_append_new(json, node_json(item)) < 0) {
            json_decref(json);
            return NULL;
        }
    return json;
}

static json_t *map_json(const struct config_node *map)
{
    json_t *json = json_object();
    for (const struct config_node *key = map->first; json && key; key = key->next->next)
        if (json_object_set_new(json, key->text, node_json(key->next)) < 0) {
            json_decref(json);
            return NULL;
        }
    return json;
}

/* YAML calls it a number, and so do the readers of the schema. */
static bool is_number(const struct config_node *node, uint64_t *number)
{
    return node->plain && (node->text[0] != '0' || node->length == 1) &&
           units_parse_number(node->text, node->length, INT64_MAX, number) == 0;
}

static json_t *text_json(const struct config_node *node)
{
    uint64_t number;
    if (config_tree_is_null(node))
        return json_null();
    return is_number(node, &number) ? json_integer((json_int_t)number)
                                    : json_stringn(node->text, node->length);
}

/* The reader of the file has bounded the depth. */
static json_t *node_json(const struct config_node *node)
{
    if (node->kind == CONFIG_LIST)
        return list_json(node);
    return node->kind == CONFIG_MAP ? map_json(node) : text_json(node);
}

/* ---- GPUs ---- */

static json_t *time_json(uint64_t ns)
{
    char text[UNITS_TEXT];
    return json_string(ns ? units_format_duration(ns, text) : "0");
}

static void put_schedule(struct admin_json *gpu, const struct schedule *schedule)
{
    char precision[UNITS_TEXT], local[UNITS_TEXT];
    const struct dialect_amount share = {DIALECT_SHARE, schedule->precision};
    admin_json_put(gpu, "mode", json_string(proto_mode_name(schedule->mode)));
    admin_json_put(gpu, "lease", time_json(schedule->lease_ns));
    admin_json_put(gpu, "precision", json_string(dialect_format(share, precision)));
    admin_json_put(gpu, "quantum", time_json(schedule->quantum_ns));
    admin_json_put(gpu, "window_limit", time_json(schedule->window_limit_ns));
    admin_json_put(gpu, "local_memory",
                   json_string(units_format_size(schedule->local_memory, local)));
    admin_json_put(gpu, "departed_time_limit", time_json(schedule->departed_limit_ns));
    admin_json_put(gpu, "watchdog_warning", time_json(schedule->watchdog_warning_ns));
    admin_json_put(gpu, "watchdog_limit", time_json(schedule->watchdog_limit_ns));
    admin_json_put(gpu, "standby", json_string(schedule_standby_name(schedule->standby)));
}

static json_t *amount_json(enum resource resource, uint64_t value)
{
    char text[UNITS_TEXT];
    return json_string(
        value ? dialect_format((struct dialect_amount){allowance_resource(resource)->unit, value},
                               text)
              : "0");
}

/* Without a request nobody says anything of requests, and 0 would forbid them. A limit that is all
 * there is limits nothing. */
static json_t *range_json(const struct device_view *view, enum resource resource)
{
    const struct allowance_range *range = &view->newcomer.of[resource];
    const bool share = allowance_resource(resource)->unit == DIALECT_SHARE;
    struct admin_json json = admin_json_new();
    if (view->newcomer_requests & RESOURCE_BIT(resource))
        admin_json_put(&json, "request", amount_json(resource, range->request));
    if (range->limit < (share ? ALLOWANCE_WHOLE : ALLOWANCE_ENDLESS))
        admin_json_put(&json, "limit", amount_json(resource, range->limit));
    return admin_json_finish(&json);
}

static void put_limits(struct admin_json *gpu, const struct device_view *view)
{
    char text[UNITS_TEXT];
    for (enum resource i = 0; i < RESOURCES; i++) {
        json_t *range = range_json(view, i);
        if (range && json_object_size(range) == 0)
            json_decref(range);
        else
            admin_json_put(gpu, allowance_resource(i)->name, range);
    }
    for (enum scalar i = 0; i < SCALARS; i++) {
        const uint64_t value = view->newcomer.scalar[i];
        if (value)
            admin_json_put(gpu, allowance_scalar(i)->name,
                           allowance_scalar(i)->unit == ALLOWANCE_NUMBER
                               ? json_integer((json_int_t)value)
                               : json_string(allowance_format_scalar(i, value, text)));
    }
}

static json_t *gpu_json(const struct supervisor *supervisor, uint32_t index, struct error *why)
{
    char uuid[LIMITS_UUID_TEXT];
    struct device_view view;
    struct admin_json gpu = admin_json_new();
    memset(&view, 0, sizeof view);
    view_device(supervisor, index, &view);
    if (!view.info.multiprocessors)
        error_set(why, MESSAGE(admin_config_unready), index);
    admin_json_put(&gpu, "gpu", json_string(view_device_uuid(supervisor, index, uuid)));
    put_schedule(&gpu, &view.schedule);
    put_limits(&gpu, &view);
    return admin_json_finish(&gpu);
}

/* ---- totals that an administrator has set ---- */

static void describe_bound(const struct total_override *override, enum resource resource,
                           enum allowance_bound bound, char *text, size_t room)
{
    static const char *const names[] = {
        [ALLOWANCE_REQUEST] = "request", [ALLOWANCE_LIMIT] = "limit"};
    const struct allowance_range *of = &override->limits.of[resource];
    const struct allowance_range *part = &override->limits.part[resource];
    const uint64_t whole = bound == ALLOWANCE_LIMIT ? of->limit : of->request;
    const uint64_t share = bound == ALLOWANCE_LIMIT ? part->limit : part->request;
    const struct allowance_resource *row = allowance_resource(resource);
    const struct dialect_amount amount = share != ALLOWANCE_UNSET
                                             ? (struct dialect_amount){DIALECT_SHARE, share}
                                             : (struct dialect_amount){row->unit, whole};
    char value[UNITS_TEXT];
    const size_t used = strlen(text);
    snprintf(text + used, room - used, " total.%s.%s=%s", row->name, names[bound],
             amount.value ? dialect_format(amount, value) : "0");
}

/* The command that sets the total again: "set user 1001 total.memory.limit=40%". */
static json_t *override_json(const struct total_override *override)
{
    const struct account_owner owner = {override->kind, override->id, override->cgroup};
    char name[ACCOUNT_OWNER_TEXT], text[ACCOUNT_OWNER_TEXT + 512];
    snprintf(text, sizeof text, "set %s", account_owner_text(&owner, name));
    for (enum resource i = 0; i < RESOURCES; i++)
        for (enum allowance_bound bound = ALLOWANCE_REQUEST; bound <= ALLOWANCE_LIMIT; bound++)
            if ((override->parts & RESOURCE_BIT(i)) && allowance_has(&override->limits, i, bound))
                describe_bound(override, i, bound, text, sizeof text);
    return admin_json_text(text);
}

static json_t *overrides_json(const struct total_overrides *overrides)
{
    json_t *json = json_array();
    for (size_t i = 0; json && i < overrides->count; i++)
        if (json_array_append_new(json, override_json(&overrides->items[i])) < 0) {
            json_decref(json);
            return NULL;
        }
    return json;
}

/* ---- the whole ---- */

static json_t *whole_json(const struct supervisor *supervisor, const struct config *config,
                          struct error *why)
{
    const struct config_node *root = config ? config->tree.root : NULL;
    json_t *whole = root && root->kind == CONFIG_MAP ? map_json(root) : json_object();
    json_t *gpus = json_array();
    for (uint32_t i = 0; gpus && i < view_device_count(supervisor); i++)
        if (json_array_append_new(gpus, gpu_json(supervisor, i, why)) < 0) {
            json_decref(gpus);
            gpus = NULL;
        }
    if (json_object_set_new(whole, "gpus", gpus) == 0)
        return whole;
    json_decref(whole);
    return NULL;
}

uint32_t configuration_answer(const struct supervisor *supervisor, json_t **answer,
                              struct error *why)
{
    const struct config *config = view_configuration(supervisor);
    struct admin_json json = admin_answer_begin(true, "config");
    why->number = 0;
    admin_answer_put_versions(&json);
    admin_json_put(&json, "file", config ? admin_json_text(config->file) : json_null());
    admin_json_put(&json, "configuration", whole_json(supervisor, config, why));
    admin_json_put(&json, "totals", overrides_json(view_overrides(supervisor)));
    *answer = admin_json_finish(&json);
    if (!why->number)
        return 0;
    json_decref(*answer);
    *answer = NULL;
    return why->number;
}
