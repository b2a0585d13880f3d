/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_module: a client's modules, from the image that it sends to the one that its
 * worker has loaded.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_MODULE_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/session/session.h"

/* Limits of one client; they bound the memory that this process spends on it. */
#define SESSION_MODULES_MAX 4096

session_handler session_module_load, session_module_unload;

/* Whether it has loaded a module of that number. */
bool session_module_known(const struct session *session, uint32_t module);

/* The worker has nothing of it any more: all go. */
void session_module_release(struct session *session);

#endif
