/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_inbox: the requests of a client that have not been answered, as the client sent them, for
 * a server that takes over.
 *
 * A message stays in the socket until its request is kept (channel_peek_all). So a request is in
 * the socket or in the inbox, or its answer is kept beside what it changed. Without a keeper all of
 * this does nothing. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_INBOX_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/channel.h"
#include "common/list.h"
#include "server/supervisor/keep/keeper.h"
#include "server/supervisor/keep/kept_table.h"

struct server;
struct session;

/* Parts of a session that are kept: kinds of records, in the order in which they are read. Those up
 * to PART_OWNED are tables of what it has on a device. */
enum session_part {
    PART_REGIONS,
    PART_BLOCKS, /* of its slabs */
    PART_BUFFERS,
    PART_IMPORTS,
    PART_STREAMS, /* with the three below in the order of enum object_kind */
    PART_EVENTS,
    PART_FUNCTIONS,
    PART_LINKS,
    PART_MODULES,
    PART_OWNED,

    PART_INBOX = PART_OWNED, /* a table */
    PART_TABLES,

    PART_ANSWERS = PART_TABLES, /* a record of those that are not in the socket yet */
    PART_CLIENT                 /* a record, of which the session is made */
};

struct inbox_entry {
    struct list_link link;
    struct proto_message_header header;
    size_t bytes; /* body and tail */
    uint32_t row; /* of the table of the inbox */
    uint32_t fd;  /* number of the descriptor that came with it; 0: none */
    _Alignas(8) uint8_t data[];
};

struct session_keeping {
    struct queue_link link; /* in server->touched */
    bool touched;
    bool peeked;   /* the message that was handled last is still in the socket */
    uint64_t seen; /* last_serial as it was taken over: this message may come again; 0 */
    bool unread;   /* its first record could not be taken over: the others are left alone */
    bool whole;    /* as it was taken over: the worker had been told all of it */
    bool earlier;  /* its limits are those of the last server, whose file may have been another */
    uint32_t socket, header, status, shadow, doorbell; /* numbers of its descriptors */
    struct kept client, answers;
    struct kept_table tables[PART_TABLES];
    struct list inbox;
};

/* Keeps a request that is about to be handled, with its descriptor. Returns 0 or -ENOMEM. */
int session_inbox_add(struct session *session, const struct channel_message *message);

/* The request with this serial is being answered. */
void session_inbox_answered(struct session *session, uint64_t serial);

/* Frees what is left. Idempotent. */
void session_inbox_close(struct session *session);

#endif
