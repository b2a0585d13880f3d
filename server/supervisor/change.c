/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/change.h"

#include <errno.h>
#include <stdio.h>

#include "server/supervisor/clients.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/supervisor_private.h"

uint32_t change_check(const struct supervisor *supervisor, uint32_t client,
                      const struct allowance *change, char *why, size_t why_size)
{
    struct session *session = clients_find_attached(supervisor, client);
    if (supervisor->reload) {
        snprintf(why, why_size, "a reload of the configuration is under way: try again");
        return PROTO_ERROR_NOT_READY;
    }
    if (session) {
        struct error refusal;
        uint32_t error = session_limits_check(session, change, &refusal);
        if (error)
            snprintf(why, why_size, "%s", refusal.text);
        return error;
    }
    snprintf(why, why_size, "there is no attached client %u: \"clients\" shows those there are",
             client);
    return PROTO_ERROR_NOT_FOUND;
}

int change_set(struct supervisor *supervisor, uint32_t client, const struct allowance *change,
               const char *by, change_done *done, void *context)
{
    struct session *session = clients_find_attached(supervisor, client);
    if (supervisor->reload)
        return -EBUSY;
    return session ? session_limits_set(session, change, by, done, context) : -ENOENT;
}

int change_put_back(struct supervisor *supervisor, uint32_t client, const struct allowance *change,
                    const char *by, change_done *done, void *context)
{
    struct session *session = clients_find_attached(supervisor, client);
    return session ? session_limits_put_back(session, change, by, done, context) : -ENOENT;
}

int change_schedule(struct supervisor *supervisor, uint32_t device, const struct schedule *to,
                    unsigned parts, const char *by, change_done *done, void *context)
{
    if (device >= supervisor->server.device_count)
        return -ENOENT;
    if (supervisor->reload)
        return -EBUSY;
    return device_schedule_set(&supervisor->server.devices[device], to, parts, by, done, context);
}
