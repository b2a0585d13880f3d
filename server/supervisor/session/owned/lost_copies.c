/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/lost_copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/array.h"
#include "common/ipc/journal.h"
#include "common/ipc/shared_word.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_state.h"

/* A client that never recovers costs no more memory than this. */
enum { ROWS_MAX = 4 * JOURNAL_ENTRIES };

/* The loss may have been judged by a server that was killed meanwhile. */
static bool is_covered(const struct lost_copies *lost, uint32_t stream, uint64_t address,
                       uint64_t bytes)
{
    for (size_t i = 0; i < lost->count; i++) {
        const struct lost_copy *row = &lost->rows[i];
        if (row->stream == stream && !row->bytes == !bytes && address >= row->address &&
            address - row->address <= row->bytes - bytes && bytes <= row->bytes)
            return true;
    }
    return false;
}

/* bytes 0: other parts, which nobody knows. */
static void add_row(struct session *session, uint32_t stream, uint64_t address, uint64_t bytes)
{
    struct lost_copies *lost = &session->lost_copies;
    if (is_covered(lost, stream, address, bytes))
        return;
    struct lost_copy *last = lost->count ? &lost->rows[lost->count - 1] : NULL;
    if (lost->count && last->stream == stream && last->bytes && bytes &&
        last->address + last->bytes == address) {
        last->bytes += bytes;
        return;
    }
    if (lost->count >= ROWS_MAX || array_reserve(lost->rows, lost->room, lost->count + 1) < 0)
        lost->more = true;
    else
        lost->rows[lost->count++] =
            (struct lost_copy){.stream = stream, .address = address, .bytes = bytes};
}

/* Adds what the entry wrote to the client's own host memory. */
static void add_entry(struct session *session, const struct journal_entry *entry)
{
    struct proto_command_copy copy = {0};
    uint64_t base = address_plan_host(&session->server->plan, &session->window);
    memcpy(&copy, entry->command, offsetof(struct proto_command_copy, count) + sizeof copy.count);
    if (copy.opcode == PROTO_COMMAND_COPY && copy.count &&
        copy.destination - base < session->window.bytes)
        add_row(session, (uint32_t)entry->stream, copy.destination, copy.count);
}

/* In the order in which the stream had them, so that parts which touch come one after the other.
 * The journal has the latest commands of the client alone. */
static void add_stream(struct session *session, const struct journal_entry *journal,
                       uint32_t stream, uint64_t reached, uint64_t begun)
{
    const struct journal_entry *in_order[JOURNAL_ENTRIES] = {0};
    uint64_t oldest = begun - reached > JOURNAL_ENTRIES ? begun - JOURNAL_ENTRIES : reached;
    bool whole = oldest == reached;
    for (unsigned i = 0; i < JOURNAL_ENTRIES; i++)
        if (journal[i].stream == stream && journal[i].value > oldest && journal[i].value <= begun)
            in_order[journal[i].value - oldest - 1] = &journal[i];
    for (uint64_t i = 0; i < begun - oldest; i++) {
        if (in_order[i])
            add_entry(session, in_order[i]);
        whole &= in_order[i] != NULL;
    }
    if (!whole)
        add_row(session, stream, 0, 0);
}

void session_lost_copies_find(struct session *session)
{
    uint32_t streams = session->server->settings->streams;
    void *shadow = mmap(NULL, session->shadow.bytes, PROT_READ, MAP_SHARED, session->shadow.fd, 0);
    if (shadow == MAP_FAILED) {
        session->lost_copies.more = true;
        return;
    }
    const struct journal_entry *journal = journal_at(shadow, streams);
    for (uint32_t i = 0; i < streams; i++) {
        uint64_t reached = shared_word_read(ring_shadow_reached(shadow, i));
        uint64_t begun = shared_word_read(ring_shadow_begun(shadow, streams, i));
        if (reached < begun)
            add_stream(session, journal, i, reached, begun);
    }
    munmap(shadow, session->shadow.bytes);
    session_touch(session);
}

void session_lost_copies_take(struct session *session, uint32_t stream,
                              struct proto_stream_recovered *report)
{
    struct lost_copies *lost = &session->lost_copies;
    report->ranges = 0;
    report->more = lost->more;
    for (size_t i = 0; i < lost->count; i++) {
        const struct lost_copy *row = &lost->rows[i];
        if (row->stream != stream)
            continue;
        if (!row->bytes || report->ranges == PROTO_LOST_RANGES_MAX) {
            report->more = 1;
            continue;
        }
        report->addresses[report->ranges] = row->address;
        report->counts[report->ranges++] = row->bytes;
    }
    session_lost_copies_forget(session, stream);
}

void session_lost_copies_forget(struct session *session, uint32_t stream)
{
    struct lost_copies *lost = &session->lost_copies;
    size_t kept = 0;
    for (size_t i = 0; i < lost->count; i++)
        if (lost->rows[i].stream != stream)
            lost->rows[kept++] = lost->rows[i];
    lost->count = kept;
    session_touch(session);
}

void session_lost_copies_pack(struct session *session, struct pack *pack)
{
    const struct lost_copies *lost = &session->lost_copies;
    pack_number(pack, lost->count << 1 | lost->more);
    for (size_t i = 0; i < lost->count; i++) {
        pack_number(pack, lost->rows[i].stream);
        pack_number(pack, lost->rows[i].address);
        pack_number(pack, lost->rows[i].bytes);
    }
}

int session_lost_copies_unpack(struct session *session, struct unpack *unpack)
{
    struct lost_copies *lost = &session->lost_copies;
    uint64_t what = unpack_number_max(unpack, ROWS_MAX << 1 | 1);
    if (array_reserve(lost->rows, lost->room, what >> 1) < 0)
        return -ENOMEM;
    lost->more = what & 1;
    lost->count = what >> 1;
    for (size_t i = 0; i < lost->count; i++) {
        lost->rows[i].stream = (uint32_t)unpack_number_max(unpack, UINT32_MAX);
        lost->rows[i].address = unpack_number(unpack);
        lost->rows[i].bytes = unpack_number(unpack);
    }
    return unpack->failed ? -EINVAL : 0;
}

void session_lost_copies_release(struct session *session)
{
    free(session->lost_copies.rows);
    session->lost_copies = (struct lost_copies){.rows = NULL};
}
