/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Modules, functions, launches.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/front/driver_pool.h"
#include "common/cuda/front/front.h"
#include "common/cuda/jit_log.h"
#include "common/cuda/launch_attribute.h"
#include "common/cuda/launch_extra.h"
#include "common/list.h"
#include "common/util.h"
#include "server/softgpu/api/api.h"
#include "server/softgpu/api/cooperative.h"
#include "server/softgpu/api/image.h"
#include "server/softgpu/api/module_object.h"
#include "server/softgpu/decode/module_load.h"
#include "server/softgpu/device/context_lock.h"
#include "server/softgpu/device/cost.h"
#include "server/softgpu/device/enqueue.h"
#include "server/softgpu/device/grid.h"
#include "server/softgpu/exec/description.h"
#include "server/softgpu/exec/module_share.h"
#include "server/softgpu/memory/memory_heap.h"
#include "server/softgpu/report.h"

/* A longer text is decoded by the first look-up, and not by a launch, for which other launches
 * wait: 5 us for each KiB. */
enum { LATE_MAX = 32 << 10 };

/* Objects for reuse, guarded by the lock of context changes. A stale handle finds magic 0, and
 * not freed memory. */
static struct queue unused_modules, unused_functions;

/* Of all devices, guarded likewise: a context that ends takes its modules along. */
static struct list loaded_modules = LIST_INIT(loaded_modules);

static void code_drop(void *owner)
{
    struct code *code = owner;

    if (code && atomic_fetch_sub(&code->refs, 1) == 1) {
        module_destroy(code->module);
        free(code);
    }
}

static cuda_result refuse_memory(struct error *why)
{
    return error_set(why, CUDA_ERR_OUT_OF_MEMORY, "out of host memory");
}

static cuda_result refuse_liar(struct error *why)
{
    return error_set(why, CUDA_ERR_INVALID_IMAGE, "the image is not what it says");
}

/* ---- modules --------------------------------------------------------------------------- */

static cuda_result allocate_variables(struct cuda_module_object *object, uint64_t global_bytes,
                                      uint64_t const_bytes, struct error *why)
{
    const int ordinal = object->device->ordinal;
    cuda_result result = CUDA_OK;

    if (global_bytes > 0)
        result = memory_alloc(ordinal, &object->globals, global_bytes);
    if (result == CUDA_OK && const_bytes > 0)
        result = memory_alloc(ordinal, &object->constants, const_bytes);
    if (result != CUDA_OK)
        return error_set(why, result, "no device memory is left for the module's variables");
    return CUDA_OK;
}

static bool add_function(struct cuda_module_object *object)
{
    struct cuda_function_object *handle =
        QUEUE_TAKE(&unused_functions, struct cuda_function_object, link);

    if (!handle)
        handle = malloc(sizeof(*handle));
    if (!handle)
        return false;
    memset(handle, 0, sizeof(*handle));
    handle->magic = FUNCTION_MAGIC;
    handle->module = object;
    handle->index = object->function_count++;
    description_info(object->description, handle->index, &handle->info);
    atomic_store(&handle->carveout, -1);
    queue_append(&object->functions, &handle->link);
    return true;
}

static cuda_result add_functions(struct cuda_module_object *object, struct error *why)
{
    bool good = true;

    memory_change_begin();
    while (good && object->function_count < object->description->kernel_count)
        good = add_function(object);
    memory_change_end();
    return good ? CUDA_OK : refuse_memory(why);
}

static struct cuda_module_object *module_new(struct device *device)
{
    struct cuda_module_object *object;

    memory_change_begin();
    object = QUEUE_TAKE(&unused_modules, struct cuda_module_object, link);
    if (!object)
        object = malloc(sizeof(*object));
    memory_change_end();
    if (object) {
        memset(object, 0, sizeof(*object));
        object->magic = MODULE_MAGIC;
        object->device = device;
    }
    return object;
}

/* The code remains while launches in flight need it. The variables go at once, and a kernel that
 * still uses them faults. */
