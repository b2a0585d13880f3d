/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* fake_module: the fake driver's modules, launches and green contexts. Only fake.h includes it. */
#ifndef GPUSHARE_TESTS_UNIT_WORKER_FAKE_MODULE_H
#define GPUSHARE_TESTS_UNIT_WORKER_FAKE_MODULE_H

/* The first bytes of the fake linker's images. */
static const char fake_linked[] = "\177LINKED";

static inline cuda_result fake_compile(const char *image, unsigned count, void **values)
{
    if (strstr(image, "REFUSE ME")) {
        if (count)
            strcpy(values[0], "line 7: refused on request\nand more");
        return CUDA_ERR_INVALID_PTX;
    }
    /* A compiler that is not done before somebody says so. */
    if (strstr(image, "WAIT FOR ME")) {
        pthread_mutex_lock(&fake.lock);
        fake.compiling++;
        pthread_cond_broadcast(&fake.compiles);
        while (!fake.compiled)
            pthread_cond_wait(&fake.compiles, &fake.lock);
        fake.compiling--;
        pthread_mutex_unlock(&fake.lock);
    }
    return CUDA_OK;
}

struct cuda_link_object {
    void *log;
    char *image;
};

static inline cuda_result fake_cuLinkCreate(unsigned count, cuda_jit_option *options, void **values,
                                            cuda_link *link)
{
    (void)options;
    struct cuda_link_object *made = calloc(1, sizeof *made);
    made->log = count ? values[0] : NULL;
    *link = (cuda_link)(void *)made;
    return CUDA_OK;
}

static inline cuda_result fake_cuLinkAddData(cuda_link link, cuda_jit_input type, void *data,
                                             size_t size, const char *name, unsigned count,
                                             cuda_jit_option *options, void **values)
{
    struct cuda_link_object *made = (void *)link;
    (void)type;
    (void)name;
    (void)count;
    (void)options;
    (void)values;
    made->image = malloc(size + sizeof fake_linked);
    sprintf(made->image, "%s%s", fake_linked, (const char *)data);
    return fake_compile(data, made->log != NULL, &made->log);
}

static inline cuda_result fake_cuLinkComplete(cuda_link link, void **image, size_t *size)
{
    struct cuda_link_object *made = (void *)link;
    *image = made->image;
    *size = strlen(made->image) + 1;
    return CUDA_OK;
}

static inline cuda_result fake_cuLinkDestroy(cuda_link link)
{
    struct cuda_link_object *made = (void *)link;
    free(made->image);
    free(made);
    return CUDA_OK;
}

/* The worker's own kernel with so much local memory is no client's load or launch. One of them is
 * loaded beside the one that takes its place. */
static struct fake_local {
    uint64_t bytes;
} fake_locals[2];

static inline bool fake_is_local(const void *object)
{
    return object == &fake_locals[0] || object == &fake_locals[1];
}

static inline cuda_result fake_load_local(cuda_module *module, const char *text)
{
    pthread_mutex_lock(&fake.lock);
    struct fake_local *made = &fake_locals[fake_locals[0].bytes != 0];
    fake.drained_busy += fake_anything_held();
    made->bytes = strtoull(strstr(text, "array[") + strlen("array["), NULL, 10);
    pthread_mutex_unlock(&fake.lock);
    *module = (cuda_module)(void *)made;
    return CUDA_OK;
}

/* Returns the result of the next growth. */
static inline cuda_result fake_launch_local(const struct fake_local *local, cuda_stream stream)
{
    pthread_mutex_lock(&fake.lock);
    struct fake_call *call = fake_note(FAKE_ROOM);
    call->a = local->bytes;
    call->stream = stream;
    fake.drained_busy += fake_anything_held();
    cuda_result result = fake.next_room;
    pthread_mutex_unlock(&fake.lock);
    return result;
}

static inline cuda_result fake_cuModuleLoadDataEx(cuda_module *module, const void *image,
                                                  unsigned count, cuda_jit_option *options,
                                                  void **values)
{
    (void)options;
    const char *array = strstr(image, LOCAL_KERNEL_NAME);
    if (array)
        return fake_load_local(module, array);
    bool linked = strncmp(image, fake_linked, strlen(fake_linked)) == 0;
    cuda_result result = linked ? CUDA_OK : fake_compile(image, count, values);
    if (result != CUDA_OK)
        return result;
    *module = (cuda_module)(void *)strdup((const char *)image + (linked ? strlen(fake_linked) : 0));
    pthread_mutex_lock(&fake.lock);
    fake_note(FAKE_LOAD)->object = *module;
    fake.drained_busy += fake_anything_held();
    fake.live_modules++;
    pthread_mutex_unlock(&fake.lock);
    return CUDA_OK;
}

