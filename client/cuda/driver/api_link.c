/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The linker, for one input: PTX, a cubin or a fatbin. Its image is the input itself, which the
 * server compiles when it is loaded. It is loaded once while it is added, so that its errors come
 * where programs look for them; the server keeps what it has compiled.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/front/driver_absent.h"
#include "client/cuda/driver/base/driver_connection.h"
#include "client/cuda/driver/base/driver_image.h"
#include "client/cuda/driver/base/driver_result.h"
#include "common/cuda/front/driver_exports.h"
#include "client/engine/module.h"

/* The options are the program's, and stay where they are as long as the link does. */
struct cuda_link_object {
    gpushare_connection *connection;
    char *image; /* with a zero byte behind it; NULL: nothing was added */
    size_t bytes;
    unsigned count;
    cuda_jit_option *options;
    void **values;
};

cuda_result cuLinkCreate_v2(unsigned count, cuda_jit_option *options, void **values,
                            cuda_link *handle)
{
    gpushare_connection *connection;
    if (!handle || (count && (!options || !values)))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_current(&connection));
    struct cuda_link_object *link = calloc(1, sizeof *link);
    if (!link)
        return CUDA_ERR_OUT_OF_MEMORY;
    *link = (struct cuda_link_object){
        .connection = connection, .count = count, .options = options, .values = values};
    *handle = link;
    return CUDA_OK;
}

static cuda_result check(cuda_link link)
{
    return link ? driver_connection_check(link->connection) : CUDA_ERR_INVALID_HANDLE;
}

/* Whether the server takes the image. */
static cuda_result try_image(const struct cuda_link_object *link)
{
    gpushare_module *module;
    const void *image = link->image;
    size_t bytes = driver_image_measure(&image);
    if (!bytes)
        return CUDA_ERR_INVALID_IMAGE;
    DRIVER_TRY(driver_result(module_load_image(link->connection, image, bytes, &module)));
    return driver_result(module_unload(module));
}

/* Takes the image over, which is malloc'ed. */
static cuda_result take(struct cuda_link_object *link, char *image, size_t bytes)
{
    link->image = image;
    link->bytes = bytes;
    cuda_result result = try_image(link);
    driver_image_log(link->count, link->options, link->values, result);
    if (result != CUDA_OK) {
        free(link->image);
        link->image = NULL;
    }
    return result;
}

/* Nothing here joins several inputs, or reads objects and libraries of them. */
static cuda_result check_input(cuda_link link, cuda_jit_input type)
{
    static atomic_flag several = ATOMIC_FLAG_INIT, other = ATOMIC_FLAG_INIT;
    DRIVER_TRY(check(link));
    if (type != CUDA_JIT_INPUT_PTX && type != CUDA_JIT_INPUT_CUBIN &&
        type != CUDA_JIT_INPUT_FATBINARY)
        return driver_absent_call("cuLinkAddData of objects, libraries and NVVM", &other);
    return link->image ? driver_absent_call("cuLinkAddData of several inputs", &several) : CUDA_OK;
}

cuda_result cuLinkAddData_v2(cuda_link link, cuda_jit_input type, void *data, size_t size,
                             const char *name, unsigned count, cuda_jit_option *options,
                             void **values)
{
    (void)name;
    DRIVER_TRY(check_input(link, type));
    if (!data || !size || (count && (!options || !values)))
        return CUDA_ERR_INVALID_VALUE;
    char *image = malloc(size + 1);
    if (!image)
        return CUDA_ERR_OUT_OF_MEMORY;
    memcpy(image, data, size);
    image[size] = '\0';
    return take(link, image, size);
}

/* Gives the whole file, with a zero byte behind it. */
static cuda_result read_file(const char *path, char **image, size_t *bytes)
{
    FILE *file = fopen(path, "rbe");
    char *text = NULL;
    size_t room = 0;
    if (!file)
        return CUDA_ERR_FILE_NOT_FOUND;
    FILE *copy = open_memstream(&text, &room);
    char part[4096];
    size_t got;
    while (copy && (got = fread(part, 1, sizeof part, file)) > 0)
        (void)fwrite(part, 1, got, copy);
    bool whole = !ferror(file);
    (void)fclose(file);
    if (!copy || fclose(copy) != 0) {
        free(text);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    if (!whole || !room) {
        free(text);
        return whole ? CUDA_ERR_INVALID_IMAGE : CUDA_ERR_FILE_NOT_FOUND;
    }
    *image = text; /* open_memstream ends it with a zero byte */
    *bytes = room;
    return CUDA_OK;
}

cuda_result cuLinkAddFile_v2(cuda_link link, cuda_jit_input type, const char *path, unsigned count,
                             cuda_jit_option *options, void **values)
{
    char *image;
    size_t bytes;
    DRIVER_TRY(check_input(link, type));
    if (!path || (count && (!options || !values)))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(read_file(path, &image, &bytes));
    return take(link, image, bytes);
}

/* The image is the link's, and goes with it. */
cuda_result cuLinkComplete(cuda_link link, void **image, size_t *size)
{
    DRIVER_TRY(check(link));
    if (!image || !link->image)
        return CUDA_ERR_INVALID_VALUE;
    *image = link->image;
    if (size)
        *size = link->bytes + 1;
    return CUDA_OK;
}

cuda_result cuLinkDestroy(cuda_link link)
{
    if (!link)
        return CUDA_ERR_INVALID_HANDLE;
    free(link->image);
    free(link);
    return CUDA_OK;
}
