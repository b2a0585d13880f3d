/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_module: a client's modules, from the image that the client sends to the module that its
 * worker has loaded. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_MODULE_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/device/worker_link.h"
#include "server/supervisor/session/session.h"

/* Modules of one client; the limit bounds the memory that this process spends on them. */
#define SESSION_MODULES_MAX 4096

session_handler session_module_load, session_module_unload;

/* Whether the client has a module with that number that is loaded. */
bool session_module_known(const struct session *session, uint32_t module);

/* The worker has nothing of the session any more: frees all its modules. */
void session_module_release(struct session *session);

/* Has a new worker read the images of the modules that the one before had read; then load those
 * that it had loaded (session_send_restoring). */
void session_module_restore_images(struct session *session, worker_link_reply *answered);
void session_module_restore_code(struct session *session, worker_link_reply *answered);

/* Number of a module with variables that no other worker can have, or 0. */
uint32_t session_module_resident(const struct session *session);

#endif
