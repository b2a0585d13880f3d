/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The linker: PTX in, an image out that loads without a compiler. One input is what it
 * takes, for nothing here resolves symbols between modules.
 */
#include <stdlib.h>

#include "common/list.h"
#include "server/softgpu/api/api.h"
#include "server/softgpu/api/image.h"
#include "server/softgpu/api/jit_log.h"
#include "server/softgpu/decode/container.h"
#include "server/softgpu/exec/description.h"
#include "server/softgpu/memory/memory.h"
#include "server/softgpu/report.h"

struct cuda_link_object {
    unsigned magic;
    struct queue_link link; /* in the store */
    unsigned count;         /* options, as the caller gave them; values point to where logs go */
    cuda_jit_option *options;
    void **values; /* the caller's own array, in which sizes are told */
    void *image;   /* made by the first input; NULL before */
    size_t size;
};

/* For reuse, under the lock of context changes: a stale handle meets magic 0, not freed memory. */
static struct queue unused_links;

static struct cuda_link_object *link_new(unsigned count, const cuda_jit_option *options)
{
    struct cuda_link_object *link;

    memory_change_begin();
    link = QUEUE_TAKE(&unused_links, struct cuda_link_object, link);
    memory_change_end();
    if (!link)
        link = malloc(sizeof(*link));
    if (!link)
        return NULL;
    *link = (struct cuda_link_object){.magic = LINK_MAGIC, .count = count};
    /* One more, for no options are no reason to get NULL. */
    link->options = malloc((count + 1) * sizeof(*options));
    for (unsigned i = 0; link->options && i < count; i++)
        link->options[i] = options[i];
    return link;
}

static void link_drop(struct cuda_link_object *link)
{
    link->magic = 0;
    free(link->options);
    free(link->image);
    memory_change_begin();
    queue_prepend(&unused_links, &link->link);
    memory_change_end();
}

static cuda_result find_link(cuda_link link)
{
    struct device *device;

    DRIVER_TRY(api_current(&device));
    return link && link->magic == LINK_MAGIC ? CUDA_OK : CUDA_ERR_INVALID_HANDLE;
}

cuda_result cuLinkCreate_v2(unsigned count, cuda_jit_option *options, void **values,
                            cuda_link *link)
{
    struct device *device;
    struct cuda_link_object *made;

    DRIVER_TRY(api_current(&device));
    if (!link || (count > 0 && (!options || !values)))
        return CUDA_ERR_INVALID_VALUE;
    made = link_new(count, options);
    if (!made)
        return CUDA_ERR_OUT_OF_MEMORY;
    if (!made->options) {
        link_drop(made);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    made->values = values;
    *link = made;
    return CUDA_OK;
}

static cuda_result open_input(struct image *image, cuda_jit_input type, const void *data,
                              size_t size, struct error *error)
{
    *image = (struct image){0};
    switch (type) {
    case CUDA_JIT_INPUT_PTX:
        image->text = data;
        image->length = size;
        return CUDA_OK;
    case CUDA_JIT_INPUT_FATBINARY:
        return image_open(image, data, error);
    case CUDA_JIT_INPUT_CUBIN:
    case CUDA_JIT_INPUT_OBJECT:
    case CUDA_JIT_INPUT_LIBRARY:
        return error_set(error, CUDA_ERR_NOT_SUPPORTED,
                         "the software GPU links PTX and fatbins only");
    }
    return error_set(error, CUDA_ERR_INVALID_VALUE, "an input of an unknown type");
}

static void *make_image(const struct image *image, const struct module *module, size_t *size)
{
    const struct profile *profile = device_profile();
    struct description *description = description_make(module);

    if (!description)
        return NULL;
    void *made =
        container_make(&(struct container){.text = image->text,
                                           .length = image->length,
                                           .arch = profile->cc_major * 10 + profile->cc_minor,
                                           .description = description,
                                           .described = description_bytes(description)},
                       size);
    free(description);
    return made;
}

/* Compiles, as NVIDIA's does here already: what is wrong with the PTX is told now. */
static cuda_result link_input(struct cuda_link_object *link, const struct image *image,
                              struct error *error)
{
    struct module *module;
    cuda_result result = image_module(image, &module, error);

    if (result != CUDA_OK)
        return result;
    link->image = make_image(image, module, &link->size);
    module_destroy(module);
    return link->image ? CUDA_OK : error_set(error, CUDA_ERR_OUT_OF_MEMORY, "out of host memory");
}

cuda_result cuLinkAddData_v2(cuda_link link, cuda_jit_input type, void *data, size_t size,
                             const char *name, unsigned count, cuda_jit_option *options,
                             void **values)
{
    struct error error = {0};
    struct image image;
    cuda_result result;

    (void)name;
    DRIVER_TRY(find_link(link));
    if (!data || size == 0 || (count > 0 && (!options || !values)))
        return CUDA_ERR_INVALID_VALUE;
    if (link->image) {
        report("not linked: the software GPU links one input only");
        return CUDA_ERR_NOT_SUPPORTED;
    }
    result = open_input(&image, type, data, size, &error);
    if (result == CUDA_OK)
        result = link_input(link, &image, &error);
    image_close(&image);
    jit_log_write(link->count, link->options, link->values, result == CUDA_OK ? "" : error.text);
    if (result != CUDA_OK)
        report("not linked: %s", error.text);
    return result;
}

cuda_result cuLinkComplete(cuda_link link, void **image, size_t *size)
{
    DRIVER_TRY(find_link(link));
    if (!image || !link->image)
        return CUDA_ERR_INVALID_VALUE;
    *image = link->image;
    if (size)
        *size = link->size;
    return CUDA_OK;
}

cuda_result cuLinkDestroy(cuda_link link)
{
    DRIVER_TRY(find_link(link));
    link_drop(link);
    return CUDA_OK;
}
