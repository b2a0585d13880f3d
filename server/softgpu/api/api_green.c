/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Green contexts: resources, descriptors, contexts, and their streams.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/softgpu/api/api.h"
#include "common/cuda/front/driver_context.h"
#include "common/list.h"
#include "common/util.h"
#include "server/softgpu/device/context_lock.h"
#include "server/softgpu/device/cost.h"
#include "server/softgpu/device/hardware_queue.h"
#include "server/softgpu/report.h"

/* Our data in the part of a resource that belongs to the driver. */
enum origin { FROM_DEVICE = 1, FROM_SPLIT, FROM_CONTEXT };

struct internal {
    uint32_t magic;
    uint16_t device;
    uint16_t origin;
    uint64_t split; /* which call made it */
    struct sm_set sms;
    /* checksum of all members before it: a resource that a program made or changed itself is
     * refused */
    uint32_t check;
};

_Static_assert(sizeof(struct internal) <= sizeof(((cuda_dev_resource *)0)->internal), "fits");

enum { RESOURCE_MAGIC = 0x47525343 };

struct cuda_resource_desc_object {
    unsigned magic;
    struct queue_link link;
    unsigned device;
    struct sm_set sms;
    unsigned queues; /* of its own; 0: the device's, which all share */
};

struct cuda_green_ctx_object {
    atomic_uint magic; /* 0 when destroyed; looked at without a lock */
    struct queue_link link;
    struct device *device;
    struct sm_set sms;
    struct hardware_queues queues; /* its own; count 0: none */
    atomic_size_t local_bytes;
    unsigned streams; /* not yet destroyed; those of a destroyed context still point here */
};

/* All objects ever made, guarded by the lock of context changes. CUDA has no call that frees a
 * descriptor, so equal descriptors are one object. A destroyed context without streams is used
 * again. */
static struct queue descs;  /* of cuda_resource_desc_object */
static struct queue greens; /* of cuda_green_ctx_object */

static atomic_ullong last_split;