static void module_unload(struct cuda_module_object *object)
{
    if (object->globals)
        memory_free(object->globals);
    if (object->constants)
        memory_free(object->constants);
    code_drop(atomic_exchange(&object->code, NULL));
    free(object->text);
    object->text = NULL;
    memory_change_begin();
    struct cuda_function_object *function;
    while ((function = QUEUE_TAKE(&object->functions, struct cuda_function_object, link))) {
        function->magic = 0;
        free(function->note);
        queue_prepend(&unused_functions, &function->link);
    }
    free(object->description);
    object->description = NULL;
    object->magic = 0;
    list_remove(&object->loaded);
    queue_prepend(&unused_modules, &object->link);
    memory_change_end();
}

static struct cuda_module_object *find_loaded(const struct device *device)
{
    struct cuda_module_object *object;

    memory_change_begin();
    LIST_FOR_EACH (object, &loaded_modules, loaded) {
        if (object->device == device)
            break;
    }
    memory_change_end();
    return object;
}

/* Their handles are stale from then on. */
static void unload_modules(struct device *device)
{
    struct cuda_module_object *object;

    while ((object = find_loaded(device)))
        module_unload(object);
}

static void list_loaded(struct cuda_module_object *object)
{
    memory_change_begin();
    list_append(&loaded_modules, &object->loaded);
    atomic_store(&object->device->unload_modules, unload_modules);
    memory_change_end();
}

/* ---- code ------------------------------------------------------------------------------ */

/* Takes the decoded module over, unless it fails. */
static cuda_result adopt_module(struct cuda_module_object *object, struct module *module,
                                struct error *why)
{
    struct code *code = malloc(sizeof(*code));
    struct cuda_function_object *handle;
    size_t index = 0;

    if (!code)
        return refuse_memory(why);
    if (module_place(module, object->globals, object->constants, why) != 0) {
        free(code);
        return why->number;
    }
    atomic_init(&code->refs, 1);
    code->module = module;
    QUEUE_FOR_EACH (handle, &object->functions, link)
        handle->function = module_function_at(module, index++);
    atomic_store(&object->code, code);
    return CUDA_OK;
}

/* As a driver, with the first module that needs one. */
static cuda_result need_heap(const struct device *device, struct error *why)
{
    const cuda_result result = memory_heap_open(device->ordinal);

    if (result != CUDA_OK)
        error_set(why, result,
                  "no device memory is left for the heap of %zu bytes from which its kernels "
                  "allocate; free memory, or set a lower CU_LIMIT_MALLOC_HEAP_SIZE",
                  memory_heap_size(device->ordinal));
    return result;
}

/* With its description, which says all that is not code. */
static cuda_result describe_object(struct cuda_module_object *object, struct error *why)
{
    const struct description *description = object->description;

    DRIVER_TRY(
        allocate_variables(object, description->global_bytes, description->const_bytes, why));
    if (description->allocates)
        DRIVER_TRY(need_heap(object->device, why));
    return add_functions(object, why);
}

static cuda_result load_module(struct cuda_module_object *object, struct module *module,
                               struct error *why)
{
    object->description = description_make(module);
    if (!object->description)
        return refuse_memory(why);
    cuda_result result = describe_object(object, why);
    return result == CUDA_OK ? adopt_module(object, module, why) : result;
}

/* PTX is decoded while it is loaded, as a driver compiles it. */
static cuda_result load_text(const struct image *image, struct cuda_module_object *object,
                             struct error *why)
{
    struct module *module = NULL;
    cuda_result result = image_module(image, &module, why);

    if (result != CUDA_OK)
        return result;
    result = load_module(object, module, why);
    if (result != CUDA_OK)
        module_destroy(module);
    return result;
}

/* The code of a linked image is decoded when it is needed: a driver finds machine code, and has
 * nothing to do here that would take as long. */
static cuda_result load_linked(const struct image *image, struct cuda_module_object *object,
                               struct error *why)
{
    const struct container *linked = &image->container;
    bool good;

    object->description = description_read(linked->description, linked->described, &good);
    if (!good)
        return refuse_liar(why);
    object->text = malloc(linked->length + 1);
    if (!object->description || !object->text)
        return refuse_memory(why);
    memcpy(object->text, linked->text, linked->length);
    object->length = linked->length;
    return describe_object(object, why);
}

/* Whether the image said the truth: anybody can write one. */
static cuda_result check_description(const struct cuda_module_object *object,
                                     const struct module *module, struct error *why)
{
    struct description *truth = description_make(module);
    if (!truth)
        return refuse_memory(why);
    const size_t bytes = description_bytes(truth);
    bool same = bytes == description_bytes(object->description) &&
                memcmp(truth, object->description, bytes) == 0;
    free(truth);
    return same ? CUDA_OK : refuse_liar(why);
}

