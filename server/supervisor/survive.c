/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/survive.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/device/device_record.h"
#include "server/supervisor/session/life/record.h"
#include "server/supervisor/session/life/restore.h"
#include "server/supervisor/supervisor_private.h"

/* Kinds below are those of enum session_part. */
enum { KIND_SERVER = 100, KIND_DEVICE, KIND_OVERRIDES, KIND_OFFENDERS, KIND_ACCOUNTING };

/* Time that workers have to end when their socket is closed. */
#define END_MS 5000

/* The server as a whole, as it is kept. */
struct server_image {
    uint64_t epoch; /* how many servers there were before, in a row */
    uint64_t served, refused, started_at;
    uint32_t next_number, streams;
    struct hash_key key; /* numbers of accounts follow from it */
    struct discovery discovery;
};

uint32_t survive_layout(void)
{
    return session_record_layout() * 31 + device_record_layout() * 7 +
           (uint32_t)sizeof(struct server_image) + (uint32_t)sizeof(struct total_override) * 3 +
           (uint32_t)sizeof(struct offender) + OUTBOX_FORM * 11;
}

static const struct state_log_entry *entry_find(const struct state_log_reader *reader,
                                                uint16_t kind, uint32_t key)
{
    size_t count;
    return state_log_find(reader, kind, key, &count);
}

static bool image_read(const struct state_log_reader *reader, struct server_image *image)
{
    const struct state_log_entry *entry = entry_find(reader, KIND_SERVER, 0);
    if (!entry || entry->bytes != sizeof *image)
        return false;
    memcpy(image, entry->data, sizeof *image);
    return true;
}

/* A worker without its socket can't be served, and without process or barrier nobody knows when it
 * has ended. */
static bool workers_are_whole(const struct state_log_reader *reader, const struct keeper *keeper)
{
    for (size_t i = 0; i < reader->count; i++)
        if (reader->entries[i].name.kind == KIND_DEVICE &&
            !device_record_is_whole(keeper, &reader->entries[i]))
            return false;
    return true;
}

uint32_t survive_discovery(const struct state_log_reader *reader, const struct keeper *keeper,
                           uint32_t streams, struct discovery *discovery, struct error *why)
{
    struct server_image image;
    if (!image_read(reader, &image) || image.discovery.count > DEVICES_MAX ||
        !workers_are_whole(reader, keeper))
        return error_set(why, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(state_damaged));
    if (image.streams != streams)
        return error_set(why, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(state_options),
                         image.streams);
    *discovery = image.discovery;
    return 0;
}

static int left_ms(uint64_t until)
{
    uint64_t now = clock_now();
    return now < until ? (int)((until - now) / UNITS_MS + 1) : 0;
}

/* Waits until the barrier's other end is closed everywhere, or the process has ended. */
static bool await_end(int fd, uint64_t until)
{
    struct pollfd ends = {.fd = fd, .events = POLLIN};
    while (poll(&ends, 1, left_ms(until)) < 0 && errno == EINTR)
        ;
    return ends.revents != 0;
}

/* One of the two may have been lost. */
static void await_all(const struct keeper *keeper, uint64_t until)
{
    for (uint32_t i = 0; i < keeper->slot_count; i++)
        if ((keeper->slots[i].letter == KEEPER_BARRIER ||
             keeper->slots[i].letter == KEEPER_PROCESS) &&
            keeper->slots[i].fd >= 0)
            await_end(keeper->slots[i].fd, until);
}

void survive_end_workers(struct keeper *keeper)
{
    for (uint32_t i = 0; i < keeper->slot_count; i++)
        if (keeper->slots[i].letter == KEEPER_LINK)
            shutdown(keeper->slots[i].fd, SHUT_RDWR);
    await_all(keeper, clock_now() + END_MS * UNITS_MS);
    for (uint32_t i = 0; i < keeper->slot_count; i++)
        if (keeper->slots[i].letter == KEEPER_PROCESS)
            syscall(SYS_pidfd_send_signal, keeper->slots[i].fd, SIGKILL, NULL, 0);
    await_all(keeper, clock_now() + END_MS * UNITS_MS);
    keeper_clear(keeper);
}

