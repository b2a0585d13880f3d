/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_module: a client's modules, from the image that the client sends to the module that its
 * worker has loaded. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_MODULE_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/session/session.h"

/* Modules of one client; the limit bounds the memory that this process spends on them. */
#define SESSION_MODULES_MAX 4096

session_handler session_module_load, session_module_unload, session_module_query;

/* Whether the client has a module with that number that is loaded, and whose state no worker took
 * along. Otherwise *why has the refusal. */
bool session_module_usable(struct session *session, uint32_t module, struct error *why);

/* The session's memory has been released: its modules have no variables there any more. */
void session_module_forget_memory(struct session *session);

/* The worker has nothing of the session any more: frees all its modules. */
void session_module_release(struct session *session);

/* Has a new worker read the images of the modules that the one before had read; then load those
 * that it had loaded (session_send_restoring). */
void session_module_restore_images(struct session *session, worker_link_reply *answered);
void session_module_restore_code(struct session *session, worker_link_reply *answered);

/* Its worker is gone, and with it the state of modules that no other worker can have. They are
 * refused from now on, until the client unloads them. */
void session_module_lose(struct session *session);
bool session_module_is_lost(const struct session *session, uint32_t module);

/*
 * The records of the modules, and the way back. Returns 0 or -errno. A module that was being
 * loaded comes back as one that is to be unloaded, with its variables' memory: its request is
 * handled anew. One that was being unloaded is loaded: its request comes again.
 * session_module_resume asks the worker. The session's memory is unpacked before.
 */
kept_writer session_module_pack;
int session_module_unpack(struct session *session, struct unpack *unpack);
void session_module_resume(struct session *session);

#endif
