/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/device/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "server/softgpu/memory/charges.h"
#include "server/softgpu/memory/memory.h"
#include "server/softgpu/report.h"

static struct softgpu_settings settings;
static pthread_once_t settings_once = PTHREAD_ONCE_INIT;
static struct error settings_error; /* number 0: the settings hold */
static struct device *devices;
static atomic_int ended; /* the sticky CUresult, 0 while all is well */
static atomic_bool initialized, forked;
static uint64_t random_state;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

unsigned device_sm_set_count(const struct sm_set *set)
{
    unsigned count = 0;

    for (size_t i = 0; i < sizeof(set->words) / sizeof(set->words[0]); i++)
        count += (unsigned)__builtin_popcountll(set->words[i]);
    return count;
}

const struct softgpu_settings *device_settings(void)
{
    return &settings;
}

const struct profile *device_profile(void)
{
    return settings.profile;
}

struct device *device_at(cuda_device visible)
{
    return visible >= 0 && (unsigned)visible < settings.visible_count ? &devices[visible] : NULL;
}

cuda_device device_visible(unsigned ordinal)
{
    for (unsigned i = 0; i < settings.visible_count; i++)
        if (settings.visible[i] == ordinal)
            return (cuda_device)i;
    return -1;
}

struct device *device_numbered(unsigned ordinal)
{
    return device_at(device_visible(ordinal));
}

cuda_result device_check_initialized(void)
{
    return atomic_load(&initialized) && !atomic_load(&forked) ? CUDA_OK : CUDA_ERR_NOT_INITIALIZED;
}

cuda_result device_check(void)
{
    cuda_result result = device_check_initialized();

    return result == CUDA_OK ? (cuda_result)atomic_load(&ended) : result;
}

static void after_fork(void)
{
    /* The engine's threads stayed behind in the parent. */
    atomic_store(&forked, true);
}

