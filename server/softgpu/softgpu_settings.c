/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/softgpu_settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/units.h"
#include "protocol.h"

struct row {
    const char *name;
    uint64_t least, most, standard;
};

static uint32_t read_number(const struct row *row, uint64_t *value, struct error *why)
{
    const char *text = getenv(row->name);

    *value = row->standard;
    if (!text || *text == '\0')
        return 0;
    if (units_parse_size(text, strlen(text), value) < 0 || *value < row->least ||
        *value > row->most) {
        return error_set(why, PROTO_ERROR_INVALID_VALUE,
                         "%s='%s': a number from %llu to %llu is wanted (K, M, G allowed)",
                         row->name, text, (unsigned long long)row->least,
                         (unsigned long long)row->most);
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

uint32_t softgpu_settings_read(struct softgpu_settings *settings, struct error *why)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads = cores < 1                      ? 1
                       : cores > SETTINGS_MAX_THREADS ? SETTINGS_MAX_THREADS
                                                      : (uint64_t)cores;
    const struct row rows[] = {
        {"SOFTGPU_DEVICES", 1, SETTINGS_MAX_DEVICES, 1},
        {"SOFTGPU_SMS", 1, SETTINGS_MAX_SMS, 132},
        {"SOFTGPU_MEMORY", 2 << 20, (uint64_t)1 << 44, (uint64_t)8 << 30},
        {"SOFTGPU_FRIENDLY", 0, 1, 0},
        {"SOFTGPU_SEED", 0, UINT64_MAX, 1},
        {"SOFTGPU_HINT_REFUSAL", 0, 100, 0},
        {"SOFTGPU_COPY_BYTES_PER_SECOND", 0, (uint64_t)1 << 50, 0},
        {"SOFTGPU_INSTRUCTION_PS", 0, 1000000000, 0},
        {"SOFTGPU_THREADS", 1, SETTINGS_MAX_THREADS, threads},
        {"SOFTGPU_CONTEXT_DELAY_US", 0, 10000000, 0},
        {"SOFTGPU_NO_GREEN", 0, 1, 0},
        {"SOFTGPU_SERIALIZE", 0, 1, 0},
        {"SOFTGPU_UNMAP_WAITS", 0, 1, 0},
        {"CUDA_DEVICE_MAX_CONNECTIONS", 1, 32, 8},
    };
    uint64_t values[sizeof(rows) / sizeof(rows[0])];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (read_number(&rows[i], &values[i], why))
            return why->number;
    *settings = (struct softgpu_settings){
        .devices = (unsigned)values[0],
        .sms = (unsigned)values[1],
        .memory = values[2],
        .friendly = values[3] != 0,
        .seed = values[4],
        .hint_refusal = (unsigned)values[5],
        .copy_bytes_per_second = values[6],
        .instruction_ps = (unsigned)values[7],
        .threads = (unsigned)values[8],
        .context_delay_us = (unsigned)values[9],
        .no_green = values[10] != 0,
        .serialize = values[11] != 0,
        .unmap_waits = values[12] != 0,
        .connections = (unsigned)values[13],
    };
    if (read_path("SOFTGPU_STATE", settings->state_path, sizeof(settings->state_path), why) ||
        read_path("SOFTGPU_STATS", settings->stats_path, sizeof(settings->stats_path), why))
        return why->number;
    return 0;
}
