/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_managed: the managed variables (__managed__) of a device's modules. They lie in managed
 * memory, which the process and its kernels reach at one address, one allocation for each module.
 *
 * Nothing here costs a process without such a module more than a look at a counter. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_MANAGED_DRIVER_MANAGED_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_MANAGED_DRIVER_MANAGED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cuda/driver/print/driver_print.h"
#include "client/gpushare.h"

struct managed_module;

/* Of one device. All zero but for the lock, no module has such variables. */
struct driver_managed {
    pthread_mutex_t lock;
    struct managed_module *modules;
};

/* Loads a module as driver_print_load does. Managed variables count as pinned memory. */
gpushare_error driver_managed_load(struct driver_managed *managed, struct driver_print *print,
                                   gpushare_connection *connection,
                                   const struct driver_image *image, gpushare_module **module);

/* Finds a managed variable of the module. Returns false if it has none of this name. */
bool driver_managed_find(struct driver_managed *managed, const gpushare_module *module,
                         const char *name, gpushare_address *address, uint64_t *bytes);

/* Unloads the module, and frees its managed variables. */
gpushare_error driver_managed_unload(struct driver_managed *managed, gpushare_module *module);

/* Forgets all modules of the device, whose memory goes with the connection. */
void driver_managed_forget(struct driver_managed *managed);

#endif
