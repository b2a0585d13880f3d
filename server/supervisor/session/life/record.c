/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/life/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/messages.h"
#include "common/util.h"
#include "server/supervisor/session/life/attach.h"
#include "server/supervisor/session/owned/forward.h"
#include "server/supervisor/session/owned/host.h"
#include "server/supervisor/session/owned/host_record.h"
#include "server/supervisor/session/owned/lost_copies.h"
#include "server/supervisor/session/owned/memory.h"
#include "server/supervisor/session/owned/module.h"
#include "server/supervisor/session/life/restore.h"
#include "server/supervisor/session/owned/rings.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"

static const struct pack_member member_rows[] = {
#define MEMBER(name) PACK_MEMBER(struct session, name)
    MEMBER(state),     MEMBER(pid),         MEMBER(uid),         MEMBER(connected_at),
    MEMBER(name),      MEMBER(group),       MEMBER(last_serial), MEMBER(blame),
    MEMBER(refused),   MEMBER(asked),       MEMBER(wish),        MEMBER(grant),
    MEMBER(counts_in), MEMBER(worker),      MEMBER(limits_sent), MEMBER(attach_serial),
    MEMBER(own_told),  MEMBER(linked),      MEMBER(slab_max),    MEMBER(ended),
    MEMBER(at_worker), MEMBER(next_module), MEMBER(bill),        MEMBER(announced),
#undef MEMBER
};

static const struct pack_table members = PACK_TABLE(member_rows);

enum { FORM = 5 }; /* of the rest; raised when it changes */

uint32_t session_record_layout(void)
{
    return pack_members_layout(&members, FORM);
}

/* ---- there ---- */

static void client_pack(struct session *session, struct pack *pack)
{
    struct keeper *keeper = session->server->keeper;
    struct session_keeping *keeping = &session->keeping;
    pack_members(pack, &members, session);
    pack_number(pack, session->over_limit);
    pack_number(pack, (session->pidfd >= 0) | (session_restore_is_whole(session) ? 0 : 2));
    pack_number(pack, session->device ? session->device->index : UINT32_MAX);
    pack_number(pack, session->window.offset);
    pack_number(pack, session->window.bytes);
    keeper_pack_fd(keeper, pack, KEEPER_DATA, session->fd, &keeping->socket);
    keeper_pack_fd(keeper, pack, KEEPER_DATA, session->header.fd, &keeping->header);
    keeper_pack_fd(keeper, pack, KEEPER_DATA, session->status.fd, &keeping->status);
    keeper_pack_fd(keeper, pack, KEEPER_DATA, session->shadow.fd, &keeping->shadow);
    keeper_pack_fd(keeper, pack, KEEPER_DATA, session->doorbell, &keeping->doorbell);
    session_rings_pack(session, pack);
    session_lost_copies_pack(session, pack);
    pack_number(pack, session->heap.next_slab);
}

static void answer_pack(void *context, const struct channel_packet *packet, size_t body_bytes)
{
    struct pack *pack = context;
    pack_number(pack, (uint64_t)packet->opcode << 48 | (uint64_t)packet->tail_bytes << 24 |
                          (uint64_t)body_bytes);
    pack_number(pack, packet->serial);
    pack_bytes(pack, packet->body, body_bytes);
    pack_bytes(pack, packet->tail, packet->tail_bytes);
}

static void request_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    const struct session *session = context;
    const struct inbox_entry *entry = item;
    (void)row;
    if (!entry)
        return;
    pack_number(pack, entry->bytes);
    pack_bytes(pack, &entry->header, sizeof entry->header);
    pack_bytes(pack, entry->data, entry->bytes);
    /* It may never have been passed. */
    pack_fd(pack, keeper_has(session->server->keeper, entry->fd, KEEPER_DATA) ? entry->fd : 0);
}

/* Answers are kept with what they say, until they are in the socket. A later server may send one
 * again, which the client's library drops. */
static void answers_pack(struct session *session, struct pack *pack)
{
    send_queue_each(&session->send_queue, answer_pack, pack);
    pack_number(pack, 0);
}

static kept_writer *const writers[PART_TABLES] = {
    [PART_REGIONS] = session_memory_region_pack,
    [PART_BLOCKS] = session_memory_block_pack,
    [PART_BUFFERS] = session_host_record_buffer_pack,
    [PART_IMPORTS] = session_host_record_import_pack,
    [PART_STREAMS] = session_forward_stream_pack,
    [PART_EVENTS] = session_forward_event_pack,
    [PART_FUNCTIONS] = session_forward_function_pack,
    [PART_LINKS] = session_forward_link_pack,
    [PART_MODULES] = session_module_pack,
    [PART_INBOX] = request_pack,
};