static inline cuda_result fake_cuModuleUnload(cuda_module module)
{
    if (fake_is_local(module)) {
        ((struct fake_local *)(void *)module)->bytes = 0;
        return CUDA_OK;
    }
    pthread_mutex_lock(&fake.lock);
    fake_note(FAKE_UNLOAD)->object = module;
    fake.drained_busy += fake_anything_held();
    fake.live_modules--;
    fake.unmapped_busy += fake_anything_held();
    pthread_mutex_unlock(&fake.lock);
    free(module);
    return CUDA_OK;
}

static inline cuda_result fake_cuModuleGetFunction(cuda_function *function, cuda_module module,
                                                   const char *name)
{
    if (fake_is_local(module)) {
        *function = (cuda_function)(void *)module;
        return strcmp(name, LOCAL_KERNEL_NAME) == 0 ? CUDA_OK : CUDA_ERR_NOT_FOUND;
    }
    if (strncmp(name, "kernel", 6) != 0)
        return CUDA_ERR_NOT_FOUND;
    *function = (cuda_function)(uintptr_t)(0x1000 + strlen(name));
    return CUDA_OK;
}

static inline cuda_result fake_cuModuleGetGlobal(cuda_device_ptr *ptr, size_t *size,
                                                 cuda_module module, const char *name)
{
    static uint8_t variable[256];
    /* The constant that the worker itself adds to a text. */
    if (strcmp(name, "gpushare0_base") == 0 && strstr((const char *)module, name)) {
        *ptr = (cuda_device_ptr)(uintptr_t)&fake.base;
        *size = sizeof fake.base;
        return CUDA_OK;
    }
    if (strcmp(name, "outside") != 0)
        return CUDA_ERR_NOT_FOUND;
    *ptr = (cuda_device_ptr)(uintptr_t)variable;
    *size = sizeof variable;
    return CUDA_OK;
}

static inline cuda_result fake_cuFuncGetAttribute(int *value, cuda_function_attribute which,
                                                  cuda_function function)
{
    (void)function;
    *value = which == CUDA_FUNC_MAX_THREADS_PER_BLOCK           ? 256
             : which == CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 4096
             : which == CUDA_FUNC_LOCAL_SIZE_BYTES              ? (int)fake.local_bytes
                                                                : 0;
    return CUDA_OK;
}

