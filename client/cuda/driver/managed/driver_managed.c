/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/managed/driver_managed.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/driver/managed/managed_code.h"
#include "client/engine/connection.h"
#include "client/engine/copy.h"
#include "client/engine/memory.h"
#include "client/engine/module.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/messages.h"

struct managed_module {
    const gpushare_module *module;
    uint64_t memory;
    struct managed_code code; /* of which names and places are needed */
    struct managed_module *next;
};

/* Modules of the process. While there is none, nobody takes a lock. */
static atomic_uint modules;

/* Fills the memory, and writes its address into the module's variable. No kernel of the module runs
 * yet. */
static gpushare_error connect_module(gpushare_module *module, const struct managed_code *code,
                                     void *memory)
{
    uint64_t bytes, place = (uint64_t)(uintptr_t)memory;
    gpushare_address address;
    gpushare_connection *connection = module->connection;
    memcpy(memory, code->initial, code->initial_bytes);
    gpushare_error error = module_find_variable(module, code->base, &address, &bytes);
    if (!error)
        error = copy_submit(connection->default_stream, address, (uint64_t)(uintptr_t)&place,
                            sizeof place);
    return error ? error : stream_wait_pushed(connection->default_stream);
}

/* The code is the module's on success. */
static gpushare_error keep(struct driver_managed *managed, gpushare_module *module,
                           struct managed_code *code)
{
    struct managed_module *kept = calloc(1, sizeof *kept);
    void *memory = NULL;
    if (!kept)
        return failure(MESSAGE(process_no_memory));
    gpushare_error error = memory_managed_alloc(module->connection, code->initial_bytes, &memory);
    if (!error)
        error = connect_module(module, code, memory);
    if (error) {
        if (memory)
            (void)memory_managed_free(module->connection, (uint64_t)(uintptr_t)memory);
        free(kept);
        return error;
    }
    *kept = (struct managed_module){
        .module = module, .memory = (uint64_t)(uintptr_t)memory, .code = *code};
    *code = (struct managed_code){.text = NULL};
    free(kept->code.text);
    free(kept->code.initial);
    kept->code.text = NULL;
    kept->code.initial = NULL;
    pthread_mutex_lock(&managed->lock);
    kept->next = managed->modules;
    managed->modules = kept;
    pthread_mutex_unlock(&managed->lock);
    atomic_fetch_add(&modules, 1);
    return GPUSHARE_SUCCESS;
}

gpushare_error driver_managed_load(struct driver_managed *managed, struct driver_print *print,
                                   gpushare_connection *connection,
                                   const struct driver_image *image, gpushare_module **module)
{
    struct managed_code code = {.text = NULL};
    if (image->text && managed_code_make(image->text, image->length, &code) < 0)
        return failure(MESSAGE(process_no_memory));
    if (!code.text)
        return driver_print_load(print, connection, image, module);
    const struct driver_image moved = {code.text, code.length, code.text, code.length};
    gpushare_error error = driver_print_load(print, connection, &moved, module);
    if (!error) {
        error = keep(managed, *module, &code);
        if (error)
            (void)module_unload(*module);
    }
    managed_code_free(&code);
    return error;
}

/* The lock is held. */
static struct managed_module **find_module(struct driver_managed *managed,
                                           const gpushare_module *module)
{
    struct managed_module **at = &managed->modules;
    while (*at && (*at)->module != module)
        at = &(*at)->next;
    return at;
}

static const struct managed_variable *find_variable(const struct managed_module *module,
                                                    const char *name)
{
    for (uint32_t i = 0; module && i < module->code.count; i++)
        if (strcmp(module->code.variables[i].name, name) == 0)
            return &module->code.variables[i];
    return NULL;
}

bool driver_managed_find(struct driver_managed *managed, const gpushare_module *module,
                         const char *name, gpushare_address *address, uint64_t *bytes)
{
    if (!atomic_load_explicit(&modules, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&managed->lock);
    const struct managed_module *found = *find_module(managed, module);
    const struct managed_variable *variable = find_variable(found, name);
    if (variable) {
        *address = found->memory + variable->offset;
        *bytes = variable->bytes;
    }
    pthread_mutex_unlock(&managed->lock);
    return variable != NULL;
}

static void delete_module(struct managed_module *module)
{
    managed_code_free(&module->code);
    free(module);
    atomic_fetch_sub(&modules, 1);
}

gpushare_error driver_managed_unload(struct driver_managed *managed, gpushare_module *module)
{
    gpushare_connection *connection = module->connection;
    struct managed_module *found = NULL;
    if (atomic_load_explicit(&modules, memory_order_relaxed)) {
        pthread_mutex_lock(&managed->lock);
        struct managed_module **at = find_module(managed, module);
        found = *at;
        if (found)
            *at = found->next;
        pthread_mutex_unlock(&managed->lock);
    }
    gpushare_error error = module_unload(module);
    if (found) {
        gpushare_error freed = memory_managed_free(connection, found->memory);
        error = error ? error : freed;
        delete_module(found);
    }
    return error;
}

void driver_managed_forget(struct driver_managed *managed)
{
    pthread_mutex_lock(&managed->lock);
    while (managed->modules) {
        struct managed_module *module = managed->modules;
        managed->modules = module->next;
        delete_module(module);
    }
    pthread_mutex_unlock(&managed->lock);
}