static void record_put(struct session *session, struct kept *kept, enum session_part part,
                       void (*write)(struct session *session, struct pack *pack))
{
    struct keeper *keeper = session->server->keeper;
    pack_begin(&keeper->pack);
    write(session, &keeper->pack);
    keeper_put(keeper, kept, (struct state_name){.kind = part, .key = session->number},
               &keeper->pack);
}

static void tables_clear(struct session *session, enum session_part end)
{
    for (enum session_part part = 0; part < end; part++)
        kept_table_clear(&session->keeping.tables[part], session->server->keeper);
}

void session_record_put(struct session *session)
{
    struct session_keeping *keeping = &session->keeping;
    record_put(session, &keeping->client, PART_CLIENT, client_pack);
    if (!session->device)
        tables_clear(session, PART_OWNED);
    for (enum session_part part = 0; part < PART_TABLES; part++)
        kept_table_put(&keeping->tables[part], session->server->keeper, part, session->number,
                       writers[part], session);
    record_put(session, &keeping->answers, PART_ANSWERS, answers_pack);
}

bool session_record_is_current(struct session *session)
{
    for (enum session_part part = 0; part < PART_TABLES; part++)
        if (!kept_table_is_current(&session->keeping.tables[part], session->server->keeper,
                                   writers[part], session))
            return false;
    return true;
}

void session_record_remove(struct session *session)
{
    keeper_remove(session->server->keeper, &session->keeping.client);
    keeper_remove(session->server->keeper, &session->keeping.answers);
    tables_clear(session, PART_TABLES);
}

void session_record_consume(struct session *session)
{
    struct channel_message *message = &session->server->message;
    if (session->keeping.peeked && session->fd >= 0) {
        channel_drop(session->fd, message);
        closer_take_message(session->server->closer, message, session_sender(session));
    }
    session->keeping.peeked = false;
    if (session->paused && session_reads(session))
        session_poll(session);
}

/* ---- and back ---- */

static void not_taken_over(struct session *session, int result)
{
    session_fail(session, MESSAGE(session_not_taken_over), strerror(-result));
}

/* Of one that has hung up already, and waits for the worker. */
static int hung_up_socket(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    close(pair[1]);
    return pair[0];
}

static int device_part_unpack(struct session *session, struct unpack *unpack, uint64_t device,
                              uint64_t offset, uint64_t bytes)
{
    struct server *server = session->server;
    struct keeper *keeper = server->keeper;
    struct session_keeping *keeping = &session->keeping;
    if (device >= server->device_count)
        return -EINVAL;
    session->device = &server->devices[device];
    const int fds[4] = {keeper_take(keeper, keeping->header, KEEPER_DATA),
                        keeper_take(keeper, keeping->status, KEEPER_DATA),
                        keeper_take(keeper, keeping->shadow, KEEPER_DATA),
                        keeper_take(keeper, keeping->doorbell, KEEPER_DATA)};
    int result = session_attach_adopt(session, offset, bytes, fds);
    if (result == 0)
        result = session_rings_unpack(session, unpack);
    if (result == 0)
        result = session_lost_copies_unpack(session, unpack);
    const uint64_t next_slab = unpack_number(unpack);
    session->heap.next_slab = min(max(next_slab, session->heap.next_slab), HEAP_SLAB_MAX);
    return result < 0 ? result : unpack->failed ? -EINVAL : 0;
}

static int client_unpack(struct session *session, struct unpack *unpack)
{
    struct session_keeping *keeping = &session->keeping;
    uint64_t flags = unpack_number_max(unpack, 3);
    bool watched = flags & 1;
    uint64_t device = unpack_number(unpack);
    uint64_t offset = unpack_number(unpack), bytes = unpack_number(unpack);
    keeping->socket = unpack_fd(unpack);
    keeping->header = unpack_fd(unpack);
    keeping->status = unpack_fd(unpack);
    keeping->shadow = unpack_fd(unpack);
    keeping->doorbell = unpack_fd(unpack);
    if (unpack->failed)
        return -EINVAL;
    int result =
        device == UINT32_MAX ? 0 : device_part_unpack(session, unpack, device, offset, bytes);
    keeping->whole = !(flags & 2);
    /* A child may hold its socket. */
    bool reused =
        session->pidfd_by_number && !identity_began_before(session->pid, session->connected_at);
    if (result == 0 && ((watched && session->pidfd < 0) || reused))
        session_fail(session, MESSAGE(process_ended));
    return result;
}

