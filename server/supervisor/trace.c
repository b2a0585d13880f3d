/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/trace.h"

#include "common/messages.h"
#include <stdio.h>

#include "server/supervisor/session/session.h"
#include "server/supervisor/supervisor_private.h"

static void note_clients(const struct supervisor *supervisor, const struct device *device)
{
    const struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (session->device == device && session->state == PROTO_CONNECTION_STATE_ATTACHED)
            tracing_note(device->tracing, session->number, session->name, session->pid,
                         session->uid);
}

uint32_t trace_start(struct supervisor *supervisor, uint32_t index, uint64_t milliseconds,
                     const struct trace_asker *asker, struct error *why)
{
    if (index >= supervisor->server.device_count) {
        return error_set(why, MESSAGE(trace_gpu_unknown), index, supervisor->server.device_count);
    }
    struct device *device = &supervisor->server.devices[index];
    uint32_t error = tracing_check(device, why);
    if (!error)
        error = tracing_start(device, milliseconds, asker, why);
    if (!error)
        note_clients(supervisor, device);
    return error;
}

static struct tracing *trace_find(const struct supervisor *supervisor, const void *context)
{
    for (uint32_t i = 0; i < supervisor->server.device_count; i++)
        if (tracing_is_for(supervisor->server.devices[i].tracing, context))
            return supervisor->server.devices[i].tracing;
    return NULL;
}

void trace_stop(struct supervisor *supervisor, const void *context)
{
    struct tracing *tracing = trace_find(supervisor, context);
    if (tracing)
        tracing_stop(tracing);
}

bool trace_abandon(struct supervisor *supervisor, const void *context)
{
    struct tracing *tracing = trace_find(supervisor, context);
    if (tracing)
        tracing_abandon(tracing);
    return tracing != NULL;
}
