/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/client_function.h"

#include <pthread.h>

#include "common/array.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/code/kernel.h"

/* Finds offsets and sizes of a kernel's parameters: as the driver says them, or as the code
 * does. */
static uint32_t read_layout(const struct cuda_driver *cuda, const struct client_module *module,
                            cuda_function function, const char *name,
                            struct proto_function_info *info, uint32_t *layout, struct error *why)
{
    uint64_t end = 0;
    uint32_t count = 0;
    if (cuda->cuFuncGetParamInfo) {
        size_t offset = 0, size = 0;
        while (count < PROTO_PARAMETER_COUNT_MAX &&
               cuda->cuFuncGetParamInfo(function, count, &offset, &size) == CUDA_OK) {
            layout[2 * count] = (uint32_t)offset;
            layout[2 * count + 1] = (uint32_t)size;
            count++;
            if (offset + size > end)
                end = offset + size;
        }
    } else if (!client_module_layout(module, name, layout, &count, &end)) {
        return error_set(why, MESSAGE(kernel_layout_unknown), name);
    }
    if (end > PROTO_PARAMETERS_MAX)
        return error_set(why, MESSAGE(kernel_parameters_too_large), name, (unsigned long long)end);
    info->parameters = count;
    info->parameter_bytes = (uint32_t)end;
    return 0;
}

/* Enters a kernel under a number that is free, or that is this kernel's already. */
static uint32_t enter_function(struct client *client, uint32_t number,
                               const struct function *function, struct error *why)
{
    struct client_objects *objects = &client->objects;
    struct function *known =
        number && number <= objects->function_count ? &objects->functions[number - 1] : NULL;
    if (known && known->module == function->module && known->handle == function->handle)
        return 0;
    if (!number || (known && known->module && !client->control.forgiving))
        return error_set(why, MESSAGE(kernel_exists), number);
    client_lock(client);
    bool reserved = array_reserve(objects->functions, objects->function_room, number) == 0;
    for (; reserved && objects->function_count < number; objects->function_count++)
        objects->functions[objects->function_count] = (struct function){.module = NULL};
    if (reserved)
        objects->functions[number - 1] = *function;
    pthread_mutex_unlock(&client->lock);
    return reserved ? 0 : error_set(why, MESSAGE(kernel_no_memory));
}

uint32_t client_function_ask(const struct client *client, struct client_module_lookup *lookup,
                             struct error *why)
{
    const struct cuda_driver *cuda = client->gpu->cuda;
    const struct client_module *module = lookup->module;
    struct function *function = &lookup->function;
    struct proto_function_info *info = &lookup->info;
    cuda_result result =
        cuda->cuModuleGetFunction(&function->handle, client_module_handle(module), lookup->name);
    if (result == CUDA_ERR_NOT_FOUND)
        return error_set(why, MESSAGE(kernel_not_found), client_module_number(module),
                         lookup->name);
    if (result != CUDA_OK)
        return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(kernel_lookup),
                         lookup->name, cuda_driver_error_sentence(result));
    uint32_t error =
        read_layout(cuda, module, function->handle, lookup->name, info, lookup->layout, why);
    if (error)
        return error;
    info->block_threads = kernel_attribute(cuda, function->handle, CUDA_FUNC_MAX_THREADS_PER_BLOCK);
    info->shared_bytes = kernel_attribute(cuda, function->handle, CUDA_FUNC_SHARED_SIZE_BYTES);
    info->local_bytes = kernel_attribute(cuda, function->handle, CUDA_FUNC_LOCAL_SIZE_BYTES);
    info->constant_bytes = kernel_attribute(cuda, function->handle, CUDA_FUNC_CONST_SIZE_BYTES);
    info->registers = kernel_attribute(cuda, function->handle, CUDA_FUNC_NUM_REGS);
    info->ptx_version = kernel_attribute(cuda, function->handle, CUDA_FUNC_PTX_VERSION);
    info->binary_version = kernel_attribute(cuda, function->handle, CUDA_FUNC_BINARY_VERSION);
    function->parameter_bytes = info->parameter_bytes;
    function->block_threads = info->block_threads;
    function->local_bytes = info->local_bytes;
    function->shared_bytes = info->shared_bytes;
    function->registers = info->registers;
    function->dynamic_most =
        kernel_attribute(cuda, function->handle, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    /* It may have been raised already; the client has not asked. */
    function->dynamic_bytes =
        (uint32_t)min((uint64_t)function->dynamic_most,
                      saturating_sub(client->gpu->info.block_shared_bytes, info->shared_bytes));
    return 0;
}

uint32_t client_function_enter(struct client *client, uint32_t number,
                               struct client_module_lookup *lookup, struct error *why)
{
    lookup->info.function = number;
    return enter_function(client, number, &lookup->function, why);
}

uint32_t client_function_enter_lost(struct client *client, uint32_t number,
                                    struct client_module *module, struct error *why)
{
    return enter_function(client, number, &(struct function){.module = module}, why);
}

uint32_t client_function_usable(const struct client *client, uint32_t number,
                                struct function *function, struct error *why)
{
    uint32_t index = number - 1;
    if (index >= client->objects.function_count || !client->objects.functions[index].module ||
        client_module_dying(client->objects.functions[index].module))
        return error_set(why, MESSAGE(kernel_unknown), number);
    if (client_module_is_lost(client->objects.functions[index].module))
        return client_module_refuse_lost(client->objects.functions[index].module, why);
    *function = client->objects.functions[index];
    return 0;
}

uint32_t client_function_set_dynamic(const struct client *client, struct function *function,
                                     uint32_t number, uint32_t bytes, struct error *why)
{
    if (bytes > INT32_MAX)
        return error_set(why, MESSAGE(shared_memory_max), bytes);
    if (bytes > function->dynamic_most)
        function->dynamic_most = kernel_raise_shared(client->gpu, function->handle);
    function->dynamic_bytes = bytes;
    if (bytes <= function->dynamic_most)
        return 0;
    cuda_result result = client->gpu->cuda->cuFuncSetAttribute(
        function->handle, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
    function->dynamic_most = bytes;
    return result == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(kernel_shared_memory),
                           number, bytes, cuda_driver_error_sentence(result));
}

uint32_t client_function_occupancy(const struct client *client, const struct function *function,
                                   const struct proto_occupancy_get *wanted, uint32_t *blocks,
                                   struct error *why)
{
    if (wanted->block_threads > INT32_MAX)
        return error_set(why, MESSAGE(block_threads_max), wanted->block_threads);
    *blocks = 0;
    /* The driver may know of more than this client has set. */
    if (wanted->shared_bytes > function->dynamic_bytes)
        return 0;
    int count = 0;
    cuda_result result = client->gpu->cuda->cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &count, function->handle, (int)wanted->block_threads, wanted->shared_bytes);
    if (result != CUDA_OK)
        return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(kernel_occupancy),
                         wanted->function, cuda_driver_error_sentence(result));
    *blocks = count < 0 ? 0 : (uint32_t)count;
    return 0;
}