static cuda_result decode_linked(struct cuda_module_object *object, struct error *why)
{
    const size_t length = object->length;
    struct module *module = module_share_find(object->text, length);
    cuda_result result = CUDA_OK;

    if (!module) {
        result = module_load(object->text, length, &module, why);
        if (result != CUDA_OK)
            return result;
        module = module_share_offer(object->text, length, module);
    }
    result = check_description(object, module, why);
    if (result == CUDA_OK)
        result = adopt_module(object, module, why);
    if (result != CUDA_OK) {
        module_destroy(module);
        return result;
    }
    free(object->text);
    object->text = NULL;
    return CUDA_OK;
}

/* For a launch, and for the values of variables. */
static cuda_result need_code(struct cuda_module_object *object)
{
    static pthread_mutex_t decoding = PTHREAD_MUTEX_INITIALIZER;
    struct error why = {0};
    cuda_result result = CUDA_OK;

    if (atomic_load(&object->code))
        return CUDA_OK;
    pthread_mutex_lock(&decoding);
    if (!atomic_load(&object->code))
        result = decode_linked(object, &why);
    pthread_mutex_unlock(&decoding);
    if (result != CUDA_OK)
        report("module not usable: %s", why.text);
    return result;
}

/* ---- loading --------------------------------------------------------------------------- */

static cuda_result load_object(const void *bytes, struct cuda_module_object *object,
                               struct error *why)
{
    struct image image;
    cuda_result result = image_open(&image, bytes, why);

    if (result == CUDA_OK)
        result = image.compiled ? load_linked(&image, object, why) : load_text(&image, object, why);
    image_close(&image);
    return result;
}

static cuda_result load_new(struct device *device, const struct module_request *request,
                            cuda_module *module, struct error *why)
{
    struct cuda_module_object *object = module_new(device);
    cuda_result result;

    if (!object)
        return refuse_memory(why);
    object->standing = request->standing;
    context_lock_call(device, CONTEXT_CALL_MODULE_LOAD);
    cost_pay_load();
    result = load_object(request->image, object, why);
    if (result == CUDA_OK)
        list_loaded(object);
    context_lock_release(device);
    if (result == CUDA_OK)
        *module = object;
    else
        module_unload(object);
    return result;
}

/* If memory is short, the pools' freed blocks are given back first, without the context's lock:
 * giving back takes it. */
cuda_result module_object_load(struct device *device, const struct module_request *request,
                               cuda_module *module)
{
    struct error why = {0};
    cuda_result result = load_new(device, request, module, &why);

    if (result == CUDA_ERR_OUT_OF_MEMORY && driver_pool_keeps() &&
        driver_pool_give_back(device_visible(device->ordinal))) {
        why = (struct error){0};
        result = load_new(device, request, module, &why);
    }
    jit_log_write(request->count, request->options, request->values,
                  result == CUDA_OK ? "" : why.text);
    if (result != CUDA_OK)
        report("module not loaded: %s", why.text);
    return result;
}

cuda_result cuModuleLoadDataEx(cuda_module *module, const void *image, unsigned count,
                               cuda_jit_option *options, void **values)
{
    const struct module_request request = {
        .image = image, .count = count, .options = options, .values = values};
    struct device *device;

    DRIVER_TRY(api_current(&device));
    if (!module || !image || (count > 0 && (!options || !values)))
        return CUDA_ERR_INVALID_VALUE;
    return module_object_load(device, &request, module);
}

cuda_result cuModuleLoadData(cuda_module *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

static cuda_result find_module(cuda_module module)
{
    struct device *device;

    if (module && module->magic == MODULE_MAGIC && module->standing)
        return front_check();
    DRIVER_TRY(api_current(&device));
    return module && module->magic == MODULE_MAGIC ? CUDA_OK : CUDA_ERR_INVALID_HANDLE;
}

cuda_result cuModuleUnload(cuda_module module)
{
    struct device *device;

    DRIVER_TRY(find_module(module));
    device = module->device;
    context_lock_call(device, CONTEXT_CALL_MODULE_UNLOAD);
    module_unload(module);
    context_lock_release(device);
    return CUDA_OK;
}

cuda_result cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name)
{
    struct cuda_function_object *found;

    DRIVER_TRY(find_module(module));
    if (!function || !name)
        return CUDA_ERR_INVALID_VALUE;
    if (module->length > LATE_MAX)
        DRIVER_TRY(need_code(module));
    QUEUE_FOR_EACH (found, &module->functions, link)
        if (strcmp(found->info.name, name) == 0)
            break;
    *function = found;
    return found ? CUDA_OK : CUDA_ERR_NOT_FOUND;
}

