/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/accounting.h"

#include <string.h>

#include "common/clock.h"
#include "common/ipc/usage_counts.h"
#include "common/util.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/device/device_memory.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"

#define US_NS       UINT64_C(1000)
#define US_MS       UINT64_C(1000)
#define US_DAY      (UINT64_C(86400) * 1000000)
#define INTERVAL_US (UINT64_C(3600) * 1000000)
/* The machine's time of day may be set at any moment, of which no timer hears. */
#define LOOK_MS UINT64_C(30000)
/* Lines of one turn, at some 20 us each: the loop has others to serve. */
enum { CUTS = 64 };

static const struct config_accounting *configured(const struct server *server)
{
    return server->config && server->config->accounting.file ? &server->config->accounting : NULL;
}

const char *accounting_file(const struct server *server)
{
    const struct config_accounting *said = configured(server);
    return said ? said->file : server->settings->accounting;
}

static uint64_t interval_us(const struct server *server)
{
    const uint64_t said = server->config ? server->config->accounting.interval_ns / US_NS : 0;
    return said ? said : INTERVAL_US;
}

uint64_t accounting_boundary(uint64_t now_us, uint64_t interval_us)
{
    const uint64_t midnight = now_us - now_us % US_DAY;
    return now_us - (now_us - midnight) % interval_us;
}

static uint64_t real_us(void)
{
    return clock_read(CLOCK_REALTIME) / US_NS;
}

void accounting_note(struct session *session)
{
    struct usage_counts counts;
    const struct history_use *used = &session->used;
    if (!session->bill.begun_at || !session->device)
        return;
    bill_note(&session->bill, &(struct bill_counts){.launches = used->launches,
                                                    .copies = used->copies,
                                                    .copied_bytes = used->copied_bytes,
                                                    .gpu_ns = used->gpu_ns});
    if (device_memory_counts(session->device, session->number, &counts))
        bill_note(&session->bill, &(struct bill_counts){.launches = counts.launches,
                                                        .copies = counts.copies,
                                                        .copied_bytes = counts.copied_bytes,
                                                        .gpu_ns = counts.gpu_ns});
}

void accounting_share(struct session *session, const void *answer)
{
    accounting_note(session);
    memcpy(&session->worker, answer, sizeof session->worker);
    bill_share(&session->bill, session->worker.multiprocessors);
}

/* A line that began later than now is due too: the clock was set back, and could be years away from
 * the boundary behind that beginning. */
static bool is_due(const struct session *session, uint64_t now, uint64_t boundary)
{
    const struct bill *bill = &session->bill;
    return bill->begun_at && (bill->begun_us < boundary || bill->begun_us > now) &&
           session->state == PROTO_CONNECTION_STATE_ATTACHED;
}

static void tick_due(uv_timer_t *timer);

static void tick_start(struct server *server, uint64_t ms)
{
    uv_timer_start(&server->accounting.tick, tick_due, ms, 0);
}

/* Until the next interval or the next midnight begins. */
static uint64_t ms_left(uint64_t now, uint64_t boundary, uint64_t interval)
{
    const uint64_t midnight = now - now % US_DAY + US_DAY;
    return (min(boundary + interval, midnight) - now) / US_MS + 1;
}

static void tick_due(uv_timer_t *timer)
{
    struct server *server = timer->data;
    const uint64_t now = real_us(), interval = interval_us(server);
    const uint64_t boundary = accounting_boundary(now, interval);
    const char *file = accounting_file(server);
    struct session *session;
    unsigned cuts = 0;
    if (*file)
        outbox_try(&server->accounting.outbox, file);
    /* Use is kept without a line too, and lines of clients that end need the room. */
    if (*file && !outbox_is_crowded(&server->accounting.outbox))
        LIST_FOR_EACH (session, &server->session_list, link) {
            if (!is_due(session, now, boundary))
                continue;
            if (cuts++ == CUTS)
                break;
            server->accounting.cut(session);
        }
    tick_start(server, cuts > CUTS ? 0 : min(ms_left(now, boundary, interval), LOOK_MS));
}

void accounting_open(struct server *server, void (*cut)(struct session *session))
{
    struct accounting *accounting = &server->accounting;
    accounting->cut = cut;
    outbox_open(&accounting->outbox, server->loop);
    uv_timer_init(server->loop, &accounting->tick);
    accounting->tick.data = server;
    accounting->open = true;
    accounting_look(server);
}

void accounting_look(struct server *server)
{
    if (server->accounting.open)
        tick_start(server, 0);
}

void accounting_add(struct server *server, const char *line)
{
    outbox_add(&server->accounting.outbox, accounting_file(server), line);
}

bool accounting_end(struct server *server)
{
    struct accounting *accounting = &server->accounting;
    if (accounting->open && !outbox_end(&accounting->outbox))
        return false;
    if (accounting->open)
        uv_close((uv_handle_t *)&accounting->tick, NULL);
    accounting->open = false;
    return true;
}
