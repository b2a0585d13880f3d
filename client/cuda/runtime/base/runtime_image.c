/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * NVIDIA's cuModuleLoadData takes a fatbin, and no struct around it. NVIDIA's runtime gives the
 * struct to cuLibraryLoadData, which links the parts. A linker of the driver does the same by calls
 * that are documented, and for a program that sees several devices too.
 */
#include "client/cuda/runtime/base/runtime_image.h"

#include <stdio.h>

#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "common/cuda/fatbin.h"
#include "common/log.h"
#include "common/messages.h"

enum { LOG_BYTES = 1024, NAME_BYTES = 16 };

struct linking {
    cuda_link link;
    cuda_jit_option options[2];
    void *values[2]; /* which the driver keeps until the link is destroyed */
    char log[LOG_BYTES];
};

static cudart_error open_link(struct linking *linking)
{
    linking->options[0] = CUDA_JIT_ERROR_LOG_BUFFER;
    linking->options[1] = CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
    linking->values[0] = linking->log;
    linking->values[1] = (void *)(uintptr_t)sizeof linking->log;
    return DRIVER(cuLinkCreate, 2, linking->options, linking->values, &linking->link);
}

static cudart_error add_part(struct linking *linking, const void *part, unsigned number)
{
    char name[NAME_BYTES];
    size_t bytes = fatbin_size(part);

    if (!bytes) {
        snprintf(linking->log, sizeof linking->log, MESSAGE_TEXT(runtime_part_no_fatbin), number);
        return CUDART_INVALID_KERNEL_IMAGE;
    }
    snprintf(name, sizeof name, "part %u", number);
    return DRIVER(cuLinkAddData, linking->link, CUDA_JIT_INPUT_FATBINARY, (void *)(uintptr_t)part,
                  bytes, name, 0, NULL, NULL);
}

static cudart_error add_parts(struct linking *linking, const void *const *parts)
{
    cudart_error error = CUDART_OK;

    if (!*parts) {
        snprintf(linking->log, sizeof linking->log, MESSAGE_TEXT(runtime_no_part));
        return (cudart_error)CUDA_ERR_NO_BINARY_FOR_GPU;
    }
    for (unsigned i = 0; error == CUDART_OK && parts[i]; i++)
        error = add_part(linking, parts[i], i + 1);
    return error;
}

static cudart_error link_and_load(struct linking *linking, const void *const *parts,
                                  cuda_module *module)
{
    void *code;
    size_t bytes;
    cudart_error error = add_parts(linking, parts);

    if (error == CUDART_OK)
        error = DRIVER(cuLinkComplete, linking->link, &code, &bytes);
    if (error == CUDART_OK)
        error = DRIVER(cuModuleLoadData, module, code);
    return error;
}

static cudart_error load_parts(const void *const *parts, cuda_module *module)
{
    struct linking linking = {.log = ""};
    cudart_error error = open_link(&linking);

    if (error == CUDART_OK) {
        error = link_and_load(&linking, parts, module);
        (void)DRIVER(cuLinkDestroy, linking.link);
    }
    if (error != CUDART_OK)
        log_error(MESSAGE_TEXT(runtime_parts_unlinked),
                  *linking.log ? linking.log : runtime_error_name(error));
    return error;
}

/* Whether the fatbin may have code for the current device; asking the driver instead would have it
 * complain. A damaged one is the driver's to refuse. */
static bool may_suit(const void *fatbin)
{
    struct fatbin_entry entry;
    cuda_device device;
    int major, minor;

    if (DRIVER(cuCtxGetDevice, &device) != CUDART_OK ||
        DRIVER(cuDeviceGetAttribute, &major, CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR, device) !=
            CUDART_OK ||
        DRIVER(cuDeviceGetAttribute, &minor, CUDA_ATTR_COMPUTE_CAPABILITY_MINOR, device) !=
            CUDART_OK)
        return true;
    return fatbin_select(fatbin, fatbin_size(fatbin), (uint32_t)(major * 10 + minor), &entry) != 0;
}

/* The software GPU takes no machine code, whatever device that is for. */
static bool is_for_others(cudart_error error)
{
    return error == (cudart_error)CUDA_ERR_NO_BINARY_FOR_GPU ||
           error == (cudart_error)CUDA_ERR_NOT_SUPPORTED;
}

cudart_error runtime_image_load(const void *image, cuda_module *module)
{
    const struct fatbin_wrapper *wrapper = image;
    const void *fatbin = fatbin_unwrap(image);
    cudart_error error = (cudart_error)CUDA_ERR_NO_BINARY_FOR_GPU;

    if (fatbin == image || wrapper->version != FATBIN_WRAPPER_PARTS || !wrapper->parts)
        return DRIVER(cuModuleLoadData, module, fatbin);
    if (fatbin && may_suit(fatbin))
        error = DRIVER(cuModuleLoadData, module, fatbin);
    return is_for_others(error) ? load_parts(wrapper->parts, module) : error;
}
