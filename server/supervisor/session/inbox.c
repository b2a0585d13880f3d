/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/inbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_state.h"

int session_inbox_add(struct session *session, const struct channel_message *message)
{
    size_t bytes = message->type->bytes + message->tail_bytes;
    if (!session->server->keeper)
        return 0;
    struct inbox_entry *entry = malloc(sizeof *entry + bytes);
    if (!entry)
        return -ENOMEM;
    *entry = (struct inbox_entry){.header = message->header, .bytes = bytes};
    memcpy(entry->data, message->body, bytes);
    /* Now, since its handler takes it out of the message. An image is a memfd. Any other descriptor
     * is refused, by the next server too, and never reaches the service manager: files of clients
     * may hang their readers and closers. */
    if (message->fd_count && fcntl(message->fds[0], F_GET_SEALS) >= 0)
        keeper_store(session->server->keeper, KEEPER_DATA, message->fds[0], &entry->fd);
    list_append(&session->keeping.inbox, &entry->link);
    kept_table_add(session_tables(session, PART_INBOX), entry, &entry->row);
    session_touch(session);
    return 0;
}

static void entry_free(struct inbox_entry *entry)
{
    list_remove(&entry->link);
    free(entry);
}

void session_inbox_answered(struct session *session, uint64_t serial)
{
    struct inbox_entry *entry;
    if (!session->server->keeper)
        return;
    session_touch(session);
    LIST_FOR_EACH (entry, &session->keeping.inbox, link)
        if (entry->header.serial == serial) {
            kept_table_remove(session_tables(session, PART_INBOX), &entry->row);
            entry_free(entry);
            return;
        }
}

void session_inbox_close(struct session *session)
{
    struct inbox_entry *entry;
    if (!session->server->keeper)
        return;
    LIST_FOR_EACH (entry, &session->keeping.inbox, link)
        entry_free(entry);
}