cuda_result cuModuleGetFunctionCount(unsigned *count, cuda_module module)
{
    DRIVER_TRY(find_module(module));
    if (!count)
        return CUDA_ERR_INVALID_VALUE;
    *count = module->function_count;
    return CUDA_OK;
}

cuda_result cuModuleEnumerateFunctions(cuda_function *functions, unsigned count, cuda_module module)
{
    struct cuda_function_object *function;

    DRIVER_TRY(find_module(module));
    if (!functions)
        return CUDA_ERR_INVALID_VALUE;
    unsigned used = 0;
    QUEUE_FOR_EACH (function, &module->functions, link) {
        if (used == count)
            break;
        functions[used++] = function;
    }
    return CUDA_OK;
}

/* A module's variables lie in one block. It becomes memory of both sides when a managed one of them
 * is found first, which the program does before it uses it. */
cuda_result front_module_variable(cuda_module module, const char *name, cuda_device_ptr *ptr,
                                  size_t *size, bool *managed)
{
    DRIVER_TRY(find_module(module));
    if (!name)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(need_code(module));
    const struct module *code = atomic_load(&module->code)->module;
    if (module_variable(code, name, ptr, size) != 0)
        return CUDA_ERR_NOT_FOUND;
    *managed = module_variable_managed(code, name);
    if (*managed)
        memory_manage(module->globals);
    return CUDA_OK;
}

cuda_result cuModuleGetGlobal_v2(cuda_device_ptr *ptr, size_t *size, cuda_module module,
                                 const char *name)
{
    cuda_device_ptr address;
    size_t bytes;
    bool managed;

    if (!ptr && !size)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_module_variable(module, name, &address, &bytes, &managed));
    if (ptr)
        *ptr = address;
    if (size)
        *size = bytes;
    return CUDA_OK;
}

/* ---- launches ----------------------------------------------------------------------------------
 */

static cuda_result check_shape(const struct cuda_function_object *function,
                               const struct launch *launch)
{
    const uint32_t *grid = launch->grid, *threads = launch->threads;
    uint64_t count;

    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || threads[0] == 0 || threads[1] == 0 ||
        threads[2] == 0 || grid[0] > DEVICE_GRID_X || grid[1] > DEVICE_GRID_YZ ||
        grid[2] > DEVICE_GRID_YZ || threads[0] > DEVICE_BLOCK_THREADS ||
        threads[1] > DEVICE_BLOCK_THREADS || threads[2] > DEVICE_BLOCK_Z)
        return CUDA_ERR_INVALID_VALUE;
    count = (uint64_t)threads[0] * threads[1] * threads[2];
    /* Of the kernel it is what .maxntid says: no kernel lacks registers here. */
    if (count > DEVICE_BLOCK_THREADS || count > function->info.max_threads)
        return CUDA_ERR_INVALID_VALUE;
    if (launch->dynamic_shared_bytes > module_object_dynamic_limit(function) ||
        launch->dynamic_shared_bytes + launch->static_shared_bytes >
            device_profile()->block_shared_optin_bytes)
        return CUDA_ERR_INVALID_VALUE;
    if (launch->param_bytes > DEVICE_PARAM_BYTES)
        return CUDA_ERR_INVALID_VALUE;
    return CUDA_OK;
}

/* Parameters given one by one, laid out as the kernel expects them. */
static cuda_result gather_params(const struct cuda_function_object *function, void **params,
                                 uint8_t *buffer)
{
    memset(buffer, 0, function->info.param_bytes);
    for (uint32_t i = 0; i < function->info.param_count; i++) {
        uint32_t offset, bytes;

        if (!params[i] || function_param(function->function, i, &offset, &bytes) != 0)
            return CUDA_ERR_INVALID_VALUE;
        memcpy(buffer + offset, params[i], bytes);
    }
    return CUDA_OK;
}

