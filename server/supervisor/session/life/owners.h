/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_owners: tells a client which limits hold for it beside its own: the profiles of the
 * configuration, and what its user, its groups and its control groups have together. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_OWNERS_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_OWNERS_H

#include "server/supervisor/session/session.h"

/* Handles owners_query. */
session_handler session_owners_query;

#endif
