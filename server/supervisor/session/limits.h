/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_limits: what a running client is granted, shown to the client and changed. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LIMITS_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "server/supervisor/session/session.h"
#include "common/limits/allowance.h"
#include "server/supervisor/account/change_done.h"

/* Handles limits_query. */
session_handler session_limits_query;

/*
 * Returns the values that hold for a client that has a device: its own grant, with limits no higher
 * than those of the totals and accounts in which it counts. Nothing else says what a client is
 * granted: messages, lists, metrics, the accounting and the log show this. session->grant has the
 * client's own values, for changes of them alone.
 *
 * A total that is lowered takes nothing away, so memory that is requested stays within the limit. A
 * request of time or threads is lowered with its limit, which comes first. Sources are those of
 * the client's own values.
 */
struct allowance session_limits_in_force(const struct session *session);

/* Returns the same of an attached client, as messages carry it. */
struct proto_grant session_limits_granted(const struct session *session);

/* Whether it changes nothing. */
bool session_limits_change_empty(const struct allowance *change);

/* 0, or an error number that *why explains: what session_limits_set would refuse now. */
uint32_t session_limits_check(struct session *session, const struct allowance *change,
                              struct error *why);

/* Changes what the client is granted. Results and done as for change_set. */
int session_limits_set(struct session *session, const struct allowance *change,
                       const struct change_asker *asker);

/* Puts back what the client was granted a moment ago. Results and done as for change_put_back. */
int session_limits_put_back(struct session *session, const struct allowance *change,
                            const struct change_asker *asker);

/* Has the client count in these accounts, with the limits that it has; session->counts_in does not
 * change. Results and done as for change_set, but that done is told `number`. */
int session_limits_move(struct session *session, const struct client_accounts *accounts,
                        uint32_t number, change_done *done, void *context);

/* Logs what the client is granted now, given by this name. */
void session_limits_log(const struct session *session, const char *by);

#endif