static int device_setup(struct device *device, unsigned ordinal, struct stats_file *stats,
                        device_complete *complete)
{
    device->ordinal = ordinal;
    pthread_mutex_init(&device->context_lock.mutex, NULL);
    pthread_cond_init(&device->context_lock.turn, NULL);
    device->limits[CUDA_LIMIT_STACK_SIZE] = 1024;
    device->local_bytes = device_settings()->local_apart ? 0 : 1024;
    device->limits[CUDA_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    device->stats = &stats->device[ordinal];
    for (unsigned i = 0; i < settings.sms; i++)
        sm_set_add(&device->all, i);
    device->queues.count = (unsigned)settings.connections;
    list_init(&device->pending);
    list_init(&device->streams);
    return complete(device);
}

static void load_settings(void)
{
    softgpu_settings_read(&settings, &settings_error);
}

bool device_lacks_green_contexts(void)
{
    pthread_once(&settings_once, load_settings);
    return settings.no_green != 0;
}

int device_driver_version(void)
{
    pthread_once(&settings_once, load_settings);
    /* Settings that do not hold are cuInit's to refuse. */
    return settings_error.number ? CUDA_API_VERSION : (int)settings.driver_version;
}

static cuda_result init_locked(device_complete *complete)
{
    struct charges *charges = NULL;
    struct stats_file *stats;
    struct error why;
    int error;

    pthread_once(&settings_once, load_settings);
    if (settings_error.number) {
        report("%s", settings_error.text);
        return CUDA_ERR_INVALID_VALUE;
    }
    if (settings.init_error)
        return (cuda_result)settings.init_error;
    if (settings.visible_count == 0)
        return CUDA_ERR_NO_DEVICE;
    if (charges_open(&charges, settings.state_path, &why)) {
        report("%s", why.text);
        return CUDA_ERR_OPERATING_SYSTEM;
    }
    stats =
        stats_open(settings.stats_path, (unsigned)settings.devices, (unsigned)settings.sms, &why);
    if (!stats) {
        report("%s", why.text);
        charges_close(charges);
        return CUDA_ERR_OPERATING_SYSTEM;
    }
    memory_start(&settings, charges);
    random_state = settings.seed;
    devices = calloc(settings.visible_count, sizeof(*devices));
    for (unsigned i = 0; devices && i < settings.visible_count; i++)
        if (device_setup(&devices[i], settings.visible[i], stats, complete) < 0)
            return CUDA_ERR_OUT_OF_MEMORY;
    if (!devices)
        return CUDA_ERR_OUT_OF_MEMORY;
    error = engine_start((unsigned)settings.threads, settings.realtime);
    if (error < 0) {
        report("no engine thread could be started: %s", strerror(-error));
        return CUDA_ERR_OPERATING_SYSTEM;
    }
    if (settings.strict)
        report("strict; SOFTGPU_SEED=%llu repeats its choices", (unsigned long long)settings.seed);
    pthread_atfork(NULL, NULL, after_fork);
    atomic_store(&initialized, true);
    return CUDA_OK;
}

cuda_result device_init(device_complete *complete)
{
    cuda_result result = CUDA_OK;

    if (atomic_load(&forked))
        return CUDA_ERR_NOT_INITIALIZED;
    pthread_mutex_lock(&init_lock);
    if (!atomic_load(&initialized))
        result = init_locked(complete);
    pthread_mutex_unlock(&init_lock);
    return result;
}

void device_fail(cuda_result error, const char *text)
{
    if (engine_stopped())
        return;
    report("%s", text);
    atomic_store(&ended, (int)error);
    engine_stop();
}

void device_fault(struct fault *fault)
{
    if (fault->text[0] == '\0')
        fault_describe(fault);
    bool other = fault->kind == FAULT_TRAP && settings.trap_error;
    device_fail(other ? (cuda_result)settings.trap_error : fault_result(fault->kind), fault->text);
}

void device_fail_address(const char *what, uint64_t address)
{
    char text[160];

    snprintf(text, sizeof(text), "a %s reached address 0x%llx, where no memory allows it", what,
             (unsigned long long)address);
    device_fail(CUDA_ERR_ILLEGAL_ADDRESS, text);
}

uint32_t device_random(void)
{
    /* Knuth's linear congruential generator (MMIX). */
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

void device_uuid(const struct device *device, cuda_uuid *uuid)
{
    softgpu_uuid(device->ordinal, uuid);
}

struct attribute {
    int attribute, value;
};

/* Attributes that all GPUs have alike. */
static const struct attribute common_attributes[] = {
    {CUDA_ATTR_MAX_THREADS_PER_BLOCK, DEVICE_BLOCK_THREADS},
    {CUDA_ATTR_MAX_BLOCK_DIM_X, DEVICE_BLOCK_THREADS},
    {CUDA_ATTR_MAX_BLOCK_DIM_Y, DEVICE_BLOCK_THREADS},
    {CUDA_ATTR_MAX_BLOCK_DIM_Z, DEVICE_BLOCK_Z},
    {CUDA_ATTR_MAX_GRID_DIM_X, DEVICE_GRID_X},
    {CUDA_ATTR_MAX_GRID_DIM_Y, DEVICE_GRID_YZ},
    {CUDA_ATTR_MAX_GRID_DIM_Z, DEVICE_GRID_YZ},
    {CUDA_ATTR_MAX_SHARED_MEMORY_PER_BLOCK, DEVICE_BLOCK_SHARED},
    {CUDA_ATTR_TOTAL_CONSTANT_MEMORY, DEVICE_CONSTANT},
    {CUDA_ATTR_WARP_SIZE, DEVICE_WARP},
    {CUDA_ATTR_MAX_PITCH, 2147483647},
    {CUDA_ATTR_MAX_REGISTERS_PER_BLOCK, DEVICE_REGISTERS},
    {CUDA_ATTR_CLOCK_RATE, 1000000}, /* kHz: %clock counts modelled nanoseconds */
    {CUDA_ATTR_TEXTURE_ALIGNMENT, 512},
    {CUDA_ATTR_GPU_OVERLAP, 1},
    {CUDA_ATTR_CAN_MAP_HOST_MEMORY, 1},
    {CUDA_ATTR_SURFACE_ALIGNMENT, 512},
    {CUDA_ATTR_CONCURRENT_KERNELS, 1},
    {CUDA_ATTR_MEMORY_CLOCK_RATE, 1000000},
    {CUDA_ATTR_GLOBAL_MEMORY_BUS_WIDTH, 512},
    {CUDA_ATTR_UNIFIED_ADDRESSING, 1},
    {CUDA_ATTR_TEXTURE_PITCH_ALIGNMENT, 32},
    {CUDA_ATTR_STREAM_PRIORITIES_SUPPORTED, 1},
    {CUDA_ATTR_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CUDA_ATTR_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CUDA_ATTR_MAX_REGISTERS_PER_MULTIPROCESSOR, DEVICE_REGISTERS},
    {CUDA_ATTR_MANAGED_MEMORY, 1},
    {CUDA_ATTR_CONCURRENT_MANAGED_ACCESS, 1},
    {CUDA_ATTR_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CUDA_ATTR_COOPERATIVE_LAUNCH, 1},
    {CUDA_ATTR_MEMORY_POOLS_SUPPORTED, 1},
    {CUDA_ATTR_MEM_SYNC_DOMAIN_COUNT, 1},
    {CUDA_ATTR_NUMA_ID, -1}, /* none is modelled */
    {CUDA_ATTR_HOST_NUMA_ID, -1},
    {CUDA_ATTR_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CUDA_ATTR_HOST_REGISTER_SUPPORTED, 1},
    {CUDA_ATTR_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CUDA_ATTR_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CUDA_ATTR_READ_ONLY_HOST_REGISTER_SUPPORTED, 1},
    {CUDA_ATTR_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CUDA_ATTR_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
};

static void attribute_find(const struct attribute *rows, size_t count, int attribute, int *value)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].attribute == attribute)
            *value = rows[i].value;
}

