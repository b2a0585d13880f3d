/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/ptx_link.h"

#include <stdint.h>
#include <string.h>

bool ptx_link_offered(const struct cuda_driver *cuda)
{
    return cuda->cuLinkCreate && cuda->cuLinkAddData && cuda->cuLinkComplete && cuda->cuLinkDestroy;
}

cuda_result ptx_link_open(struct ptx_link *link, const struct cuda_driver *cuda)
{
    *link = (struct ptx_link){
        .cuda = cuda,
        .options = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
    };
    link->values[0] = link->log;
    link->values[1] = (void *)(uintptr_t)sizeof link->log;
    cuda_result result = cuda->cuLinkCreate(2, link->options, link->values, &link->handle);
    if (result != CUDA_OK)
        link->handle = NULL;
    return result;
}

cuda_result ptx_link_text(struct ptx_link *link, const char *text, const void **code, size_t *bytes)
{
    void *image = NULL;
    cuda_result result =
        link->cuda->cuLinkAddData(link->handle, CUDA_JIT_INPUT_PTX, (void *)(uintptr_t)text,
                                  strlen(text) + 1, "module", 0, NULL, NULL);
    if (result == CUDA_OK)
        result = link->cuda->cuLinkComplete(link->handle, &image, bytes);
    link->log[sizeof link->log - 1] = 0;
    *code = image;
    return result;
}

void ptx_link_close(struct ptx_link *link)
{
    if (link->handle)
        link->cuda->cuLinkDestroy(link->handle);
    link->handle = NULL;
}