/* The socket's number stands behind the members. */
static int socket_of(struct server *server, const struct state_log_entry *entry,
                     enum session_over_limit *over_limit)
{
    struct unpack unpack = unpack_begin(entry->data, entry->bytes);
    unpack_skip_members(&unpack, &members);
    *over_limit = (enum session_over_limit)unpack_number_max(&unpack, OVER_LIMIT_USER);
    for (int i = 0; i < 4; i++)
        unpack_number(&unpack);
    int fd = keeper_take(server->keeper, unpack_fd(&unpack), KEEPER_DATA);
    return unpack.failed ? -EINVAL : fd < 0 ? hung_up_socket() : fd;
}

int session_record_open(struct session **out, struct server *server, uint32_t number,
                        const struct state_log_entry *entry)
{
    enum session_over_limit over_limit;
    int fd = socket_of(server, entry, &over_limit);
    *out = NULL;
    int result = fd < 0 ? fd : session_open(out, server, fd, number, over_limit);
    if (result < 0)
        return result;
    struct session *session = *out;
    struct unpack unpack = unpack_begin(entry->data, entry->bytes);
    unpack_members(&unpack, &members, session);
    unpack_number(&unpack);
    /* It is marked at the end, as everything that it has is to be given back. */
    enum proto_connection_state state = session->state;
    session->state =
        state == PROTO_CONNECTION_STATE_LEAVING ? PROTO_CONNECTION_STATE_ATTACHED : state;
    session->keeping.seen = session->last_serial;
    session->keeping.earlier = true;
    result = client_unpack(session, &unpack);
    /* Others would get the addresses that the worker has for it. */
    if (result == -ENOMEM && session->device && !session->window.bytes) {
        *out = NULL;
        return result;
    }
    session->keeping.unread = result < 0;
    if (result < 0)
        not_taken_over(session, result);
    else if (state == PROTO_CONNECTION_STATE_LEAVING)
        session_fail(session, session->ended.error, "%s", session->ended.text);
    if (session->state == PROTO_CONNECTION_STATE_ATTACHED)
        uv_timer_stop(&session->deadline);
    session_poll(session);
    return 0;
}

/* Behind those that came before it. */
static void inbox_insert(struct session *session, struct inbox_entry *entry)
{
    struct list *inbox = &session->keeping.inbox;
    struct list_link *before = list_last(inbox);
    while (before &&
           container_of(before, struct inbox_entry, link)->header.serial > entry->header.serial)
        before = list_previous(inbox, before);
    if (before)
        list_insert_after(before, &entry->link);
    else
        list_prepend(inbox, &entry->link);
    kept_table_add(session_tables(session, PART_INBOX), entry, &entry->row);
}

static int request_unpack(struct session *session, struct unpack *unpack)
{
    uint64_t bytes = unpack_number_max(unpack, PROTO_MESSAGE_MAX);
    struct inbox_entry *entry = malloc(sizeof *entry + bytes);
    if (!entry)
        return -ENOMEM;
    *entry = (struct inbox_entry){.bytes = bytes};
    unpack_bytes(unpack, &entry->header, sizeof entry->header);
    unpack_bytes(unpack, entry->data, entry->bytes);
    entry->fd = unpack_fd(unpack);
    if (!unpack_is_whole(unpack)) {
        free(entry);
        return -EINVAL;
    }
    inbox_insert(session, entry);
    return 0;
}

/* Sends what the last server may not have sent. Descriptors are those of what the answer names. */
static void answer_again(struct session *session, const struct channel_packet *packet)
{
    struct proto_rings_made made;
    struct proto_host_allocated buffer;
    int fd = -1;
    switch (packet->opcode) {
    case PROTO_ATTACHED:
        session_attach_answer_again(session, packet);
        return;
    case PROTO_RINGS_MADE:
        memcpy(&made, packet->body, sizeof made);
        fd = session_rings_describe(session, made.first, &made);
        break;
    case PROTO_HOST_ALLOCATED:
        memcpy(&buffer, packet->body, sizeof buffer);
        const struct heap_block *block = heap_find(&session->buffers, buffer.address);
        fd = block ? block->region->charged_fd.fd : -1;
        break;
    default:
        send_queue_send(&session->send_queue, packet);
        return;
    }
    struct channel_packet whole = *packet;
    whole.fds = &fd;
    whole.fd_count = 1;
    if (fd >= 0)
        send_queue_send(&session->send_queue, &whole);
}

static int answers_unpack(struct session *session, struct unpack *unpack)
{
    uint64_t what;
    while ((what = unpack_number(unpack))) {
        struct channel_packet packet = {.opcode = (uint16_t)(what >> 48),
                                        .tail_bytes = what >> 24 & 0xffffff};
        const struct proto_message *type = proto_message_find(packet.opcode);
        packet.serial = unpack_number(unpack);
        packet.body = unpack_take(unpack, what & 0xffffff);
        packet.tail = unpack_take(unpack, packet.tail_bytes);
        if (unpack->failed || !type || type->bytes != (what & 0xffffff))
            return -EINVAL;
        if (session->state != PROTO_CONNECTION_STATE_LEAVING)
            answer_again(session, &packet);
    }
    return unpack_is_whole(unpack) ? 0 : -EINVAL;
}

