/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * survive: the server as it is kept for the next one, and taking over from the last one.
 *
 * At the end of each turn of the loop, what has changed is put into the keeper and committed; then
 * the messages that were handled leave their sockets, and what was to be sent is sent. So nothing
 * is known outside that is not kept, and nothing that was asked for is lost, whenever this process
 * is killed. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SURVIVE_H
#define GPUSHARE_SERVER_SUPERVISOR_SURVIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "server/supervisor/keep/keeper.h"

struct discovery;
struct supervisor;

/* Stands for the form of all records. */
uint32_t survive_layout(void);

/*
 * Takes over the last server's findings about the devices, which saves asking the driver again.
 * Returns 0; or an error number, and *why says why this server, with so many streams for each
 * client, can't take over.
 */
uint32_t survive_discovery(const struct state_log_reader *reader, const struct keeper *keeper,
                           uint32_t streams, struct discovery *discovery, struct error *why);

/* Ends the workers of a last server from which nothing can be taken over, in order: their sockets
 * are closed, and they are killed after a while. Returns when they are gone. Clients' connections
 * are closed. */
void survive_end_workers(struct keeper *keeper);

/* Takes over from the last server: devices, workers, clients. The supervisor has its devices, and
 * none of them was started. Returns 0; or an error number: *why says why not, nothing was told to
 * anybody, and what the last server left is there for another attempt. */
uint32_t survive_take_over(struct supervisor *supervisor, const struct state_log_reader *reader,
                           struct error *why);

/* The end of a turn. Does nothing without a keeper. Returns false if the service manager has to
 * read before: nothing is kept or sent yet, and another turn has to try again. */
bool survive_commit(struct supervisor *supervisor);

/* The server ends for good, and no later one has anything to take over. The devices have stopped,
 * and no session is left. */
void survive_stop(struct supervisor *supervisor);

#endif
