/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/client_module_private.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/messages.h"
#include "common/state_lost.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/client/twins.h"
#include "server/worker/code/cache/known_image.h"
#include "server/worker/image/cubin.h"
#include "server/worker/image/symbols.h"

struct client_module *client_module_find(struct client *client, uint32_t number)
{
    struct client_module *module = client->control.modules;
    while (module && module->number != number)
        module = module->next;
    return module;
}

uint32_t client_module_new_lost(struct client *client, uint32_t number, enum proto_unsaved unsaved,
                                struct code_memory *code_memory, struct error *why)
{
    struct client_module *module = NULL;
    uint32_t error = client_module_new(client, number, code_memory, &module, why);
    if (!module)
        return error;
    module->unsaved = unsaved;
    module->lost = true;
    client_lock(client);
    client->objects.lost_modules++;
    client->objects.lost_reaching += state_lost_reaches(unsaved, PROTO_UNSAVED_NOTHING);
    pthread_mutex_unlock(&client->lock);
    return 0;
}

bool client_module_is_lost(const struct client_module *module)
{
    return module->lost;
}

bool client_module_reaches_lost(const struct client *client, const struct client_module *module)
{
    return client->objects.lost_reaching ||
           (client->objects.lost_modules && module->unsaved != PROTO_UNSAVED_NOTHING);
}

uint32_t client_module_refuse_lost(const struct client_module *module, struct error *why)
{
    return state_lost_refuse(module->number, module->unsaved, why);
}

uint32_t client_module_number(const struct client_module *module)
{
    return module->number;
}

const struct retirement *client_module_dying(const struct client_module *module)
{
    return module->dying;
}

void client_module_mark_dying(struct client *client, struct client_module *module,
                              const struct retirement *request)
{
    module->dying = request;
    for (size_t i = 0; i < client->objects.range_count; i++)
        if (client->objects.ranges[i].kind == RANGE_VARIABLE &&
            client->objects.ranges[i].module == module)
            client->objects.ranges[i].dying = request;
}

bool client_module_is_busy(const struct client_module *module)
{
    return module->busy;
}

void client_module_set_busy(struct client_module *module, bool busy)
{
    module->busy = busy;
}

bool client_module_is_loadable(const struct client_module *module)
{
    return !module->busy && !module->handle && module->image.kind != CODE_IMAGE_NONE;
}

uint32_t client_module_new(struct client *client, uint32_t number, struct code_memory *code_memory,
                           struct client_module **out, struct error *why)
{
    if (client_module_find(client, number))
        return error_set(why, MESSAGE(module_exists), number);
    struct client_module *module = *out = calloc(1, sizeof *module);
    if (!module)
        return error_set(why, MESSAGE(module_no_memory));
    module->client = client;
    module->number = number;
    module->code_memory = code_memory;
    module->next = client->control.modules;
    client->control.modules = module;
    return 0;
}

void client_module_unload(struct client *client, struct client_module *module)
{
    if (module->handle)
        client->gpu->cuda->cuModuleUnload(module->handle);
    module->handle = NULL;
    module->base_at = 0;
}

void client_module_unload_all(struct client *client)
{
    for (struct client_module *at = client->control.modules; at; at = at->next)
        client_module_unload(client, at);
}

void client_module_release_code(struct client *client, struct client_module *module)
{
    client_lock(client);
    twins_remove(client, module);
    pthread_mutex_unlock(&client->lock);
    symbols_free(module->symbols);
    module->symbols = NULL;
    code_memory_refund(module->code_memory, &client->kept_bytes, module->kept);
    module->kept = 0;
}

static void forget_names(struct client *client, struct client_module *module)
{
    for (uint32_t i = 0; i < client->objects.function_count; i++)
        if (client->objects.functions[i].module == module)
            client->objects.functions[i] = (struct function){.module = NULL};
    for (size_t i = client->objects.range_count; i-- > 0;)
        if (client->objects.ranges[i].kind == RANGE_VARIABLE &&
            client->objects.ranges[i].module == module)
            client_memory_range_remove(client, &client->objects.ranges[i]);
}

static void forget_lost(struct client *client, const struct client_module *module)
{
    client_lock(client);
    client->objects.lost_modules--;
    client->objects.lost_reaching -= state_lost_reaches(module->unsaved, PROTO_UNSAVED_NOTHING);
    pthread_mutex_unlock(&client->lock);
}