cuda_result device_attribute(const struct device *device, cuda_device_attribute attribute,
                             int *value)
{
    const struct profile *profile = settings.profile;
    const struct attribute own[] = {
        {CUDA_ATTR_MULTIPROCESSOR_COUNT, (int)settings.sms},
        {CUDA_ATTR_PCI_BUS_ID, (int)device->ordinal + 1},
        {CUDA_ATTR_COMPUTE_MODE, (int)settings.compute_mode},
        {CUDA_ATTR_PAGEABLE_MEMORY_ACCESS, (int)settings.pageable_access},
        {CUDA_ATTR_L2_CACHE_SIZE, (int)profile->l2_bytes},
        {CUDA_ATTR_MAX_THREADS_PER_MULTIPROCESSOR, (int)profile->sm_threads},
        {CUDA_ATTR_ASYNC_ENGINE_COUNT, (int)profile->copy_engines},
        {CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR, (int)profile->cc_major},
        {CUDA_ATTR_COMPUTE_CAPABILITY_MINOR, (int)profile->cc_minor},
        {CUDA_ATTR_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, (int)profile->sm_shared_bytes},
        {CUDA_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, (int)profile->block_shared_optin_bytes},
        {CUDA_ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR, (int)profile->sm_blocks},
        {CUDA_ATTR_RESERVED_SHARED_MEMORY_PER_BLOCK, (int)profile->block_shared_reserved_bytes},
    };

    /* 147 attributes are known to CUDA 13.0; one that is not in the table is a feature we lack. */
    if ((int)attribute < 1 || (int)attribute > 147)
        return CUDA_ERR_INVALID_VALUE;
    *value = 0;
    attribute_find(common_attributes, sizeof common_attributes / sizeof *common_attributes,
                   (int)attribute, value);
    attribute_find(own, sizeof own / sizeof *own, (int)attribute, value);
    return CUDA_OK;
}
