/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module_load: an image on its way to the device, which becomes the code of a client's module.
 *
 * An image is read twice, for its needs and for its load; client_module.h says why. Both functions
 * block. Any one thread with the context calls them, while the module is busy.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_MODULE_LOAD_H
#define GPUSHARE_SERVER_WORKER_CODE_MODULE_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/worker/calls/quiet_calls.h"
#include "server/worker/code/client_module.h"
#include "common/error.h"

struct code_name;
struct compiler;
struct known_images;

/* Where and for whom a load asks for a quiet window, and where PTX is compiled before. */
struct code_seat {
    struct compiler *compiler; /* its time holds for reading a text, too */
    struct known_images *known;
    const atomic_bool *gone; /* nobody waits any more, so the reading of a text ends */
    struct quiet_calls *calls;
    const struct quiet_caller *caller;
    struct code_name *awaited; /* MODULE_LOAD_LATER: the text; the caller's */
};

/* The module that is loaded, its client and its place. */
struct module_load_target {
    struct client *client;
    struct client_module *module;
    const struct code_seat *seat;
    uint64_t global_base; /* of its variables, in the client's memory; for module_load_make */
    bool again; /* likewise: an earlier worker had loaded it, and variables keep their values */
};

/* From module_load_make, without a sentence: nothing was loaded, since the caller's owner has
 * another text at the compiler, or another owner has the same one there. */
#define MODULE_LOAD_LATER UINT32_MAX

/* Reads an image of `count` bytes from fd, which stays the caller's, and says what memory its
 * variables need. */
uint32_t module_load_inspect(const struct module_load_target *target, int fd, uint64_t count,
                             struct proto_worker_module_needs *needs, struct error *why);

/*
 * Loads an inspected module. *functions becomes the number of kernels, or 0 if the driver can't
 * say.
 *
 * PTX is compiled by compiler, or in the calling thread if that is closed. After a failure no code
 * is loaded. The load waits until its call was made in a quiet window.
 */
uint32_t module_load_make(const struct module_load_target *target, uint32_t *functions,
                          struct error *why);

#endif