void client_module_destroy(struct client *client, struct client_module *module)
{
    client_lock(client);
    forget_names(client, module);
    pthread_mutex_unlock(&client->lock);
    struct client_module **link = &client->control.modules;
    while (*link != module)
        link = &(*link)->next;
    *link = module->next;
    if (client_module_is_lost(module))
        forget_lost(client, module);
    client_module_unload(client, module);
    client_module_release_code(client, module);
    code_image_release(&module->image);
    known_image_release(module->images, module->known);
    free(module);
}

void client_module_destroy_all(struct client *client)
{
    while (client->control.modules)
        client_module_destroy(client, client->control.modules);
}

cuda_module client_module_handle(const struct client_module *module)
{
    return module->handle;
}

bool client_module_layout(const struct client_module *module, const char *name, uint32_t *layout,
                          uint32_t *count, uint64_t *end)
{
    if (module->symbols)
        return symbols_kernel(module->symbols, name, layout, count, end);
    return cubin_layout(module->image.bytes, module->image.count, name, layout, count, end) == 0;
}

/* ---- questions to the driver ---- */

/* Finds a module that is loaded and is not being unloaded. */
static uint32_t find_usable(struct client *client, uint32_t number, struct client_module **module,
                            struct error *why)
{
    *module = client_module_find(client, number);
    if (*module && client_module_is_lost(*module))
        return client_module_refuse_lost(*module, why);
    if (!*module || (*module)->busy || !(*module)->handle || (*module)->dying)
        return error_set(why, MESSAGE(module_unknown), number);
    return 0;
}

/* The name comes from a client, so it must hold no NUL and leave room for one. */
static uint32_t copy_name(char *to, size_t size, const char *name, size_t length, struct error *why)
{
    if (length == 0 || length >= size || memchr(name, 0, length))
        return error_set(why, MESSAGE(name_length), size - 1);
    memcpy(to, name, length);
    to[length] = 0;
    return 0;
}

uint32_t client_module_lookup(struct client *client, uint32_t number, const char *name,
                              size_t length, struct client_module_lookup *lookup, struct error *why)
{
    struct client_module *module;
    uint32_t error = find_usable(client, number, &module, why);
    if (!error)
        error = copy_name(lookup->name, sizeof lookup->name, name, length, why);
    lookup->module = module;
    lookup->function = (struct function){.module = module};
    return error;
}

/* ---- variables ---- */

/* A constant that the driver left out has no twin: it is not found then, as if there were none. */
static bool lacks_twin(const struct client_module_lookup *lookup)
{
    const struct client_module *module = lookup->module;
    struct client *client = module->client;
    struct twin twin;
    if (lookup->address < module->twins || lookup->address >= module->twins_end)
        return false;
    client_lock(client);
    size_t found = twins_find(client, lookup->address, lookup->count, &twin, 1);
    pthread_mutex_unlock(&client->lock);
    return found == 0;
}

bool client_module_knows_global(struct client_module_lookup *lookup)
{
    return lookup->module->symbols &&
           symbols_variable(lookup->module->symbols, lookup->name, &lookup->address,
                            &lookup->count) &&
           !lacks_twin(lookup);
}

uint32_t client_module_ask_global(const struct client *client, struct client_module_lookup *lookup,
                                  struct error *why)
{
    cuda_device_ptr there = 0;
    size_t bytes = 0;
    cuda_result result =
        client->gpu->cuda->cuModuleGetGlobal(&there, &bytes, lookup->module->handle, lookup->name);
    /* A constant of ours is no variable of the client's. */
    if (result == CUDA_ERR_NOT_FOUND ||
        (result == CUDA_OK && there == lookup->module->base_at && there))
        return error_set(why, MESSAGE(variable_not_found), lookup->module->number, lookup->name);
    if (result != CUDA_OK)
        return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(variable_lookup),
                         lookup->name, cuda_driver_error_sentence(result));
    lookup->address = there;
    lookup->count = bytes;
    return 0;
}

uint32_t client_module_enter_global(struct client *client,
                                    const struct client_module_lookup *lookup, struct error *why)
{
    uint64_t address = lookup->address, count = lookup->count;
    client_lock(client);
    int added =
        client_memory_range_find(client, address, count) || count == 0
            ? 0
            : client_memory_range_add(client, address, count, RANGE_VARIABLE, lookup->module);
    pthread_mutex_unlock(&client->lock);
    if (added < 0)
        return error_set(why, error_from_errno(added), MESSAGE_TEXT(variable_unusable),
                         strerror(-added));
    return 0;
}
