/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/exec/description.h"

#include <stdlib.h>
#include <string.h>

struct parameter {
    uint32_t offset, bytes;
};

static struct description_kernel *kernels_of(const struct description *description)
{
    return (struct description_kernel *)(uintptr_t)(description + 1);
}

static struct parameter *parameters_of(const struct description *description)
{
    return (struct parameter *)(void *)(kernels_of(description) + description->kernel_count);
}

static char *names_of(const struct description *description)
{
    return (char *)(parameters_of(description) + description->parameter_count);
}

size_t description_bytes(const struct description *description)
{
    /* The counts are below 2^32 each, so the sum can't overflow. */
    return sizeof(*description) + description->kernel_count * sizeof(struct description_kernel) +
           description->parameter_count * sizeof(struct parameter) + description->name_bytes;
}

/* ---- made ---- */

static struct description count_all(const struct module *module)
{
    struct description all = {.global_bytes = module_global_bytes(module),
                              .const_bytes = module_const_bytes(module),
                              .kernel_count = (uint32_t)module_function_count(module),
                              .allocates = module_allocates(module)};
    struct function_info info;

    for (uint32_t i = 0; i < all.kernel_count; i++) {
        function_info(module_function_at((struct module *)(uintptr_t)module, i), &info);
        all.parameter_count += info.param_count;
        all.name_bytes += (uint32_t)strlen(info.name) + 1;
    }
    return all;
}

static void add_kernel(struct description *description, const struct function *function,
                       uint32_t kernel, const struct description_kernel *before)
{
    struct description_kernel *made = &kernels_of(description)[kernel];
    struct function_info info;

    function_info(function, &info);
    *made = (struct description_kernel){
        .parameter = before ? before->parameter + before->parameter_count : 0,
        .name =
            before ? before->name + (uint32_t)strlen(names_of(description) + before->name) + 1 : 0,
        .parameter_count = info.param_count,
        .parameter_bytes = info.param_bytes,
        .static_shared_bytes = info.static_shared_bytes,
        .local_bytes = info.local_bytes,
        .const_bytes = info.const_bytes,
        .registers = info.registers,
        .max_threads = info.max_threads,
        .ptx_version = info.ptx_version,
        .target = info.target};
    strcpy(names_of(description) + made->name, info.name);
    for (uint32_t i = 0; i < info.param_count; i++) {
        struct parameter *parameter = &parameters_of(description)[made->parameter + i];
        function_param(function, i, &parameter->offset, &parameter->bytes);
    }
}

struct description *description_make(const struct module *module)
{
    const struct description all = count_all(module);
    struct description *made = calloc(1, description_bytes(&all));

    if (!made)
        return NULL;
    *made = all;
    for (uint32_t i = 0; i < all.kernel_count; i++)
        add_kernel(made, module_function_at((struct module *)(uintptr_t)module, i), i,
                   i ? &kernels_of(made)[i - 1] : NULL);
    return made;
}

/* ---- read ---- */

static bool is_whole(const struct description *description)
{
    const char *names = names_of(description);

    if (description->name_bytes ? names[description->name_bytes - 1] != '\0'
                                : description->kernel_count != 0)
        return false;
    for (uint32_t i = 0; i < description->kernel_count; i++) {
        const struct description_kernel *kernel = &kernels_of(description)[i];
        if (kernel->name >= description->name_bytes ||
            kernel->parameter > description->parameter_count ||
            kernel->parameter_count > description->parameter_count - kernel->parameter)
            return false;
    }
    return true;
}

struct description *description_read(const void *bytes, size_t count, bool *good)
{
    struct description head;
    struct description *read;

    *good = count >= sizeof(head);
    if (!*good)
        return NULL;
    memcpy(&head, bytes, sizeof(head));
    *good = count == description_bytes(&head);
    read = *good ? malloc(count) : NULL;
    if (!read)
        return NULL;
    memcpy(read, bytes, count);
    *good = is_whole(read);
    if (*good)
        return read;
    free(read);
    return NULL;
}

void description_info(const struct description *description, uint32_t kernel,
                      struct function_info *info)
{
    const struct description_kernel *known = &kernels_of(description)[kernel];

    *info = (struct function_info){.name = names_of(description) + known->name,
                                   .param_count = known->parameter_count,
                                   .param_bytes = known->parameter_bytes,
                                   .static_shared_bytes = known->static_shared_bytes,
                                   .local_bytes = known->local_bytes,
                                   .const_bytes = known->const_bytes,
                                   .registers = known->registers,
                                   .max_threads = known->max_threads,
                                   .ptx_version = known->ptx_version,
                                   .target = known->target};
}

int description_param(const struct description *description, uint32_t kernel, uint32_t index,
                      uint32_t *offset, uint32_t *bytes)
{
    const struct description_kernel *known = &kernels_of(description)[kernel];

    if (index >= known->parameter_count)
        return -1;
    const struct parameter *parameter = &parameters_of(description)[known->parameter + index];
    *offset = parameter->offset;
    *bytes = parameter->bytes;
    return 0;
}
