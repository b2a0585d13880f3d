/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Memory of both sides. It lies where host and device reach it at one address, so no page ever
 * moves. Advice has no effect, and can be read back.
 */
#include <stdint.h>

#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"
#include "common/cuda/managed_advice.h"

enum {
    ATTACH_GLOBAL = 1,
    ATTACH_HOST = 2,
    ATTACH_SINGLE = 4,
    DEVICE_CPU = -1,
    DEVICE_INVALID = -2,
    LOCATION_NUMA = 3, /* and the next one, of the caller's own */
};

cuda_result cuMemAllocManaged(cuda_device_ptr *ptr, size_t size, unsigned flags)
{
    cuda_context context;
    if (!ptr || !size || (flags != ATTACH_GLOBAL && flags != ATTACH_HOST))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_check(NULL, &context));
    return front_managed_alloc(ptr, size);
}

/* A range within one managed allocation of the current context. */
static cuda_result find_range(cuda_device_ptr ptr, size_t size, struct managed_range *range)
{
    cuda_context context;
    struct front_memory found;
    DRIVER_TRY(driver_context_check(NULL, &context));
    if (!size || !front_memory_find(ptr, &found) || found.kind != FRONT_MANAGED ||
        found.device != context->device || size > found.bytes - (ptr - found.address))
        return CUDA_ERR_INVALID_VALUE;
    *range = (struct managed_range){ptr, ptr + size, found.id};
    return CUDA_OK;
}

static cuda_result check_place(cuda_mem_location place)
{
    cuda_device device;
    if (place.type == CUDA_MEM_LOCATION_DEVICE)
        return cuDeviceGet(&device, place.id);
    return place.type == CUDA_MEM_LOCATION_HOST || (int)place.type == LOCATION_NUMA ||
                   (int)place.type == LOCATION_NUMA + 1
               ? CUDA_OK
               : CUDA_ERR_INVALID_VALUE;
}

static cuda_mem_location place_of(cuda_device device)
{
    return device == DEVICE_CPU ? (cuda_mem_location){CUDA_MEM_LOCATION_HOST, 0}
                                : (cuda_mem_location){CUDA_MEM_LOCATION_DEVICE, device};
}

static cuda_result note(const struct managed_range *range, enum managed_advice_kind kind,
                        cuda_mem_location value)
{
    return managed_advice_note(range, (struct managed_topic){.kind = kind}, value) < 0
               ? CUDA_ERR_OUT_OF_MEMORY
               : CUDA_OK;
}

/* The memory is where both sides reach it already. */
cuda_result cuMemPrefetchAsync_v2(cuda_device_ptr ptr, size_t size, cuda_mem_location place,
                                  unsigned flags, cuda_stream stream)
{
    struct front_stream found;
    struct managed_range range;
    if (flags)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(stream, &found));
    DRIVER_TRY(check_place(place));
    DRIVER_TRY(find_range(ptr, size, &range));
    return note(&range, ADVICE_PREFETCH, place);
}

cuda_result cuMemPrefetchAsync(cuda_device_ptr ptr, size_t size, cuda_device device,
                               cuda_stream stream)
{
    return cuMemPrefetchAsync_v2(ptr, size, place_of(device), 0, stream);
}

/* CU_MEM_ADVISE_ */
enum {
    SET_READ_MOSTLY = 1,
    UNSET_READ_MOSTLY,
    SET_PREFERRED,
    UNSET_PREFERRED,
    SET_ACCESSED,
    UNSET_ACCESSED,
};

static cuda_result note_access(const struct managed_range *range, cuda_mem_location place, bool may)
{
    const struct managed_topic topic = {
        ADVICE_ACCESSED, place.type == CUDA_MEM_LOCATION_DEVICE ? place.id : DEVICE_CPU};
    const cuda_mem_location value = {may ? place.type : 0, 0};
    return managed_advice_note(range, topic, value) < 0 ? CUDA_ERR_OUT_OF_MEMORY : CUDA_OK;
}

cuda_result cuMemAdvise_v2(cuda_device_ptr ptr, size_t size, int advice, cuda_mem_location place)
{
    const cuda_mem_location nothing = {0}, something = {CUDA_MEM_LOCATION_DEVICE, 0};
    struct managed_range range;
    if (advice == SET_PREFERRED || advice == SET_ACCESSED || advice == UNSET_ACCESSED)
        DRIVER_TRY(check_place(place));
    DRIVER_TRY(find_range(ptr, size, &range));
    switch (advice) {
    case SET_READ_MOSTLY:
    case UNSET_READ_MOSTLY:
        return note(&range, ADVICE_READ_MOSTLY, advice == SET_READ_MOSTLY ? something : nothing);
    case SET_PREFERRED:
    case UNSET_PREFERRED:
        return note(&range, ADVICE_PREFERRED, advice == SET_PREFERRED ? place : nothing);
    case SET_ACCESSED:
    case UNSET_ACCESSED:
        return note_access(&range, place, advice == SET_ACCESSED);
    default:
        return CUDA_ERR_INVALID_VALUE;
    }
}

cuda_result cuMemAdvise(cuda_device_ptr ptr, size_t size, int advice, cuda_device device)
{
    return cuMemAdvise_v2(ptr, size, advice, place_of(device));
}

