/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_module_private: what client_module and module_load know of a module, and nobody else.
 * While the module is busy it belongs to the load, otherwise to the control thread
 * (client_module.h).
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CLIENT_MODULE_PRIVATE_H
#define GPUSHARE_SERVER_WORKER_CODE_CLIENT_MODULE_PRIVATE_H

#include "server/worker/code/client_module.h"
#include "server/worker/image/code_image.h"

struct known_image;
struct known_images;

struct client_module {
    struct client_module *next;
    struct client *client;
    uint32_t number;
    struct code_image image;
    struct known_images *images;
    struct known_image *known; /* of the images; NULL: nothing is known of its text */
    struct symbols *symbols;   /* NULL: not loaded, or the image is no PTX */
    cuda_module handle;        /* NULL: not loaded */
    cuda_device_ptr base_at;   /* the constant of ours in its code; 0: there is none */
    uint64_t twins, twins_end; /* where its constants' twins may lie */
    struct code_memory *code_memory;
    uint64_t kept; /* bytes charged to code_memory */
    const struct retirement *dying;
    enum proto_unsaved unsaved; /* what another worker can't have of it */
    bool busy, lost;            /* lost: and this is another one */
};

/* Frees what a load made of the image, and refunds what was charged for it. The driver has nothing
 * of the module any more. Takes client->lock. Idempotent. */
void client_module_release_code(struct client *client, struct client_module *module);

#endif
