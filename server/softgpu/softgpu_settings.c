/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/softgpu_settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "protocol.h"

struct row {
    const char *variable;
    size_t offset; /* of the member, a uint64_t */
    uint64_t min, max, usual, strict;
};

static uint32_t read_environment(const struct row *row, uint64_t *value, struct error *why)
{
    const char *text = getenv(row->variable);

    if (!text || *text == '\0')
        return 0;
    if (units_parse_size(text, strlen(text), value) < 0 || *value < row->min || *value > row->max) {
        return error_set(why, PROTO_ERROR_INVALID_VALUE,
                         "%s='%s': a number from %llu to %llu is wanted (K, M, G allowed)",
                         row->variable, text, (unsigned long long)row->min,
                         (unsigned long long)row->max);
    }
    return 0;
}

static uint32_t read_path(const char *name, char *path, size_t size, struct error *why)
{
    const char *text = getenv(name);

    path[0] = '\0';
    if (!text)
        return 0;
    if (strlen(text) >= size) {
        return error_set(why, PROTO_ERROR_INVALID_VALUE, "%s is longer than %zu characters", name,
                         size - 1);
    }
    strcpy(path, text);
    return 0;
}

static uint32_t read_profile(const struct profile **profile, struct error *why)
{
    const char *name = getenv("SOFTGPU_PROFILE");

    *profile = profile_find(name ? name : "");
    if (*profile)
        return 0;
    return error_set(why, PROTO_ERROR_INVALID_VALUE,
                     "SOFTGPU_PROFILE='%s': no such profile; there are %s", name, profile_names());
}

static uint64_t count_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return cores < 1 ? 1 : min((uint64_t)cores, (uint64_t)SETTINGS_MAX_THREADS);
}

static uint32_t read_numbers(struct softgpu_settings *settings, struct error *why)
{
    static const struct row rows[] = {
#define X(member, variable, min, max, usual, strict)                                               \
    {variable, offsetof(struct softgpu_settings, member), min, max, usual, strict},
        SOFTGPU_SETTINGS(X)
#undef X
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t *value = (uint64_t *)((char *)settings + rows[i].offset);

        *value = settings->strict ? rows[i].strict : rows[i].usual;
        if (read_environment(&rows[i], value, why))
            return why->number;
    }
    return 0;
}

uint32_t softgpu_settings_read(struct softgpu_settings *settings, struct error *why)
{
    static const struct row strictness = {.variable = "SOFTGPU_STRICT", .max = 1};
    uint64_t strict = 0;

    *settings = (struct softgpu_settings){0};
    if (read_environment(&strictness, &strict, why))
        return why->number;
    settings->strict = strict != 0;
    if (read_profile(&settings->profile, why) || read_numbers(settings, why) ||
        read_path("SOFTGPU_STATE", settings->state_path, sizeof(settings->state_path), why) ||
        read_path("SOFTGPU_STATS", settings->stats_path, sizeof(settings->stats_path), why))
        return why->number;
    settings->connections = min(settings->connections, settings->queues);
    if (settings->sms == 0)
        settings->sms = settings->profile->sms;
    if (settings->memory == 0)
        settings->memory = settings->profile->memory_bytes;
    if (settings->threads == 0)
        settings->threads = count_cores();
    return 0;
}
