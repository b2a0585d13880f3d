/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A worker that notes nothing before it calls the driver, and nothing of what clients have used,
 * for the row journal_launch_ns: linked in the place of the functions of the same names, which are
 * weak in its copies of client_stream.o and usage_ledger.o. It can't be replaced by another worker:
 * what it had in flight would run twice.
 */
#include "server/worker/client/client_stream.h"
#include "server/worker/run/usage_ledger.h"

void client_stream_begin(struct client_stream *stream, const struct ring_descriptor *command)
{
    (void)stream;
    (void)command;
}

void client_stream_begin_undo(struct client_stream *stream)
{
    (void)stream;
}

void usage_ledger_note(struct usage_ledger *ledger, struct worker *worker, struct client *client)
{
    (void)ledger;
    (void)worker;
    (void)client;
}

void usage_ledger_tick(struct usage_ledger *ledger, struct worker *worker)
{
    (void)ledger;
    (void)worker;
}
