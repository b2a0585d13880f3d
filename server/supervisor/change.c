/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/change.h"

#include <errno.h>

#include "common/messages.h"
#include "common/util.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/device/device_schedule.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/life/attach.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/session/own_request.h"
#include "server/supervisor/supervisor_private.h"

uint32_t change_check(const struct supervisor *supervisor, uint32_t client,
                      const struct allowance *change, struct error *why)
{
    struct session *session = clients_find_attached(supervisor, client);
    if (supervisor->reload)
        return error_set(why, MESSAGE(reload_first));
    if (!session)
        return error_set(why, MESSAGE(client_not_attached), client);
    return session_limits_check(session, change, why);
}

uint32_t change_configured(struct supervisor *supervisor, uint32_t client,
                           struct allowance *configured, struct error *why)
{
    struct session *session = clients_find_attached(supervisor, client);
    struct grant grant;
    if (!session)
        return error_set(why, MESSAGE(client_not_attached), client);
    if (session_attach_grant(session, supervisor->server.config, session->device, &session->wish,
                             &grant) < 0)
        return error_set(why, MESSAGE(change_profile_gone), client, session->asked.profile);
    *configured = grant.allowance;
    QUOTA_FOR_EACH (i)
        configured->of[i].limit = min(configured->of[i].limit, session->window.bytes);
    for (enum resource i = 0; i < RESOURCES; i++)
        if (grant.own[i]) {
            const uint64_t now = session->grant.allowance.of[i].request;
            configured->of[i].request = min(configured->of[i].request, now);
            session_own_requests_settle_soon(&supervisor->server);
        }
    return 0;
}

int change_set(struct supervisor *supervisor, uint32_t client, const struct allowance *change,
               const struct change_asker *asker)
{
    struct session *session = clients_find_attached(supervisor, client);
    if (supervisor->reload)
        return -EBUSY;
    return session ? session_limits_set(session, change, asker) : -ENOENT;
}

int change_put_back(struct supervisor *supervisor, uint32_t client, const struct allowance *change,
                    const struct change_asker *asker)
{
    struct session *session = clients_find_attached(supervisor, client);
    return session ? session_limits_put_back(session, change, asker) : -ENOENT;
}

int change_schedule(struct supervisor *supervisor, uint32_t device, const struct schedule *to,
                    unsigned parts, const struct change_asker *asker)
{
    if (device >= supervisor->server.device_count)
        return -ENOENT;
    if (supervisor->reload)
        return -EBUSY;
    return device_schedule_set(&supervisor->server.devices[device], to, parts, asker);
}

void change_newcomers(struct supervisor *supervisor, uint32_t device,
                      const struct allowance *change, unsigned back_limits, unsigned back_scalars)
{
    struct allowance *newcomers = &supervisor->server.devices[device].newcomers;
    for (enum resource i = 0; i < RESOURCES; i++)
        if (back_limits & RESOURCE_BIT(i))
            newcomers->of[i].limit = newcomers->part[i].limit = ALLOWANCE_UNSET;
    allowance_take(newcomers, &allowance_none, 0, 0, back_scalars);
    allowance_change(newcomers, change);
}
