/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_forward: messages that the worker alone understands, passed on to it and back.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_FORWARD_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_FORWARD_H

#include "server/supervisor/session/session.h"

session_handler session_forward;

#endif
