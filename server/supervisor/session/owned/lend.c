/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/lend.h"

#include "common/clock.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/session/owned/idle_memory.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_state.h"

/* Whether memory may be taken from the client now: its worker knows it. */
static bool gives_idle(const struct session *session)
{
    return session->state == PROTO_CONNECTION_STATE_ATTACHED && session->at_worker &&
           !session->held && !session->down;
}

/* From another client: as much as its charge has to fall by. */
static uint64_t take_idle(struct session *session, uint64_t least, session_idle_memory_taken *taken)
{
    uint64_t bytes = gives_idle(session) ? session_idle_memory_take(session, least, taken) : 0;
    if (bytes)
        session_touch(session);
    return bytes;
}

void session_lend_take_own(struct session *session, session_idle_memory_taken *taken)
{
    if (gives_idle(session) && session_idle_memory_take_all(session, taken))
        session_touch(session);
}

static bool counts_in(const struct session *session, const struct quota *total)
{
    const struct quota *own = &session->quotas[RESOURCE_MEMORY];
    const struct quota_link *link = own->totals;
    while (link && link->total != total)
        link = link->next;
    return link || own->parent == total;
}

bool session_lend_take(const struct session *session, const struct quota *culprit, uint64_t bytes,
                       session_idle_memory_taken *taken)
{
    uint64_t sum = 0;
    struct session *other;
    LIST_FOR_EACH (other, &session->server->session_list, link)
        if (sum < bytes && session_lend_is_other(session, other) && counts_in(other, culprit))
            sum += take_idle(other, bytes - sum, taken);
    return sum != 0;
}

/* A look at all the others costs what there are of them, and requests that are refused cost their
 * client nothing. So looks that take longer than a small request does have a tenth of the loop's
 * time, for all clients of a user together. Only the loop's own CPU time counts: no user is to
 * blame for a loop that had to wait for a CPU. */
enum { CHEAP_LOOK_NS = 50000, LOOK_REST = 9 };

static uint64_t loop_cpu(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t session_lend_due_in(const struct session *session)
{
    uint64_t rest = saturating_sub(session->user_share->next_look, clock_now());
    return (rest + UNITS_MS - 1) / UNITS_MS;
}

static void rest_after_look(const struct session *session, uint64_t began)
{
    uint64_t spent = loop_cpu() - began;
    if (spent > CHEAP_LOOK_NS)
        session->user_share->next_look = clock_now() + LOOK_REST * spent;
}

bool session_lend_look(const struct session *session, const struct quota *culprit, uint64_t bytes,
                       session_idle_memory_taken *taken)
{
    uint64_t began = loop_cpu();
    bool any = session_lend_take(session, culprit, bytes, taken);
    rest_after_look(session, began);
    return any;
}

uint64_t session_lend_idle(const void *context, const struct quota *total)
{
    const struct session *session = context, *other;
    uint64_t began = loop_cpu(), sum = 0;
    LIST_FOR_EACH (other, &session->server->session_list, link)
        if (session_lend_is_other(session, other) && gives_idle(other) && counts_in(other, total)) {
            const struct quota *quota = &other->quotas[RESOURCE_MEMORY];
            sum += quota_gives_up(quota, min(session_idle_memory_charged(other), quota->used));
        }
    rest_after_look(session, began);
    return sum;
}