/* ---- there ---- */

static void server_put(struct supervisor *supervisor)
{
    struct server *server = &supervisor->server;
    struct keeper *keeper = server->keeper;
    struct server_image image;
    memset(&image, 0, sizeof image); /* the same bytes each time */
    image.epoch = supervisor->epoch;
    image.served = server->served;
    image.refused = server->refused;
    image.started_at = supervisor->started_at;
    image.next_number = supervisor->next_number;
    image.streams = server->settings->streams;
    image.key = server->cache.key;
    image.discovery = supervisor->discovery;
    pack_begin(&keeper->pack);
    pack_bytes(&keeper->pack, &image, sizeof image);
    keeper_put(keeper, &supervisor->kept_server, (struct state_name){.kind = KIND_SERVER},
               &keeper->pack);
    pack_begin(&keeper->pack);
    pack_bytes(&keeper->pack, server->total_overrides.items,
               server->total_overrides.count * sizeof(struct total_override));
    keeper_put(keeper, &supervisor->kept_overrides, (struct state_name){.kind = KIND_OVERRIDES},
               &keeper->pack);
    pack_begin(&keeper->pack);
    pack_bytes(&keeper->pack, server->offenders.rows,
               server->offenders.count * sizeof(struct offender));
    keeper_put(keeper, &supervisor->kept_offenders, (struct state_name){.kind = KIND_OFFENDERS},
               &keeper->pack);
}

bool survive_commit(struct supervisor *supervisor)
{
    struct server *server = &supervisor->server;
    struct keeper *keeper = server->keeper;
    struct queue consumed = {0};
    struct session *session;
    if (!keeper)
        return true;
    if (!keeper_is_stored(keeper))
        return false;
    while ((session = QUEUE_TAKE(&server->touched, struct session, keeping.link))) {
        /* One that has left the list is kept no more, and is freed when control is back at the
         * loop.
         */
        if (list_is_linked(&session->link))
            session_record_put(session);
        queue_append(&consumed, &session->keeping.link);
    }
    server_put(supervisor);
    outbox_put(&server->accounting.outbox, KIND_ACCOUNTING);
    for (uint32_t i = 0; i < server->device_count; i++)
        device_record_put(&server->devices[i], keeper, KIND_DEVICE);
    /* They are put again then: more may have changed. */
    if (!keeper_is_stored(keeper)) {
        server->touched = consumed;
        return false;
    }
    keeper_commit(keeper);
    while ((session = QUEUE_TAKE(&consumed, struct session, keeping.link))) {
        session->keeping.touched = false;
#ifdef SURVIVE_AUDIT
        assert(!list_is_linked(&session->link) || session_record_is_current(session));
#endif
        session_record_consume(session);
    }
    send_hold_release(&server->hold);
    if (supervisor->took_over)
        keeper_drop_unnamed(keeper);
    supervisor->took_over = false;
    return true;
}

void survive_stop(struct supervisor *supervisor)
{
    struct server *server = &supervisor->server;
    for (uint32_t i = 0; i < server->device_count; i++)
        keeper_remove(server->keeper, &server->devices[i].keeping.record);
    keeper_remove(server->keeper, &supervisor->kept_server);
    keeper_remove(server->keeper, &supervisor->kept_overrides);
    keeper_remove(server->keeper, &supervisor->kept_offenders);
    keeper_clear(server->keeper);
}

/* ---- and back ---- */

/* A copy of the entry's items of so many bytes each; NULL: there are none, or there is no memory.
 */
static void *items_read(const struct state_log_reader *reader, uint16_t kind, size_t each,
                        size_t *count)
{
    const struct state_log_entry *entry = entry_find(reader, kind, 0);
    void *items = entry && entry->bytes && entry->bytes % each == 0 ? malloc(entry->bytes) : NULL;
    if (items)
        memcpy(items, entry->data, entry->bytes);
    *count = items ? entry->bytes / each : 0;
    return items;
}