/* Attaching limits who may use the memory when; both sides always may here. */
cuda_result cuStreamAttachMemAsync(cuda_stream stream, cuda_device_ptr ptr, size_t size,
                                   unsigned flags)
{
    struct front_stream found;
    struct managed_range range;
    DRIVER_TRY(front_stream_find(stream, &found));
    if (flags != ATTACH_GLOBAL && flags != ATTACH_HOST && flags != ATTACH_SINGLE)
        return CUDA_ERR_INVALID_VALUE;
    return find_range(ptr, size ? size : 1, &range);
}

/* ---- attributes of ranges ---- */

/* CU_MEM_RANGE_ATTRIBUTE_ */
enum {
    RANGE_READ_MOSTLY = 1,
    RANGE_PREFERRED,
    RANGE_ACCESSED,
    RANGE_PREFETCH,
    RANGE_PREFERRED_TYPE,
    RANGE_PREFERRED_ID,
    RANGE_PREFETCH_TYPE,
    RANGE_PREFETCH_ID,
};

/* A place as a device's number. */
static int number_of(cuda_mem_location place)
{
    return place.type == CUDA_MEM_LOCATION_DEVICE ? place.id
           : place.type == CUDA_MEM_LOCATION_HOST ? DEVICE_CPU
                                                  : DEVICE_INVALID;
}

/* Those who may access the whole range, devices first; the rest of the numbers is empty. */
static void list_accesses(const struct managed_range *range, int *numbers, size_t count)
{
    size_t listed = 0;
    for (int i = 0; i <= front_device_count() && listed < count; i++) {
        const int device = i < front_device_count() ? i : DEVICE_CPU;
        if (managed_advice_find(range, (struct managed_topic){ADVICE_ACCESSED, device}).type)
            numbers[listed++] = device;
    }
    while (listed < count)
        numbers[listed++] = DEVICE_INVALID;
}

static cuda_result range_attribute(int *numbers, size_t size, int attribute,
                                   const struct managed_range *range)
{
    const struct managed_topic of_reading = {.kind = ADVICE_READ_MOSTLY},
                               of_place = {.kind = ADVICE_PREFERRED},
                               of_prefetch = {.kind = ADVICE_PREFETCH};
    if (!size || size % sizeof *numbers || (attribute != RANGE_ACCESSED && size != sizeof *numbers))
        return CUDA_ERR_INVALID_VALUE;
    switch (attribute) {
    case RANGE_READ_MOSTLY:
        *numbers = managed_advice_find(range, of_reading).type != 0;
        return CUDA_OK;
    case RANGE_PREFERRED:
        *numbers = number_of(managed_advice_find(range, of_place));
        return CUDA_OK;
    case RANGE_PREFETCH:
        *numbers = number_of(managed_advice_find(range, of_prefetch));
        return CUDA_OK;
    case RANGE_PREFERRED_TYPE:
        *numbers = (int)managed_advice_find(range, of_place).type;
        return CUDA_OK;
    case RANGE_PREFERRED_ID:
        *numbers = managed_advice_find(range, of_place).id;
        return CUDA_OK;
    case RANGE_PREFETCH_TYPE:
        *numbers = (int)managed_advice_find(range, of_prefetch).type;
        return CUDA_OK;
    case RANGE_PREFETCH_ID:
        *numbers = managed_advice_find(range, of_prefetch).id;
        return CUDA_OK;
    case RANGE_ACCESSED:
        list_accesses(range, numbers, size / sizeof *numbers);
        return CUDA_OK;
    default:
        return CUDA_ERR_INVALID_VALUE;
    }
}

cuda_result cuMemRangeGetAttribute(void *data, size_t size, int attribute, cuda_device_ptr ptr,
                                   size_t bytes)
{
    struct managed_range range;
    if (!data)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(find_range(ptr, bytes, &range));
    return range_attribute(data, size, attribute, &range);
}

cuda_result cuMemRangeGetAttributes(void **data, size_t *sizes, int *attributes, size_t count,
                                    cuda_device_ptr ptr, size_t bytes)
{
    if (!data || !sizes || !attributes || !count)
        return CUDA_ERR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        DRIVER_TRY(cuMemRangeGetAttribute(data[i], sizes[i], attributes[i], ptr, bytes));
    return CUDA_OK;
}

cuda_result cuMemPrefetchAsync_ptsz(cuda_device_ptr ptr, size_t size, cuda_device device,
                                    cuda_stream stream)
{
    return cuMemPrefetchAsync(ptr, size, device, front_stream_own(stream));
}

cuda_result cuMemPrefetchAsync_v2_ptsz(cuda_device_ptr ptr, size_t size, cuda_mem_location place,
                                       unsigned flags, cuda_stream stream)
{
    return cuMemPrefetchAsync_v2(ptr, size, place, flags, front_stream_own(stream));
}

cuda_result cuStreamAttachMemAsync_ptsz(cuda_stream stream, cuda_device_ptr ptr, size_t size,
                                        unsigned flags)
{
    return cuStreamAttachMemAsync(front_stream_own(stream), ptr, size, flags);
}
