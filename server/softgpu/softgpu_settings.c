/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/softgpu_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "protocol.h"
#include "server/softgpu/context_call.h"

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
                         "%s='%s': a number from %llu to %llu is wanted%s", row->variable, text,
                         (unsigned long long)row->min, (unsigned long long)row->max,
                         row->max >= 1024 ? " (K, M, G allowed)" : "");
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

static uint32_t read_drains(struct softgpu_settings *settings, struct error *why)
{
    const char *names = getenv("SOFTGPU_DRAINS");
    const char *wrong = "";

    settings->drains_named = names != NULL;
    if (!names || context_call_parse(names, &settings->drains, &wrong) == 0)
        return 0;
    return error_set(why, PROTO_ERROR_INVALID_VALUE,
                     "SOFTGPU_DRAINS: '%.*s' is no call that takes the context's lock",
                     (int)strcspn(wrong, " "), wrong);
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

void softgpu_uuid(unsigned number, cuda_uuid *uuid)
{
    static const unsigned char stem[16] = {'s', 'o', 'f', 't', 'g', 'p', 0x40, 'u', 0x80};

    memcpy(uuid->bytes, stem, sizeof(stem));
    uuid->bytes[15] = (unsigned char)number;
}

void softgpu_gpu_uuid(const struct profile *profile, unsigned number, cuda_uuid *uuid)
{
    softgpu_uuid(number, uuid);
    if (!profile->instance)
        return;
    /* All instances are of one GPU. */
    uuid->bytes[14] = 1;
    uuid->bytes[15] = 0;
}

/* Whether this is the beginning of the device's UUID, at least one digit behind GPU- or MIG-. */
static bool begins_uuid(unsigned number, const char *text, size_t length)
{
    char digits[40];
    size_t used = 0;
    cuda_uuid uuid;

    softgpu_uuid(number, &uuid);
    for (size_t i = 0; i < sizeof(uuid.bytes); i++)
        used += (size_t)snprintf(digits + used, sizeof(digits) - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid.bytes[i]);
    return length > 4 && length - 4 <= used &&
           (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0) &&
           strncasecmp(text + 4, digits, length - 4) == 0;
}

/* The device that an entry of CUDA_VISIBLE_DEVICES names; -1: none, or several. */
static int find_visible(const char *text, size_t length, uint64_t devices)
{
    uint64_t number;
    int found = -1;

    if (units_parse_number(text, length, SETTINGS_MAX_DEVICES, &number) == 0)
        return number < devices ? (int)number : -1;
    for (unsigned i = 0; i < devices; i++) {
        if (!begins_uuid(i, text, length))
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}

/* As NVIDIA's driver does: an entry that names no device ends the list. */
static void read_visible(struct softgpu_settings *settings)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");

    /* A process is shown one instance, whatever the list holds. */
    uint64_t most = settings->profile->instance ? 1 : settings->devices;

    if (!text) {
        for (unsigned i = 0; i < most; i++)
            settings->visible[settings->visible_count++] = i;
        return;
    }
    while (settings->visible_count < most) {
        size_t length = strcspn(text, ",");
        int number = find_visible(text, length, settings->devices);

        if (number < 0)
            return;
        settings->visible[settings->visible_count++] = (unsigned)number;
        if (!text[length])
            return;
        text += length + 1;
    }
}

/* Of seeds that follow each other half say yes, without a pattern that a user of even seeds alone
 * would miss. */
static bool seed_says(uint64_t seed)
{
    return seed * UINT64_C(0x9e3779b97f4a7c15) >> 63;
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
        read_drains(settings, why) ||
        read_path("SOFTGPU_STATE", settings->state_path, sizeof(settings->state_path), why) ||
        read_path("SOFTGPU_STATS", settings->stats_path, sizeof(settings->stats_path), why))
        return why->number;
    settings->connections = min(settings->connections, settings->queues);
    if (settings->unsure_drains == SETTINGS_BY_SEED)
        settings->unsure_drains = seed_says(settings->seed);
    read_visible(settings);
    if (settings->sms == 0)
        settings->sms = settings->profile->sms;
    if (settings->memory == 0)
        settings->memory = settings->profile->memory_bytes;
    if (settings->threads == 0)
        settings->threads = count_cores();
    return 0;
}
