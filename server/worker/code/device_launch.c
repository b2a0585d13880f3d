/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/device_launch.h"

#include <stdbool.h>
#include <string.h>

#include "common/cuda/ptx_token.h"
#include "common/messages.h"
#include "server/worker/image/cubin.h"

/* The names that code of nvcc 13.0 refers to, and those of the PTX ISA and older compilers; a
 * suffix such as V2 follows. */
static const char *const launchers[] = {"__cudaCDP2LaunchDevice", "cudaLaunchDevice"};

/* Words, so that a comment or a name that contains one is no launch. */
static bool text_calls(const char *text, size_t length, const char *launcher)
{
    struct ptx_lexer lexer;
    size_t letters = strlen(launcher);
    if (length > UINT32_MAX || !memmem(text, length, launcher, letters))
        return false;
    ptx_lexer_init(&lexer, text, (uint32_t)length);
    for (;;) {
        struct ptx_token token = ptx_lexer_next(&lexer);
        if (token.kind == PTX_TOKEN_END || token.kind == PTX_TOKEN_BAD)
            return false;
        if (token.kind == PTX_TOKEN_WORD && token.end - token.start >= letters &&
            !memcmp(text + token.start, launcher, letters))
            return true;
    }
}

const char *device_launch_find(const struct code_image *image)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (image->kind == CODE_IMAGE_PTX
                ? text_calls((const char *)image->bytes, image->count, launchers[i])
                : cubin_names(image->bytes, image->count, launchers[i]))
            return launchers[i];
    return NULL;
}

uint32_t device_launch_check(const struct code_image *image, const struct gpu *gpu,
                             struct error *why)
{
    if (gpu->info.compute_major != 9 || !cuda_driver_has_green_contexts(gpu->cuda))
        return 0;
    const char *launcher = device_launch_find(image);
    return launcher ? error_set(why, MESSAGE(module_launches), launcher) : 0;
}