/* FNV-1a. */
static uint32_t resource_checksum(const struct internal *internal)
{
    const unsigned char *bytes = (const unsigned char *)internal;
    uint32_t sum = 2166136261u;

    for (size_t i = 0; i < offsetof(struct internal, check); i++)
        sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

static void make_resource(cuda_dev_resource *resource, const struct device *device,
                          enum origin origin, uint64_t split, const struct sm_set *sms,
                          unsigned alignment)
{
    struct internal internal;

    memset(resource, 0, sizeof(*resource));
    memset(&internal, 0, sizeof(internal));
    internal.magic = RESOURCE_MAGIC;
    internal.device = (uint16_t)device->ordinal;
    internal.origin = (uint16_t)origin;
    internal.split = split;
    internal.sms = *sms;
    internal.check = resource_checksum(&internal);
    memcpy(resource->internal, &internal, sizeof(internal));
    resource->type = CUDA_RESOURCE_SM;
    resource->sm.sm_count = device_sm_set_count(sms);
    resource->sm.min_partition_size = alignment;
    resource->sm.coscheduled_alignment = alignment;
}

static void make_workqueue(cuda_dev_resource *resource, const struct device *device)
{
    memset(resource, 0, sizeof(*resource));
    resource->type = CUDA_RESOURCE_WORKQUEUE_CONFIG;
    resource->workqueue = (cuda_workqueue_resource){
        .device = (cuda_device)device->ordinal,
        .concurrency = (unsigned)device_settings()->connections,
        .scope = CUDA_WORKQUEUE_SCOPE_DEVICE_CONTEXT,
    };
}

/* The number of queues that the context is to have for itself, 0 for none. */
static cuda_result read_workqueue(const cuda_dev_resource *resource, unsigned device,
                                  unsigned *queues)
{
    const cuda_workqueue_resource *config = &resource->workqueue;

    if (!device_settings()->work_queues)
        return CUDA_ERR_INVALID_RESOURCE_TYPE;
    if (config->device < 0 || (unsigned)config->device != device || config->concurrency == 0 ||
        (config->scope != CUDA_WORKQUEUE_SCOPE_DEVICE_CONTEXT &&
         config->scope != CUDA_WORKQUEUE_SCOPE_GREEN_BALANCED))
        return CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
    *queues = config->scope == CUDA_WORKQUEUE_SCOPE_GREEN_BALANCED
                  ? min(config->concurrency, (unsigned)device_settings()->connections)
                  : 0;
    return CUDA_OK;
}

static cuda_result read_sm_resource(const cuda_dev_resource *resource, struct internal *internal)
{
    if (resource->type != CUDA_RESOURCE_SM)
        return CUDA_ERR_INVALID_RESOURCE_TYPE;
    memcpy(internal, resource->internal, sizeof(*internal));
    if (internal->magic != RESOURCE_MAGIC || internal->check != resource_checksum(internal) ||
        internal->device >= device_settings()->devices)
        return CUDA_ERR_INVALID_VALUE;
    return CUDA_OK;
}

static cuda_result check_green(void)
{
    DRIVER_TRY(device_check());
    return device_lacks_green_contexts() ? CUDA_ERR_NOT_SUPPORTED : CUDA_OK;
}

cuda_result cuDeviceGetDevResource(cuda_device ordinal, cuda_dev_resource *resource,
                                   cuda_resource_type type)
{
    struct device *device;

    DRIVER_TRY(check_green());
    device = device_at(ordinal);
    if (!device)
        return CUDA_ERR_INVALID_DEVICE;
    if (!resource)
        return CUDA_ERR_INVALID_VALUE;
    if (type == CUDA_RESOURCE_WORKQUEUE_CONFIG && device_settings()->work_queues) {
        make_workqueue(resource, device);
        return CUDA_OK;
    }
    if (type != CUDA_RESOURCE_SM)
        return CUDA_ERR_INVALID_RESOURCE_TYPE;
    make_resource(resource, device, FROM_DEVICE, 0, &device->all, device_profile()->sm_alignment);
    return CUDA_OK;
}

/* Takes the next `count` multiprocessors out of *from. */
static struct sm_set take_sms(struct sm_set *from, unsigned count)
{
    struct sm_set taken = {{0}};

    for (size_t i = 0; i < SETTINGS_MAX_SMS / 64; i++)
        while (count > 0 && from->words[i]) {
            uint64_t lowest = from->words[i] & -from->words[i];

            from->words[i] ^= lowest;
            taken.words[i] |= lowest;
            count--;
        }
    return taken;
}

cuda_result cuDevSmResourceSplitByCount(cuda_dev_resource *result, unsigned *groups,
                                        const cuda_dev_resource *input,
                                        cuda_dev_resource *remaining, unsigned flags,
                                        unsigned min_count)
{
    const unsigned known =
        CUDA_SM_SPLIT_IGNORE_SM_COSCHEDULING | CUDA_SM_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    unsigned alignment = flags & CUDA_SM_SPLIT_IGNORE_SM_COSCHEDULING
                             ? device_profile()->sm_alignment_loose
                             : device_profile()->sm_alignment;
    struct internal internal;
    struct device *device;
    unsigned size, count;
    uint64_t split;

    DRIVER_TRY(check_green());
    if (!groups || !input || (flags & ~known))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(read_sm_resource(input, &internal));
    if (internal.origin == FROM_SPLIT)
        return CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
    if (min_count > input->sm.sm_count || device_sm_set_count(&internal.sms) != input->sm.sm_count)
        return CUDA_ERR_INVALID_VALUE;
    device = device_numbered(internal.device);
    size = min_count == 0 ? alignment : (min_count + alignment - 1) / alignment * alignment;
    count = input->sm.sm_count / size;
    if (internal.origin == FROM_DEVICE && size == device_profile()->sm_alignment &&
        alignment == size && count > device_profile()->sm_groups_lost)
        count -= device_profile()->sm_groups_lost;
    if (result && count > *groups)
        count = *groups;
    *groups = count;
    if (!result)
        return CUDA_OK;
    split = atomic_fetch_add(&last_split, 1) + 1;
    for (unsigned i = 0; i < count; i++) {
        struct sm_set sms = take_sms(&internal.sms, size);

        make_resource(&result[i], device, FROM_SPLIT, split, &sms, alignment);
    }
    if (remaining && device_sm_set_count(&internal.sms) > 0)
        make_resource(remaining, device, FROM_SPLIT, split, &internal.sms,
                      device_profile()->sm_alignment_loose);
    else if (remaining)
        memset(remaining, 0, sizeof(*remaining));
    return CUDA_OK;
}

static struct cuda_resource_desc_object *find_desc(unsigned device, const struct sm_set *sms,
                                                   unsigned queues)
{
    struct cuda_resource_desc_object *desc;

    QUEUE_FOR_EACH (desc, &descs, link)
        if (desc->device == device && desc->queues == queues &&
            memcmp(&desc->sms, sms, sizeof(*sms)) == 0)
            return desc;
    desc = malloc(sizeof(*desc));
    if (desc) {
        *desc = (struct cuda_resource_desc_object){
            .magic = DESC_MAGIC, .device = device, .sms = *sms, .queues = queues};
        queue_prepend(&descs, &desc->link);
    }
    return desc;
}

cuda_result cuDevResourceGenerateDesc(cuda_resource_desc *desc, cuda_dev_resource *resources,
                                      unsigned count)
{
    struct internal first, next;
    unsigned queues = 0;

    DRIVER_TRY(check_green());
    if (!desc || !resources || count == 0)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(read_sm_resource(&resources[0], &first));
    for (unsigned i = 1; i < count; i++) {
        /* One configuration of queues, which stands last. */
        if (resources[i].type == CUDA_RESOURCE_WORKQUEUE_CONFIG && i == count - 1) {
            DRIVER_TRY(read_workqueue(&resources[i], first.device, &queues));
            break;
        }
        DRIVER_TRY(read_sm_resource(&resources[i], &next));
        if (next.device != first.device || first.origin != FROM_SPLIT ||
            next.origin != FROM_SPLIT || next.split != first.split)
            return CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
        for (size_t j = 0; j < SETTINGS_MAX_SMS / 64; j++) {
            if (first.sms.words[j] & next.sms.words[j])
                return CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
            first.sms.words[j] |= next.sms.words[j];
        }
    }
    memory_change_begin();
    *desc = find_desc(first.device, &first.sms, queues);
    memory_change_end();
    return *desc ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

/* The primary context is one of them. A destroyed green context counts while it has streams. */
static unsigned count_subcontexts(const struct device *device)
{
    const struct cuda_green_ctx_object *green;
    unsigned count = 1;

    QUEUE_FOR_EACH (green, &greens, link)
        count += green->device == device && (green->magic != 0 || green->streams > 0);
    return count;
}

static bool subcontexts_used_up(const struct device *device)
{
    const uint64_t most = device_settings()->subcontexts;

    return most > 0 && count_subcontexts(device) >= most;
}

static struct cuda_green_ctx_object *unused_green(void)
{
    struct cuda_green_ctx_object *green;

    QUEUE_FOR_EACH (green, &greens, link)
        if (green->magic == 0 && green->streams == 0)
            return green;
    green = calloc(1, sizeof(*green));
    if (green)
        queue_prepend(&greens, &green->link);
    return green;
}

static struct hardware_queues *queues_of(struct cuda_green_ctx_object *green)
{
    return green->queues.count > 0 ? &green->queues : &green->device->queues;
}

cuda_result cuGreenCtxCreate(cuda_green_ctx *green, cuda_resource_desc desc, cuda_device ordinal,
                             unsigned flags)
{
    struct cuda_green_ctx_object *made;
    struct device *device;
    cuda_context primary;

    DRIVER_TRY(check_green());
    device = device_at(ordinal);
    if (!device)
        return CUDA_ERR_INVALID_DEVICE;
    if (!green || !desc || desc->magic != DESC_MAGIC || desc->device != device->ordinal ||
        flags != CUDA_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERR_INVALID_VALUE;
    if (device_settings()->green_error)
        return (cuda_result)device_settings()->green_error;
    /* It keeps the primary context, on which it stands. */
    DRIVER_TRY(driver_context_primary(ordinal, &primary));
    DRIVER_TRY(driver_context_retain(primary));
    context_lock_call(device, CONTEXT_CALL_GREEN_CREATE);
    cost_pay_creation();
    memory_change_begin();
    engine_lock();
    made = subcontexts_used_up(device) ? NULL : unused_green();
    if (made) {
        made->magic = GREEN_MAGIC;
        made->device = device;
        made->sms = desc->sms;
        made->queues = (struct hardware_queues){.count = desc->queues};
        atomic_store_explicit(&made->local_bytes, 0, memory_order_relaxed);
        /* Nobody can use the default stream of a green context that is never current, but it is
         * there, and has a queue. */
        hardware_queue_assign(queues_of(made), NULL);
    }
    engine_unlock();
    memory_change_end();
    context_lock_release(device);
    *green = made;
    if (made)
        return CUDA_OK;
    (void)driver_context_release(primary, false);
    return CUDA_ERR_OUT_OF_MEMORY;
}

bool api_green_alive(const struct cuda_green_ctx_object *green)
{
    return atomic_load_explicit(&green->magic, memory_order_relaxed) == GREEN_MAGIC;
}

void api_green_stream_gone(struct cuda_green_ctx_object *green)
{
    green->streams--;
}

atomic_size_t *api_green_local_bytes(struct cuda_green_ctx_object *green)
{
    return &green->local_bytes;
}

static cuda_result find_green(cuda_green_ctx green)
{
    DRIVER_TRY(check_green());
    if (!green)
        return CUDA_ERR_INVALID_CONTEXT;
    return api_green_alive(green) ? CUDA_OK : CUDA_ERR_CONTEXT_IS_DESTROYED;
}

cuda_result cuGreenCtxDestroy(cuda_green_ctx green)
{
    struct device *device;
    cuda_context primary;

    DRIVER_TRY(find_green(green));
    device = green->device;
    context_lock_call(device, CONTEXT_CALL_GREEN_DESTROY);
    memory_change_begin();
    engine_lock();
    atomic_store_explicit(&green->magic, 0, memory_order_relaxed);
    engine_unlock();
    memory_change_end();
    context_lock_release(device);
    /* Unless a reset has ended the primary context already. */
    if (driver_context_primary(device_visible(device->ordinal), &primary) == CUDA_OK)
        (void)driver_context_release(primary, false);
    return CUDA_OK;
}

cuda_result cuGreenCtxStreamCreate(cuda_stream *handle, cuda_green_ctx green, unsigned flags,
                                   int priority)
{
    struct stream *stream;

    DRIVER_TRY(find_green(green));
    if (!handle || flags != CUDA_STREAM_NON_BLOCKING)
        return CUDA_ERR_INVALID_VALUE;
    context_lock_call(green->device, CONTEXT_CALL_GREEN_STREAM);
    cost_pay_creation();
    engine_lock();
    stream = stream_create(green->device,
                           (struct stream_place){.sms = &green->sms, .queues = queues_of(green)},
                           flags, priority);
    if (stream) {
        stream->green = green;
        green->streams++;
    }
    engine_unlock();
    context_lock_release(green->device);
    if (!stream)
        return CUDA_ERR_OUT_OF_MEMORY;
    *handle = (cuda_stream)stream;
    return CUDA_OK;
}

cuda_result cuGreenCtxGetDevResource(cuda_green_ctx green, cuda_dev_resource *resource,
                                     cuda_resource_type type)
{
    DRIVER_TRY(find_green(green));
    if (!resource)
        return CUDA_ERR_INVALID_VALUE;
    if (type != CUDA_RESOURCE_SM)
        return CUDA_ERR_INVALID_RESOURCE_TYPE;
    make_resource(resource, green->device, FROM_CONTEXT, 0, &green->sms,
                  device_profile()->sm_alignment);
    return CUDA_OK;
}
