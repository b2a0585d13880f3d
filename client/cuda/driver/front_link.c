/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The front's operations of links. A link's image is its PTX, a cubin or a fatbin itself: the
 * server keeps the code that it has compiled, so a module of it is loaded without a compiler. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/driver/base/driver_connection.h"
#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/base/driver_image.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/module.h"
#include "client/session/failure.h"
#include "common/messages.h"

/* Whether the server takes the image. */
static cuda_result try_image(cuda_device ordinal, const void *image, size_t bytes)
{
    struct driver_device *device;
    gpushare_connection *connection;
    gpushare_module *module;
    DRIVER_TRY(driver_device_get(ordinal, &device));
    DRIVER_TRY(driver_device_connect(device, &connection));
    DRIVER_TRY(driver_connection_check(connection));
    DRIVER_TRY(driver_connection_load(connection, image, bytes, &module));
    return driver_connection_unload(module);
}

/* Whether the tables of a cubin, which its size is read from, lie within the bytes. */
static bool has_tables(const void *image, size_t bytes)
{
    Elf64_Ehdr head;
    if (bytes < SELFMAG || memcmp(image, ELFMAG, SELFMAG))
        return bytes >= 16 || memchr(image, 0, bytes); /* a fatbin's header, or text */
    if (bytes < sizeof head)
        return false;
    memcpy(&head, image, sizeof head);
    return head.e_shentsize == sizeof(Elf64_Shdr) && head.e_shoff <= bytes &&
           (size_t)head.e_shnum * head.e_shentsize <= bytes - head.e_shoff;
}

/* The program's image may be longer than it says, and no shorter. */
cuda_result front_link_make(cuda_device device, const void *image, size_t bytes, char **made,
                            size_t *made_bytes, struct error *why)
{
    const void *measured = image;
    size_t size = has_tables(image, bytes) ? driver_image_measure(&measured) : 0;
    if (!size || size > bytes)
        return error_set(why, CUDA_ERR_INVALID_IMAGE, MESSAGE_TEXT(image_kind));
    cuda_result result = try_image(device, measured, size);
    if (result != CUDA_OK)
        return error_set(why, result, "%s", failure_sentence());
    *made = malloc(size + 1);
    if (!*made)
        return error_set(why, CUDA_ERR_OUT_OF_MEMORY, MESSAGE_TEXT(merge_no_memory));
    memcpy(*made, measured, size);
    (*made)[size] = '\0';
    *made_bytes = size + 1;
    return CUDA_OK;
}

/* A link here makes no ELF image of PTX. */
bool front_link_text(const void *image, size_t bytes, const char **text, size_t *length)
{
    (void)image;
    (void)bytes;
    (void)text;
    (void)length;
    return false;
}
