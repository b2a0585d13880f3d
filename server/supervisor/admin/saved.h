/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_saved: the requests whose values outlive the server: noted after they were carried out, and
 * carried out again at the next start. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_SAVED_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_SAVED_H

#include <stdbool.h>

#include "server/supervisor/admin/request.h"

/* Reads the file of the settings' folder and puts its values in force. A value that can't be is
 * logged and stays in the file. To be called once, when the supervisor has started and no client is
 * there. */
void admin_saved_restore(struct supervisor *supervisor, bool apply);

/* Notes the values of a set of a GPU or a total: those of a set --save are kept, and those that
 * went back to the configuration's are kept no longer. Returns 1: the file must be written; 0:
 * nothing has changed; or -ENOMEM. */
int admin_saved_note(struct supervisor *supervisor, const struct admin_request *request);

/* Notes that a GPU is drained, or is no longer. by: the administrator's name. Returns as
 * admin_saved_note does. */
int admin_saved_drained(struct supervisor *supervisor, uint32_t gpu, bool drained, const char *by);

/* The parts of a GPU's schedule in force that are kept, as bits of enum schedule_part. */
unsigned admin_saved_parts(const struct supervisor *supervisor, const struct device_view *view);

/* Whether a part of this total in force is kept: its limit or its request. */
bool admin_saved_total(const struct supervisor *supervisor, const struct account_owner *owner,
                       enum resource resource);

#endif
