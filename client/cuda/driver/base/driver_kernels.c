/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_kernels.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/module.h"
#include "common/cuda/front/driver_absent.h"
#include "common/cuda/ptx_token.h"
#include "protocol.h"

/* Names, each with a zero byte, and an empty one behind the last. They may be of no kernel, such as
 * a word in a comment, and stand twice: the server is asked. */
void driver_kernels_note(gpushare_module *module, const char *text, size_t length)
{
    static const char word[] = ".entry";
    char *names = NULL;
    size_t bytes = 0;
    FILE *to = length <= UINT32_MAX ? open_memstream(&names, &bytes) : NULL;
    if (!to)
        return;
    for (const char *at = text, *end = text + length;
         (at = memmem(at, (size_t)(end - at), word, sizeof word - 1));) {
        struct ptx_lexer lexer;
        at += sizeof word - 1;
        ptx_lexer_init(&lexer, at, (uint32_t)(end - at));
        struct ptx_token token = ptx_lexer_next(&lexer);
        if (token.kind == PTX_TOKEN_WORD && token.end - token.start <= PROTO_NAME_MAX)
            (void)fprintf(to, "%.*s%c", (int)(token.end - token.start), at + token.start, 0);
    }
    (void)fputc(0, to);
    bool whole = !ferror(to);
    whole &= fclose(to) == 0;
    if (whole)
        module->note = names;
    else
        free(names);
}

static bool has(gpushare_function *const *functions, unsigned count,
                const gpushare_function *function)
{
    while (count && functions[count - 1] != function)
        count--;
    return count > 0;
}

static cuda_result find_all(gpushare_module *module, gpushare_function **functions, unsigned *count)
{
    *count = 0;
    for (const char *name = module->note; *name; name += strlen(name) + 1) {
        gpushare_function *found;
        gpushare_error error = module_find_function(module, name, &found);
        if (error && error != GPUSHARE_ERROR_NOT_FOUND)
            return driver_result(error);
        if (!error && !has(functions, *count, found))
            functions[(*count)++] = found;
    }
    return CUDA_OK;
}

cuda_result driver_kernels_list(gpushare_module *module, gpushare_function ***functions,
                                unsigned *count)
{
    static atomic_flag named = ATOMIC_FLAG_INIT;
    size_t most = 1;
    if (!module->note)
        return driver_absent_call("cuModuleEnumerateFunctions of machine code", &named);
    for (const char *name = module->note; *name; name += strlen(name) + 1)
        most++;
    *functions = calloc(most, sizeof(gpushare_function *));
    if (!*functions)
        return CUDA_ERR_OUT_OF_MEMORY;
    cuda_result result = find_all(module, *functions, count);
    if (result != CUDA_OK)
        free(*functions);
    return result;
}
