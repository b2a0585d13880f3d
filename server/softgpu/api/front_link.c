/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The front's operations of links: PTX in, an image out that loads without a compiler. */
#include <stdlib.h>
#include <string.h>

#include "common/cuda/fatbin.h"
#include "common/cuda/front/front.h"
#include "server/softgpu/api/image.h"
#include "server/softgpu/decode/container.h"
#include "server/softgpu/device/device.h"
#include "server/softgpu/exec/description.h"
#include "server/softgpu/report.h"

static char *make_container(const struct image *image, const struct module *module, size_t *size)
{
    const struct profile *profile = device_profile();
    struct description *description = description_make(module);

    if (!description)
        return NULL;
    char *made =
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
static cuda_result make(const struct image *image, char **made, size_t *bytes, struct error *why)
{
    struct module *module;
    cuda_result result = image_module(image, &module, why);

    if (result != CUDA_OK)
        return result;
    *made = make_container(image, module, bytes);
    module_destroy(module);
    return *made ? CUDA_OK : error_set(why, CUDA_ERR_OUT_OF_MEMORY, "out of host memory");
}

/* An image may be shorter than it says. */
static cuda_result open_sized(struct image *image, const void *bytes, size_t size,
                              struct error *why)
{
    const uint32_t magic = FATBIN_MAGIC;
    struct container container;

    *image = (struct image){0};
    if (size >= sizeof(magic) && container_is_elf(bytes) &&
        !container_read_within(bytes, size, &container))
        return error_set(why, CUDA_ERR_NO_BINARY_FOR_GPU,
                         "the image is a cubin: the software GPU runs PTX only");
    if (size >= sizeof(magic) && memcmp(bytes, &magic, sizeof(magic)) == 0 &&
        (size < FATBIN_HEADER_BYTES || fatbin_size(bytes) > size))
        return error_set(why, CUDA_ERR_INVALID_IMAGE, "the fatbin is damaged");
    return image_open(image, bytes, why);
}

cuda_result front_link_make(cuda_device device, const void *image, size_t bytes, char **made,
                            size_t *made_bytes, struct error *why)
{
    struct image opened;
    cuda_result result = device_check();

    (void)device; /* all of them are alike */
    if (result != CUDA_OK)
        return error_set(why, result, "the device is lost");
    result = open_sized(&opened, image, bytes, why);
    if (result == CUDA_OK)
        result = make(&opened, made, made_bytes, why);
    image_close(&opened);
    if (result != CUDA_OK)
        report("not linked: %s", why->text);
    return result;
}

bool front_link_text(const void *image, size_t bytes, const char **text, size_t *length)
{
    struct container container;

    if (!container_read_within(image, bytes, &container))
        return false;
    *text = container.text;
    *length = container.length;
    return true;
}