static void tables_read(struct server *server, const struct state_log_reader *reader)
{
    size_t count;
    struct total_override *overrides =
        items_read(reader, KIND_OVERRIDES, sizeof *overrides, &count);
    if (overrides) {
        server->total_overrides.items = overrides;
        server->total_overrides.count = count;
    }
    struct offender *rows = items_read(reader, KIND_OFFENDERS, sizeof *rows, &count);
    if (rows)
        server->offenders =
            (struct offenders){.rows = rows, .count = (uint32_t)count, .room = (uint32_t)count};
}

/* A worker that runs on, and that nobody has, would keep its device from the next one. */
static uint32_t devices_read(struct supervisor *supervisor, const struct state_log_reader *reader,
                             struct error *why)
{
    struct server *server = &supervisor->server;
    for (uint32_t i = 0; i < server->device_count; i++) {
        struct device *device = &server->devices[i];
        const struct state_log_entry *entry = entry_find(reader, KIND_DEVICE, i);
        int result = entry ? device_record_read(device, server->keeper, entry) : 0;
        if (result < 0)
            return error_set(why, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(device_not_taken_over),
                             i, strerror(-result));
        if (!device->process && !device->link)
            device_start_again(device);
    }
    return 0;
}

static bool may_pass(int result)
{
    return result == -ENOMEM || result == -EMFILE || result == -ENFILE;
}

/* The worker has a client that nobody knows, with addresses that others would get. */
static void client_strays(struct server *server)
{
    for (uint32_t i = 0; i < server->device_count; i++)
        device_abandon(&server->devices[i]);
}

static uint32_t clients_read(struct supervisor *supervisor, const struct state_log_reader *reader,
                             struct error *why)
{
    for (size_t i = 0; i < reader->count; i++) {
        const struct state_log_entry *entry = &reader->entries[i];
        if (entry->name.kind != PART_CLIENT)
            continue;
        const uint32_t number = entry->name.key;
        int result = clients_adopt(supervisor, number, entry);
        if (may_pass(result))
            return error_set(why, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(client_not_taken_over),
                             number, strerror(-result));
        if (result < 0) {
            log_warning(MESSAGE_TEXT(client_not_taken_over), number, strerror(-result));
            client_strays(&supervisor->server);
        }
    }
    struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        session_record_read(session, reader);
    return 0;
}

uint32_t survive_take_over(struct supervisor *supervisor, const struct state_log_reader *reader,
                           struct error *why)
{
    struct server *server = &supervisor->server;
    struct server_image image;
    struct session *session;
    uint32_t serving = 0;
    if (!image_read(reader, &image))
        return error_set(why, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(state_damaged));
    supervisor->epoch = image.epoch + 1;
    supervisor->next_number = image.next_number;
    supervisor->started_at = image.started_at;
    server->served = image.served;
    server->refused = image.refused;
    server->cache.key = image.key;
    for (uint32_t i = 0; i < server->device_count; i++)
        server->devices[i].base = supervisor->epoch << PROTO_EPOCH_SHIFT;
    tables_read(server, reader);
    uint32_t error = devices_read(supervisor, reader, why);
    if (!error)
        error = clients_read(supervisor, reader, why);
    if (error)
        return error;
    LIST_FOR_EACH (session, &server->session_list, link)
        session_record_link(session);
    LIST_FOR_EACH (session, &server->session_list, link)
        session_record_resume(session);
    for (uint32_t i = 0; i < server->device_count; i++) {
        if (!device_serves(&server->devices[i]))
            continue;
        serving++;
        session_restore_all(server, &server->devices[i]);
    }
    outbox_read(&server->accounting.outbox, reader, KIND_ACCOUNTING, accounting_file(server));
    accounting_look(server);
    supervisor->took_over = true;
    supervisor->ready = supervisor->tells_ready = serving > 0;
    log_notice(MESSAGE_TEXT(log_taken_over), server->sessions, serving);
    return 0;
}
