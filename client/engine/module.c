/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/engine/connection.h"
#include "client/session/failure.h"
#include "common/cuda/fatbin.h"
#include "common/messages.h"

static gpushare_error fail_no_memory(void)
{
    return failure(MESSAGE(process_no_memory));
}

/* ---- loading ---- */

static gpushare_error write_all(int fd, const void *data, size_t bytes)
{
    const char *from = data;
    while (bytes) {
        ssize_t written = write(fd, from, bytes);
        if (written < 0 && errno != EINTR)
            return failure(MESSAGE(image_uncopied), bytes, strerror(errno));
        if (written > 0) {
            from += written;
            bytes -= (size_t)written;
        }
    }
    return GPUSHARE_SUCCESS;
}

static gpushare_error load_fd(gpushare_connection *connection, int fd, uint64_t bytes,
                              gpushare_module **out)
{
    gpushare_module *module = calloc(1, sizeof *module);
    if (!module)
        return fail_no_memory();
    struct proto_module_load body = {.count = bytes};
    struct proto_module_loaded reply;
    struct session_call call = {.request = PROTO_MODULE_LOAD,
                                .body = &body,
                                .fd = &fd,
                                .reply = PROTO_MODULE_LOADED,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_error error = connection_call(connection, &call);
    if (error) {
        free(module);
        return error;
    }
    module->connection = connection;
    module->handle = reply.module;
    pthread_mutex_init(&module->lock, NULL);
    pthread_mutex_lock(&connection->lists);
    list_prepend(&connection->modules, &module->in_connection);
    pthread_mutex_unlock(&connection->lists);
    *out = module;
    return GPUSHARE_SUCCESS;
}

/* The part of an image that is sent: a head of our own, if it has one, and bytes of the image. */
struct cut {
    uint8_t head[FATBIN_HEADER_BYTES];
    size_t head_bytes;
    const void *rest;
    size_t rest_bytes;
};

/* Of a fatbin, which may hold code for a dozen kinds of devices, only the entry is sent that the
 * server would take of the whole. One without such an entry is the server's to refuse. */
static struct cut cut_image(const gpushare_connection *connection, const void *image, size_t bytes)
{
    const struct gpushare_device *device = &connection->device;
    struct cut cut = {.rest = image, .rest_bytes = bytes};
    struct fatbin_entry entry;
    if (bytes < FATBIN_HEADER_BYTES || !fatbin_size(image) ||
        fatbin_select(image, bytes, device->compute_major * 10 + device->compute_minor, &entry) <=
            0)
        return cut;
    fatbin_head(cut.head, &entry);
    cut.head_bytes = sizeof cut.head;
    cut.rest = entry.whole;
    cut.rest_bytes = entry.whole_bytes;
    return cut;
}

gpushare_error module_load_image(gpushare_connection *connection, const void *image, size_t bytes,
                                 gpushare_module **module)
{
    const struct cut cut = cut_image(connection, image, bytes);
    size_t count = cut.head_bytes + cut.rest_bytes;
    if (count > PROTO_IMAGE_MAX)
        return failure(MESSAGE(image_too_large), count, PROTO_IMAGE_MAX);
    int fd = memfd_create("gpushare-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return failure(MESSAGE(memfd_create), strerror(errno));
    gpushare_error error = write_all(fd, cut.head, cut.head_bytes);
    if (!error)
        error = write_all(fd, cut.rest, cut.rest_bytes);
    if (!error)
        error = load_fd(connection, fd, count, module);
    close(fd);
    return error;
}

gpushare_error module_load_file(gpushare_connection *connection, const char *path,
                                gpushare_module **module)
{
    gpushare_error error;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0)
        return failure(MESSAGE(image_file_unreadable), path, strerror(errno));
    void *image = MAP_FAILED;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        error = failure(MESSAGE(image_not_a_file), path);
    else if (status.st_size == 0 || status.st_size > PROTO_IMAGE_MAX)
        error = failure(MESSAGE(image_file_size), path, (long long)status.st_size, PROTO_IMAGE_MAX);
    else if ((image = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) ==
             MAP_FAILED)
        error = failure(MESSAGE(image_file_unreadable), path, strerror(errno));
    else
        error = module_load_image(connection, image, (size_t)status.st_size, module);
    if (image != MAP_FAILED)
        munmap(image, (size_t)status.st_size);
    close(fd);
    return error;
}

/* ---- end ---- */

static void delete_module(gpushare_module *module)
{
    for (struct gpushare_function *f = module->functions, *next; f; f = next) {
        next = f->next;
        free(f->table);
        free(f->note);
        free(f);
    }
    pthread_mutex_destroy(&module->lock);
    free(module->note);
    free(module);
}

gpushare_error module_unload(gpushare_module *module)
{
    gpushare_connection *connection = module->connection;
    pthread_mutex_lock(&connection->lists);
    list_remove(&module->in_connection);
    pthread_mutex_unlock(&connection->lists);
    allocation_disown(&connection->allocations, module);
    held_memory_await(&connection->held, module);
    struct proto_module_unload body = {.module = module->handle};
    struct session_call call = {.request = PROTO_MODULE_UNLOAD, .body = &body, .reply = PROTO_DONE};
    gpushare_error error = connection_call(connection, &call);
    delete_module(module);
    return error;
}

void module_delete_all(gpushare_connection *connection)
{
    struct gpushare_module *m;
    LIST_FOR_EACH (m, &connection->modules, in_connection)
        delete_module(m);
    list_init(&connection->modules);
}

/* ---- lost modules ---- */

static uint32_t count_losses(const gpushare_connection *connection)
{
    return shared_word_read(&connection->status->modules_lost);
}

static gpushare_error ask_lost(const gpushare_module *module)
{
    struct proto_module_query body = {.module = module->handle};
    struct session_call call = {.request = PROTO_MODULE_QUERY, .body = &body, .reply = PROTO_DONE};
    return connection_call(module->connection, &call);
}

gpushare_error module_check_function(gpushare_function *function)
{
    /* Read before the server is asked: a loss after that counts anew. */
    uint32_t seen = count_losses(function->connection);
    gpushare_error error = ask_lost(function->module);
    if (!error)
        atomic_store_explicit(&function->losses_seen, seen, memory_order_relaxed);
    return error;
}

gpushare_error module_check_variable(gpushare_connection *connection, gpushare_address address)
{
    struct allocation variable;
    bool is_drivers = count_losses(connection) &&
                      address - connection->device_base >= connection->window_bytes &&
                      allocation_find(&connection->allocations, address, &variable) &&
                      variable.kind == ALLOCATION_VARIABLE;
    return is_drivers ? ask_lost(variable.owner) : GPUSHARE_SUCCESS;
}

/* ---- names ---- */

/* Offsets and sizes come from the server, and launches copy by them: checked here, once. */
static gpushare_error fill_table(struct gpushare_function *function, const uint32_t *pairs,
                                 size_t bytes)
{
    uint64_t end = 0;
    if (bytes != (size_t)function->parameters * 8)
        return failure(MESSAGE(server_parameters_count), bytes, function->parameters);
    for (uint32_t i = 0; i < function->parameters; i++) {
        uint64_t offset = pairs[2 * i], size = pairs[2 * i + 1];
        if (!size || offset < end || offset + size > function->parameter_bytes)
            return failure(MESSAGE(server_parameters_block));
        end = offset + size;
        function->table[i] = (struct module_parameter){(uint16_t)offset, (uint16_t)size};
    }
    return GPUSHARE_SUCCESS;
}

static void fill_function(struct gpushare_function *function,
                          const struct proto_function_info *reply)
{
    uint32_t room = function->connection->device.block_shared;
    function->handle = reply->function;
    function->parameters = reply->parameters;
    function->parameter_bytes = reply->parameter_bytes;
    function->block_threads = reply->block_threads;
    function->dynamic_shared = room > reply->shared_bytes ? room - reply->shared_bytes : 0;
    function->info = (struct gpushare_function_info){
        .parameters = reply->parameters,
        .parameter_bytes = reply->parameter_bytes,
        .block_threads = reply->block_threads,
        .static_shared = reply->shared_bytes,
        .local_memory = reply->local_bytes,
        .constant_memory = reply->constant_bytes,
        .registers = reply->registers,
        .ptx_version = reply->ptx_version,
        .binary_version = reply->binary_version,
    };
}

/* Asks the server. *out is not in the module's list yet. */
static gpushare_error query_function(gpushare_module *module, const char *name,
                                     struct gpushare_function **out)
{
    struct proto_function_get body = {.module = module->handle};
    struct proto_function_info reply;
    void *pairs = NULL;
    size_t pairs_bytes = 0;
    struct session_call call = {.request = PROTO_FUNCTION_GET,
                                .body = &body,
                                .tail = name,
                                .tail_bytes = strlen(name),
                                .reply = PROTO_FUNCTION_INFO,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply,
                                .reply_tail = &pairs,
                                .reply_tail_bytes = &pairs_bytes};
    gpushare_error error = connection_call(module->connection, &call);
    if (error)
        return error;
    struct gpushare_function *function = calloc(1, sizeof *function + strlen(name) + 1);
    if (function && reply.parameters)
        function->table = calloc(reply.parameters, sizeof *function->table);
    if (!function || (reply.parameters && !function->table)) {
        error = fail_no_memory();
    } else {
        function->connection = module->connection;
        function->module = module;
        strcpy(function->name, name);
        fill_function(function, &reply);
        /* Another module may be lost: then the server is asked before the first launch. */
        atomic_init(&function->losses_seen, 0);
        error = fill_table(function, pairs, pairs_bytes);
    }
    free(pairs);
    if (error && function) {
        free(function->table);
        free(function);
    }
    if (!error)
        *out = function;
    return error;
}

gpushare_error module_find_function(gpushare_module *module, const char *name,
                                    gpushare_function **function)
{
    gpushare_error error = GPUSHARE_SUCCESS;
    /* Held while the server is asked: two threads that ask for one name get one function. */
    pthread_mutex_lock(&module->lock);
    struct gpushare_function *found = module->functions;
    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    if (!found && !(error = query_function(module, name, &found))) {
        found->next = module->functions;
        module->functions = found;
    }
    pthread_mutex_unlock(&module->lock);
    if (!error)
        *function = found;
    return error;
}

gpushare_error module_find_variable(gpushare_module *module, const char *name,
                                    gpushare_address *address, uint64_t *bytes)
{
    struct proto_global_get body = {.module = module->handle};
    struct proto_global_info reply;
    struct session_call call = {.request = PROTO_GLOBAL_GET,
                                .body = &body,
                                .tail = name,
                                .tail_bytes = strlen(name),
                                .reply = PROTO_GLOBAL_INFO,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_error error = connection_call(module->connection, &call);
    if (error)
        return error;
    struct allocation variable = {.address = reply.address,
                                  .bytes = reply.count,
                                  .asked = reply.count,
                                  .kind = ALLOCATION_VARIABLE,
                                  .owner = module};
    if (reply.count && allocation_add(&module->connection->allocations, &variable) < 0)
        return fail_no_memory();
    *address = reply.address;
    *bytes = reply.count;
    return GPUSHARE_SUCCESS;
}

/* ---- functions ---- */

void module_function_info(const gpushare_function *function, struct gpushare_function_info *info)
{
    *info = function->info;
    info->size = sizeof *info;
    info->dynamic_shared = atomic_load_explicit(&function->dynamic_shared, memory_order_relaxed);
}

gpushare_error module_set_shared(gpushare_function *function, uint32_t bytes)
{
    struct proto_function_set body = {.function = function->handle, .attribute = 1, .value = bytes};
    struct session_call call = {.request = PROTO_FUNCTION_SET, .body = &body, .reply = PROTO_DONE};
    gpushare_error error = connection_call(function->connection, &call);
    if (!error)
        atomic_store_explicit(&function->dynamic_shared, bytes, memory_order_relaxed);
    return error;
}

/* An answer beside its question, in one word: a program that launches the same cooperative grid in
 * a loop, or looks for the best size of a block before each launch, asks no server. */
enum { OCCUPANCY_THREADS_BITS = 16, OCCUPANCY_BLOCKS_BITS = 16 };

static uint64_t occupancy_key(uint32_t block_threads, uint32_t shared)
{
    return (uint64_t)shared << (OCCUPANCY_THREADS_BITS + OCCUPANCY_BLOCKS_BITS) |
           (uint64_t)block_threads << OCCUPANCY_BLOCKS_BITS;
}

/* Gives the place of the question's answer: one that has it; else an empty one, or, if there is
 * none, the one where the search begins. The key is 0 in its low bits. */
static _Atomic uint64_t *occupancy_place(gpushare_function *function, uint64_t key)
{
    /* 2^64 divided by the golden ratio: it spreads numbers that differ in a few bits. */
    const uint32_t first = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) % MODULE_OCCUPANCIES;
    for (uint32_t i = 0; i < MODULE_OCCUPANCIES; i++) {
        _Atomic uint64_t *place = &function->occupancies[(first + i) % MODULE_OCCUPANCIES];
        const uint64_t known = atomic_load_explicit(place, memory_order_relaxed);
        if (!known || known >> OCCUPANCY_BLOCKS_BITS == key >> OCCUPANCY_BLOCKS_BITS)
            return place;
    }
    return &function->occupancies[first];
}

static bool occupancy_known(gpushare_function *function, uint64_t key, uint32_t *blocks)
{
    uint64_t known = atomic_load_explicit(occupancy_place(function, key), memory_order_relaxed);
    *blocks = (uint32_t)(known & ((1u << OCCUPANCY_BLOCKS_BITS) - 1));
    return known != 0 && known - *blocks == key;
}

gpushare_error module_query_occupancy(gpushare_function *function, uint32_t block_threads,
                                      uint32_t shared, uint32_t *blocks)
{
    const bool fits = block_threads >> OCCUPANCY_THREADS_BITS == 0;
    const uint64_t key = occupancy_key(block_threads, shared);
    if (fits && occupancy_known(function, key, blocks))
        return GPUSHARE_SUCCESS;
    struct proto_occupancy_get body = {
        .function = function->handle, .block_threads = block_threads, .shared_bytes = shared};
    struct proto_occupancy_info reply;
    struct session_call call = {.request = PROTO_OCCUPANCY_GET,
                                .body = &body,
                                .reply = PROTO_OCCUPANCY_INFO,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_error error = connection_call(function->connection, &call);
    if (error)
        return error;
    *blocks = reply.blocks;
    if (fits && reply.blocks >> OCCUPANCY_BLOCKS_BITS == 0)
        atomic_store_explicit(occupancy_place(function, key), key | reply.blocks,
                              memory_order_relaxed);
    return GPUSHARE_SUCCESS;
}
