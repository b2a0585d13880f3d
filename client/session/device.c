/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/session/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/session/failure.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/util.h"

/* The minor version of the protocol from which a server tells it. */
enum { HEAP_SINCE = 4 };

static void query_heap(struct session *session, uint32_t index, struct device_survey *survey)
{
    struct proto_kernel_heap_query body = {.device = index};
    struct session_call call = {.request = PROTO_KERNEL_HEAP_QUERY,
                                .body = &body,
                                .reply = PROTO_KERNEL_HEAP,
                                .reply_body = &survey->heap[index],
                                .reply_bytes = sizeof survey->heap[index]};
    survey->error[index] = session_call(session, &call);
}

static void query_server(struct session *session, uint32_t minor, uint32_t index,
                         struct device_survey *survey)
{
    struct proto_device_query body = {.device = index};
    struct session_call call = {.request = PROTO_DEVICE_QUERY,
                                .body = &body,
                                .reply = PROTO_DEVICE_INFO,
                                .reply_body = &survey->info[index],
                                .reply_bytes = sizeof survey->info[index]};
    survey->error[index] = session_call(session, &call);
    if (!survey->error[index] && minor >= HEAP_SINCE)
        query_heap(session, index, survey);
    if (survey->error[index])
        snprintf(survey->text[index], sizeof survey->text[index], "%s", failure_sentence());
}

gpushare_error device_survey(struct session *session, const struct proto_welcome *welcome,
                             const struct environment *environment, struct device_survey *survey)
{
    memset(survey, 0, sizeof *survey);
    uint8_t uuids[DEVICES_MAX][LIMITS_UUID_BYTES] = {{0}};
    unsigned count = min(welcome->devices, (uint32_t)DEVICES_MAX);
    for (unsigned i = 0; i < count; i++) {
        query_server(session, welcome->minor, i, survey);
        memcpy(uuids[i], survey->info[i].uuid, sizeof uuids[i]);
    }
    survey->there = count;
    survey->visible_from = environment->wish.visible.listed ? environment->wish.visible_from : NULL;
    survey->hidden = environment->wish.visible.listed && !environment->wish.visible.count;
    gpushare_error error = session_ended(session);
    if (error)
        return error;
    struct error why;
    struct limits_devices devices = {.uuids = (const uint8_t(*)[LIMITS_UUID_BYTES])uuids,
                                     .count = count};
    uint32_t refused = limits_visible_resolve(&environment->wish, &devices, &why);
    if (!refused)
        refused = limits_memory_resolve(&environment->wish, &devices, survey->memory, &why);
    if (refused)
        return failure_text(refused, why.text);
    survey->visible = devices.visible;
    memcpy(survey->indices, devices.indices, sizeof survey->indices);
    limits_memory_unseen(&environment->wish, &devices, survey->unseen);
    return GPUSHARE_SUCCESS;
}

gpushare_error device_choose(const struct device_survey *survey, uint32_t ordinal, uint32_t *index)
{
    if (!survey->visible && survey->hidden)
        return failure(MESSAGE(devices_hidden), survey->visible_from, survey->there);
    if (!survey->visible && survey->visible_from)
        return failure(MESSAGE(devices_not_named), survey->visible_from, survey->there);
    if (!survey->visible)
        return failure(MESSAGE(devices_none));
    if (ordinal >= survey->visible)
        return failure(MESSAGE(device_ordinal), ordinal, survey->visible);
    uint32_t at = survey->indices[ordinal];
    if (survey->error[at])
        return failure_text(survey->error[at], survey->text[at]);
    *index = at;
    return GPUSHARE_SUCCESS;
}

void device_describe(const struct device_survey *survey, uint32_t index, uint32_t ordinal,
                     struct gpushare_device *device)
{
    const struct proto_device_info *info = &survey->info[index];
    _Static_assert(sizeof device->name == sizeof info->name, "device names");
    _Static_assert(sizeof device->pci == sizeof info->pci, "bus identifiers");
    _Static_assert(sizeof device->uuid == sizeof info->uuid, "uuids");
    *device = (struct gpushare_device){
        .size = sizeof *device,
        .memory = info->memory,
        .ordinal = ordinal,
        .driver_version = info->driver_version,
        .compute_major = info->compute_major,
        .compute_minor = info->compute_minor,
        .multiprocessors = info->multiprocessors,
        .partition_multiprocessors = info->partition_multiprocessors,
        .warp_threads = info->warp_threads,
        .block_threads = info->block_threads,
        .block = {info->block_dimension[0], info->block_dimension[1], info->block_dimension[2]},
        .grid = {info->grid_dimension[0], info->grid_dimension[1], info->grid_dimension[2]},
        .block_registers = info->block_registers,
        .block_shared = info->block_shared_bytes,
        .block_shared_optin = info->block_shared_optin_bytes,
        .multiprocessor_shared = info->multiprocessor_shared_bytes,
        .multiprocessor_threads = info->multiprocessor_threads,
        .constant_memory = info->constant_bytes,
        .l2_cache = info->l2_bytes,
        .clock_khz = info->clock_khz,
        .priority_least = info->priority_least,
        .priority_greatest = info->priority_greatest,
        .kernel_heap = survey->heap[index].bytes,
    };
    memcpy(device->name, info->name, sizeof device->name);
    memcpy(device->pci, info->pci, sizeof device->pci);
    memcpy(device->uuid, info->uuid, sizeof device->uuid);
}

struct look {
    struct environment environment;
    struct device_survey survey;
};

/* Surveys the devices through a session that is closed again. *out is the caller's to free; written
 * on success only. */
static gpushare_error open_look(const struct gpushare_options *options, struct look **out)
{
    struct look *look = malloc(sizeof *look);
    if (!look)
        return failure(MESSAGE(process_no_memory));
    struct session session;
    struct proto_welcome welcome;
    struct environment *environment = &look->environment;
    gpushare_error error = environment_read(environment, options);
    if (!error)
        error = session_dial(&session, &environment->server, &welcome);
    if (!error) {
        error = device_survey(&session, &welcome, environment, &look->survey);
        session_close(&session);
    }
    if (error)
        free(look);
    else
        *out = look;
    return error;
}

gpushare_error device_count(const struct gpushare_options *options, uint32_t *count)
{
    struct look *look;
    gpushare_error error = open_look(options, &look);
    if (error)
        return error;
    *count = look->survey.visible;
    free(look);
    return GPUSHARE_SUCCESS;
}

gpushare_error device_query(const struct gpushare_options *options, struct gpushare_device *device)
{
    struct look *look;
    uint32_t index;
    gpushare_error error = open_look(options, &look);
    if (error)
        return error;
    uint32_t ordinal = look->environment.device;
    error = device_choose(&look->survey, ordinal, &index);
    if (!error)
        device_describe(&look->survey, index, ordinal, device);
    free(look);
    return error;
}
