/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Modules, functions and variables. */
#include <string.h>

#include "client/abi.h"
#include "client/engine/connection.h"
#include "client/engine/module.h"
#include "client/session/failure.h"
#include "common/messages.h"

static gpushare_error check_module(const gpushare_module *module)
{
    if (!module)
        return failure(MESSAGE(module_null));
    return connection_check(module->connection);
}

static gpushare_error check_function(const gpushare_function *function)
{
    if (!function)
        return failure(MESSAGE(function_null));
    return connection_check(function->connection);
}

static gpushare_error check_name(const char *name)
{
    if (!name)
        return failure(MESSAGE(name_pointer_null));
    size_t length = strlen(name);
    if (!length || length > PROTO_NAME_MAX)
        return failure(MESSAGE(name_bytes), PROTO_NAME_MAX, length);
    return GPUSHARE_SUCCESS;
}

/* The length of an image whose size the caller did not give. Binary images hold zeros, so strlen
 * would cut them. They are recognised by their first four bytes, of which each binary format has
 * one that is zero or above 0x7e. */
static gpushare_error measure_text(const char *image, size_t *bytes)
{
    for (int i = 0; i < 4; i++)
        if ((unsigned char)image[i] > 0x7e || !image[i])
            return failure(MESSAGE(image_not_text));
    *bytes = strlen(image);
    return GPUSHARE_SUCCESS;
}

gpushare_error gpushare_module_load(gpushare_connection *connection, const void *image,
                                    size_t bytes, gpushare_module **module)
{
    gpushare_error error = connection_check(connection);
    if (error)
        return error;
    if (!image || !module)
        return image ? failure(MESSAGE(module_pointer_null)) : failure(MESSAGE(image_pointer_null));
    if (!bytes && (error = measure_text(image, &bytes)))
        return error;
    return module_load_image(connection, image, bytes, module);
}

gpushare_error gpushare_module_load_file(gpushare_connection *connection, const char *path,
                                         gpushare_module **module)
{
    gpushare_error error = connection_check(connection);
    if (error)
        return error;
    if (!path || !module)
        return path ? failure(MESSAGE(module_pointer_null)) : failure(MESSAGE(path_pointer_null));
    return module_load_file(connection, path, module);
}

gpushare_error gpushare_module_unload(gpushare_module *module)
{
    if (!module)
        return GPUSHARE_SUCCESS;
    gpushare_error error = connection_check(module->connection);
    return error ? error : module_unload(module);
}

gpushare_error gpushare_module_function(gpushare_module *module, const char *name,
                                        gpushare_function **function)
{
    gpushare_error error = check_module(module);
    if (error)
        return error;
    if (!function)
        return failure(MESSAGE(function_pointer_null));
    if ((error = check_name(name)))
        return error;
    return module_find_function(module, name, function);
}

gpushare_error gpushare_module_variable(gpushare_module *module, const char *name,
                                        gpushare_address *address, uint64_t *bytes)
{
    gpushare_address at;
    uint64_t length;
    gpushare_error error = check_module(module);
    if (error || (error = check_name(name)) ||
        (error = module_find_variable(module, name, &at, &length)))
        return error;
    if (address)
        *address = at;
    if (bytes)
        *bytes = length;
    return GPUSHARE_SUCCESS;
}

gpushare_error gpushare_function_info(gpushare_function *function,
                                      struct gpushare_function_info *info)
{
    struct gpushare_function_info now;
    gpushare_error error = check_function(function);
    if (error)
        return error;
    module_function_info(function, &now);
    return abi_copy_out(info, &now, sizeof now, "info");
}

gpushare_error gpushare_function_parameter(gpushare_function *function, uint32_t index,
                                           size_t *offset, size_t *bytes)
{
    gpushare_error error = check_function(function);
    if (error)
        return error;
    if (index >= function->parameters)
        return failure(MESSAGE(parameter_unknown), function->name, function->parameters, index);
    if (offset)
        *offset = function->table[index].offset;
    if (bytes)
        *bytes = function->table[index].bytes;
    return GPUSHARE_SUCCESS;
}

gpushare_error gpushare_function_set_shared(gpushare_function *function, uint32_t bytes)
{
    gpushare_error error = check_function(function);
    return error ? error : module_set_shared(function, bytes);
}

gpushare_error gpushare_occupancy(gpushare_function *function, uint32_t block_threads,
                                  uint32_t shared, uint32_t *blocks)
{
    gpushare_error error = check_function(function);
    if (error)
        return error;
    if (!blocks)
        return failure(MESSAGE(blocks_pointer_null));
    if (!block_threads)
        return failure(MESSAGE(block_threads_zero));
    return module_query_occupancy(function, block_threads, shared, blocks);
}