static int entry_unpack(struct session *session, enum session_part part, struct unpack *unpack)
{
    switch (part) {
    case PART_REGIONS:
        return session_memory_regions_unpack(session, unpack);
    case PART_BUFFERS:
        return session_host_record_buffers_unpack(session, unpack);
    case PART_IMPORTS:
        return session_host_record_imports_unpack(session, unpack);
    case PART_MODULES:
        return session_module_unpack(session, unpack);
    case PART_INBOX:
        return request_unpack(session, unpack);
    case PART_ANSWERS:
        return answers_unpack(session, unpack);
    default:
        return session_forward_unpack(session, (enum object_kind)(part - PART_STREAMS), unpack);
    }
}

static void part_read(struct session *session, enum session_part part,
                      const struct state_log_reader *reader)
{
    size_t count;
    const struct state_log_entry *entries =
        state_log_find(reader, (uint16_t)part, session->number, &count);
    int result = 0;
    if (part == PART_BLOCKS)
        result = session_memory_blocks_unpack(session, entries, count);
    for (size_t i = 0; i < count && part != PART_BLOCKS && result == 0; i++) {
        struct unpack unpack = unpack_begin(entries[i].data, entries[i].bytes);
        result = entry_unpack(session, part, &unpack);
    }
    if (result < 0)
        not_taken_over(session, result);
}

void session_record_read(struct session *session, const struct state_log_reader *reader)
{
    if (session->keeping.unread)
        return;
    /* Without quotas there is nothing to charge, and without heaps nothing to put into them. */
    for (enum session_part part = 0; part < PART_OWNED && session->user_share; part++)
        part_read(session, part, reader);
    part_read(session, PART_INBOX, reader);
    part_read(session, PART_ANSWERS, reader);
    /* Answers for which the socket has no room wait until it has. */
    if (session->state != PROTO_CONNECTION_STATE_LEAVING)
        session_poll(session);
}

void session_record_link(struct session *session)
{
    int result = session_host_record_find(session);
    if (result < 0)
        not_taken_over(session, result);
}

/* The inbox's entry stays until the answer. */
static void request_again(struct session *session, struct inbox_entry *entry)
{
    struct channel_message *message = &session->server->message;
    int fd = entry->fd ? keeper_take(session->server->keeper, entry->fd, KEEPER_DATA) : -1;
    if (entry->fd && fd < 0) {
        entry->fd = 0; /* no record may name it */
        not_taken_over(session, -EBADF);
        return;
    }
    message->header = entry->header;
    message->type = proto_message_find(entry->header.opcode);
    if (!message->type || entry->bytes < message->type->bytes ||
        !(message->type->states & 1u << session->state)) {
        closer_take(session->server->closer, fd, session_sender(session));
        not_taken_over(session, -EINVAL);
        return;
    }
    memcpy(message->data + sizeof message->header, entry->data, entry->bytes);
    message->body = message->data + sizeof message->header;
    message->tail = message->data + sizeof message->header + message->type->bytes;
    message->tail_bytes = entry->bytes - message->type->bytes;
    message->fd_count = entry->fd ? 1 : 0;
    message->fds[0] = fd;
    session_handle_again(session, message);
    closer_take_message(session->server->closer, message, session_sender(session));
}

void session_record_resume(struct session *session)
{
    session_touch(session);
    if (session->state == PROTO_CONNECTION_STATE_LEAVING)
        return;
    if (session->state == PROTO_CONNECTION_STATE_ATTACHING) {
        session_attach_again(session);
        return;
    }
    if (session->device) {
        session_restore_take_up(session, session->keeping.whole);
        session_module_resume(session);
        session_memory_resume(session);
        session_host_record_resume(session);
        /* One that is restored is told when it has been. */
        if (session->restore.adopts)
            session_forward_resume(session);
    }
    /* Handling one may answer it, and take it out. */
    struct list again;
    list_init(&again);
    list_append_list(&again, &session->keeping.inbox);
    struct list_link *link;
    while ((link = list_first(&again)) && session->state != PROTO_CONNECTION_STATE_LEAVING) {
        struct inbox_entry *entry = container_of(link, struct inbox_entry, link);
        list_remove(link);
        list_append(&session->keeping.inbox, link);
        request_again(session, entry);
    }
    list_append_list(&session->keeping.inbox, &again);
}