static inline cuda_result fake_cuFuncSetAttribute(cuda_function function,
                                                  cuda_function_attribute which, int value)
{
    (void)function;
    (void)which;
    pthread_mutex_lock(&fake.lock);
    fake_note(FAKE_ATTRIBUTE)->a = (uint64_t)value;
    pthread_mutex_unlock(&fake.lock);
    return value <= 65536 ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

static inline cuda_result fake_cuFuncGetParamInfo(cuda_function function, size_t index,
                                                  size_t *offset, size_t *size)
{
    (void)function;
    if (index >= fake.param_count)
        return CUDA_ERR_INVALID_VALUE;
    *offset = fake.param_offset[index];
    *size = fake.param_size[index];
    return CUDA_OK;
}

static inline cuda_result fake_cuLaunchKernel(cuda_function function, unsigned gx, unsigned gy,
                                              unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                              unsigned shared, cuda_stream stream, void **params,
                                              void **extra)
{
    (void)params;
    if (fake_is_local(function))
        return fake_launch_local((const struct fake_local *)(const void *)function, stream);
    pthread_mutex_lock(&fake.lock);
    struct fake_call *call = fake_note(FAKE_LAUNCH);
    uint32_t numbers[7] = {gx, gy, gz, bx, by, bz, shared};
    memcpy(call->numbers, numbers, sizeof numbers);
    call->object = function;
    call->stream = stream;
    if (extra) {
        size_t bytes = *(size_t *)extra[3];
        call->c = bytes;
        memcpy(call->parameters, extra[1], bytes < 64 ? bytes : 64);
    }
    cuda_result result = fake.next_launch;
    if (fake.hold && result == CUDA_OK) {
        struct fake_entry entry = {.kind = FAKE_ENTRY_KERNEL};
        memcpy(entry.parameters, call->parameters, sizeof entry.parameters);
        fake_hold_back(stream, entry);
    }
    pthread_mutex_unlock(&fake.lock);
    return result;
}

static inline cuda_result fake_cuOccupancy(int *blocks, cuda_function function, int threads,
                                           size_t shared)
{
    (void)function;
    (void)shared;
    *blocks = 2048 / threads;
    return CUDA_OK;
}

static inline cuda_result fake_cuDeviceGetDevResource(cuda_device device, cuda_dev_resource *out,
                                                      cuda_resource_type type)
{
    (void)device;
    memset(out, 0, sizeof *out);
    if (type == CUDA_RESOURCE_WORKQUEUE_CONFIG && fake.work_queues == 0)
        return CUDA_ERR_INVALID_RESOURCE_TYPE;
    out->type = type;
    if (type == CUDA_RESOURCE_WORKQUEUE_CONFIG) {
        out->workqueue.concurrency = fake.work_queues;
        return CUDA_OK;
    }
    out->sm.sm_count = fake.multiprocessors;
    out->sm.min_partition_size = fake.sm_group;
    out->sm.coscheduled_alignment = fake.sm_group;
    return CUDA_OK;
}

static inline cuda_result fake_cuDevSmResourceSplitByCount(cuda_dev_resource *result,
                                                           unsigned *groups,
                                                           const cuda_dev_resource *input,
                                                           cuda_dev_resource *remaining,
                                                           unsigned flags, unsigned least)
{
    (void)flags;
    if (fake.split != CUDA_OK)
        return fake.split;
    unsigned fits = input->sm.sm_count / least - fake.split_loses;
    if (!result) {
        *groups = fits;
        return CUDA_OK;
    }
    if (*groups > fits)
        *groups = fits;
    for (unsigned i = 0; i < *groups; i++) {
        memset(&result[i], 0, sizeof result[i]);
        result[i].type = CUDA_RESOURCE_SM;
        result[i].sm.sm_count = least;
        result[i].internal[0] = (unsigned char)i;
    }
    if (remaining) {
        unsigned rest = input->sm.sm_count - *groups * least;
        memset(remaining, 0, sizeof *remaining);
        remaining->type = rest ? CUDA_RESOURCE_SM : CUDA_RESOURCE_INVALID;
        remaining->sm.sm_count = rest;
        remaining->internal[0] = 255;
    }
    return CUDA_OK;
}

static inline cuda_result fake_cuDevResourceGenerateDesc(cuda_resource_desc *desc,
                                                         cuda_dev_resource *resources,
                                                         unsigned count)
{
    static __thread struct cuda_resource_desc_object made;
    for (unsigned i = 0; fake.refuse_remainder && count > 1 && i < count; i++)
        if (resources[i].internal[0] == 255)
            return CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
    if (fake.refuse_whole && count == 1 && resources[0].sm.sm_count == fake.multiprocessors)
        return CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
    if (fake.refuse_work_queues && resources[count - 1].type == CUDA_RESOURCE_WORKQUEUE_CONFIG)
        return CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
    made.count = count;
    memcpy(made.resources, resources, count * sizeof *resources);
    *desc = &made;
    return CUDA_OK;
}

static inline cuda_result fake_cuGreenCtxCreate(cuda_green_ctx *green, cuda_resource_desc desc,
                                                cuda_device device, unsigned flags)
{
    (void)device;
    (void)flags;
    if (fake.green_max && fake.live_green >= fake.green_max)
        return CUDA_ERR_OUT_OF_MEMORY;
    *green = calloc(1, sizeof **green);
    (*green)->count = desc->count;
    memcpy((*green)->resources, desc->resources, desc->count * sizeof *desc->resources);
    for (unsigned i = 0; i < desc->count; i++)
        if (desc->resources[i].type == CUDA_RESOURCE_SM)
            (*green)->multiprocessors += desc->resources[i].sm.sm_count;
    pthread_mutex_lock(&fake.lock);
    fake.live_green++;
    fake.drained_busy += fake_anything_held();
    pthread_mutex_unlock(&fake.lock);
    return CUDA_OK;
}

static inline cuda_result fake_cuGreenCtxDestroy(cuda_green_ctx green)
{
    pthread_mutex_lock(&fake.lock);
    fake.live_green--;
    fake.drained_busy += fake_anything_held();
    for (int i = 0; i < fake.stream_count; i++)
        fake.destroyed_busy += fake.streams[i]->alive && fake.streams[i]->green == green;
    pthread_mutex_unlock(&fake.lock);
    free(green);
    return CUDA_OK;
}

static inline cuda_result fake_cuGreenCtxGetDevResource(cuda_green_ctx green,
                                                        cuda_dev_resource *resource,
                                                        cuda_resource_type type)
{
    (void)green;
    (void)resource;
    (void)type;
    return CUDA_ERR_NOT_SUPPORTED;
}

#endif
