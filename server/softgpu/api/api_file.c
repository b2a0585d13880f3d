/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Images that are in files. */
#include <stdlib.h>

#include "server/softgpu/api/api.h"
#include "server/softgpu/api/image.h"

cuda_result cuModuleLoad(cuda_module *module, const char *path)
{
    cuda_result result;
    size_t bytes;
    char *text;

    if (!module || !path)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(image_read(path, &text, &bytes));
    result = cuModuleLoadData(module, text);
    free(text);
    return result;
}