/* The first kernel that needs more local memory than any before it makes the driver allocate it for
 * all threads of the device, or of its green context. It is not given back. */
static void grow_local_memory(const struct stream *stream, size_t bytes)
{
    struct device *device = stream->device;
    atomic_size_t *room = stream->green && device_settings()->local_apart
                              ? api_green_local_bytes(stream->green)
                              : &device->local_bytes;

    if (bytes <= atomic_load_explicit(&device->local_bytes, memory_order_relaxed) ||
        bytes <= atomic_load_explicit(room, memory_order_relaxed))
        return;
    context_lock_call(device, CONTEXT_CALL_GROW_LOCAL);
    if (bytes > atomic_load_explicit(room, memory_order_relaxed))
        atomic_store_explicit(room, bytes, memory_order_relaxed);
    context_lock_release(device);
}

static cuda_result submit_kernel(struct stream *stream, const struct launch *launch)
{
    struct operation *op = stream_operation_create(OPERATION_KERNEL);

    if (op)
        op->grid = grid_create(launch);
    if (!op || !op->grid) {
        launch->release(launch->owner);
        stream_operation_unref(op);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    return enqueue_operation(stream, op);
}

/* A launch as far as it is known without its function and its parameters. */
static cuda_result launch_kernel(cuda_function function, struct launch launch, cuda_stream handle,
                                 void **params, void **extra, bool cooperative)
{
    uint8_t buffer[DEVICE_PARAM_BYTES];
    struct stream *stream;

    DRIVER_TRY(module_object_check_function(function));
    DRIVER_TRY(api_stream(handle, &stream));
    if (stream->device != function->module->device)
        return CUDA_ERR_INVALID_HANDLE;
    DRIVER_TRY(need_code(function->module));
    launch.device = stream->device->ordinal;
    launch.function = function->function;
    launch.static_shared_bytes = function->info.static_shared_bytes;
    launch.params = buffer;
    launch.param_bytes = function->info.param_bytes;
    launch.release = code_drop;
    launch.owner = atomic_load(&function->module->code);
    DRIVER_TRY(check_shape(function, &launch));
    if (params && extra)
        return CUDA_ERR_INVALID_VALUE;
    if (extra)
        DRIVER_TRY(launch_extra_read(extra, launch.param_bytes, &launch.params));
    else if (params)
        DRIVER_TRY(gather_params(function, params, buffer));
    else if (launch.param_bytes > 0)
        return CUDA_ERR_INVALID_VALUE;
    if (cooperative)
        DRIVER_TRY(cooperative_prepare(stream, &launch));
    atomic_fetch_add(&atomic_load(&function->module->code)->refs, 1);
    grow_local_memory(stream, function->info.local_bytes);
    return submit_kernel(stream, &launch);
}

cuda_result cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y,
                           unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, cuda_stream stream, void **params, void **extra)
{
    const struct launch launch = {.grid = {grid_x, grid_y, grid_z},
                                  .threads = {block_x, block_y, block_z},
                                  .dynamic_shared_bytes = shared_bytes};

    return launch_kernel(function, launch, stream, params, extra, false);
}

cuda_result cuLaunchCooperativeKernel(cuda_function function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared_bytes, cuda_stream stream,
                                      void **params)
{
    const struct launch launch = {.grid = {grid_x, grid_y, grid_z},
                                  .threads = {block_x, block_y, block_z},
                                  .dynamic_shared_bytes = shared_bytes};

    return launch_kernel(function, launch, stream, params, NULL, true);
}

cuda_result cuLaunchKernelEx(const struct cuda_launch_config *config, cuda_function function,
                             void **params, void **extra)
{
    struct launch launch;
    bool cooperative;

    if (!config)
        return CUDA_ERR_INVALID_VALUE;
    /* No cache, so no access window. */
    DRIVER_TRY(launch_attribute_read(config, 0, &cooperative));
    launch = (struct launch){
        .grid = {config->grid.x, config->grid.y, config->grid.z},
        .threads = {config->block.x, config->block.y, config->block.z},
        /* The driver's struct has 32 bits of shared memory, and padding behind them. */
        .dynamic_shared_bytes = (uint32_t)config->dynamic_shared_bytes,
    };
    return launch_kernel(function, launch, config->stream, params, extra, cooperative);
}
