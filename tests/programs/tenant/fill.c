/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Memory, allocated in every way until nothing is left. */
#include <string.h>

#include "common/cuda/memory_pool.h"
#include "tests/programs/tenant/tenant.h"

enum { BLOCK = 8 << 20, MOST = 64, MANAGED_GLOBAL = 1 };

/* A block, and what belongs to it. */
struct block {
    cuda_device_ptr ptr;
    cuda_module module;
};

struct way {
    const char *name;
    int (*take)(struct block *block);
    int (*give)(struct block *block);
};

static cuda_mem_pool own_pool;
static cuda_stream stream;

/* ---- device memory ---- */

static int take_alloc(struct block *block)
{
    return cuMemAlloc_v2(&block->ptr, BLOCK);
}

static int give_free(struct block *block)
{
    return cuMemFree_v2(block->ptr);
}

static int take_pitch(struct block *block)
{
    size_t pitch;
    return cuMemAllocPitch_v2(&block->ptr, &pitch, BLOCK / 64, 64, 16);
}

static int take_async(struct block *block)
{
    return cuMemAllocAsync(&block->ptr, BLOCK, stream);
}

static int give_async(struct block *block)
{
    return cuMemFreeAsync(block->ptr, stream);
}

static int take_from_pool(struct block *block)
{
    return cuMemAllocFromPoolAsync(&block->ptr, BLOCK, own_pool, stream);
}

static int load(struct block *block, const char *attribute)
{
    char text[256];
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_70\n.address_size 64\n"
             ".visible .global %s .align 16 .b8 large[%d];\n"
             ".visible .entry touch()\n{\n    ret;\n}\n",
             attribute, BLOCK);
    size_t size;
    const int result = (int)cuModuleLoadData(&block->module, text);
    if (result == 0) {
        OK(cuModuleGetGlobal_v2(&block->ptr, &size, block->module, "large"));
        CHECK(size == BLOCK);
    }
    return result;
}

static int take_module(struct block *block)
{
    return load(block, "");
}

static int give_module(struct block *block)
{
    return cuModuleUnload(block->module);
}

/* The runtime keeps a refusal as the thread's last error until it is asked for. */
static int cleared(cudart_error result)
{
    if (result != 0)
        EXPECT(result, cudaGetLastError());
    return (int)result;
}

static int take_cuda_malloc(struct block *block)
{
    return cleared(cudaMalloc((void **)&block->ptr, BLOCK));
}

static int give_cuda_free(struct block *block)
{
    return cudaFree((void *)block->ptr);
}

static int take_cuda_pitch(struct block *block)
{
    size_t pitch;
    return cleared(cudaMallocPitch((void **)&block->ptr, &pitch, BLOCK / 64, 64));
}

static int take_cuda_async(struct block *block)
{
    return cleared(cudaMallocAsync((void **)&block->ptr, BLOCK, stream));
}

static int give_cuda_async(struct block *block)
{
    return cudaFreeAsync((void *)block->ptr, stream);
}

static int take_cuda_pool(struct block *block)
{
    return cleared(cudaMallocFromPoolAsync((void **)&block->ptr, BLOCK, own_pool, stream));
}

static const struct way device_ways[] = {
    {"cuMemAlloc", take_alloc, give_free},
    {"cuMemAllocPitch", take_pitch, give_free},
    {"cuMemAllocAsync", take_async, give_async},
    {"cuMemAllocFromPoolAsync", take_from_pool, give_async},
    {"a module's variable", take_module, give_module},
    {"cudaMalloc", take_cuda_malloc, give_cuda_free},
    {"cudaMallocPitch", take_cuda_pitch, give_cuda_free},
    {"cudaMallocAsync", take_cuda_async, give_cuda_async},
    {"cudaMallocFromPoolAsync", take_cuda_pool, give_cuda_async},
};

/* ---- host memory ---- */

static int take_managed(struct block *block)
{
    return cuMemAllocManaged(&block->ptr, BLOCK, MANAGED_GLOBAL);
}

static int take_host_alloc(struct block *block)
{
    return cuMemHostAlloc((void **)&block->ptr, BLOCK, CUDA_HOST_ALLOC_DEVICEMAP);
}

static int take_alloc_host(struct block *block)
{
    return cuMemAllocHost_v2((void **)&block->ptr, BLOCK);
}

static int give_host(struct block *block)
{
    return cuMemFreeHost((void *)block->ptr);
}

static int take_managed_variable(struct block *block)
{
    return load(block, ".attribute(.managed)");
}

static int take_cuda_managed(struct block *block)
{
    return cleared(cudaMallocManaged((void **)&block->ptr, BLOCK, MANAGED_GLOBAL));
}

static int take_cuda_malloc_host(struct block *block)
{
    return cleared(cudaMallocHost((void **)&block->ptr, BLOCK));
}

static int take_cuda_host_alloc(struct block *block)
{
    return cleared(cudaHostAlloc((void **)&block->ptr, BLOCK, CUDA_HOST_ALLOC_DEVICEMAP));
}

static int give_cuda_host(struct block *block)
{
    return cudaFreeHost((void *)block->ptr);
}

static const struct way host_ways[] = {
    {"cuMemAllocManaged", take_managed, give_free},
    {"cuMemHostAlloc", take_host_alloc, give_host},
    {"cuMemAllocHost", take_alloc_host, give_host},
    {"a module's managed variable", take_managed_variable, give_module},
    {"cudaMallocManaged", take_cuda_managed, give_cuda_free},
    {"cudaMallocHost", take_cuda_malloc_host, give_cuda_host},
    {"cudaHostAlloc", take_cuda_host_alloc, give_cuda_host},
};

/* ---- filling ---- */

struct filling {
    const struct way *ways;
    unsigned way_count;
    struct block blocks[MOST];
    unsigned block_ways[MOST];
    unsigned count;
};

/* Returns whether there was room. A block is memory that can be written, whatever came before. */
static int take(struct filling *filling, unsigned way)
{
    CHECK(filling->count < MOST);
    struct block *block = &filling->blocks[filling->count];
    const int result = filling->ways[way].take(block);
    if (result == CUDA_ERR_OUT_OF_MEMORY)
        return 0;
    if (result != 0)
        fprintf(stderr, "%s: ", filling->ways[way].name);
    OK(result);
    OK(cuMemsetD8Async(block->ptr, 1, BLOCK, stream));
    filling->block_ways[filling->count++] = way;
    return 1;
}

static void give_last(struct filling *filling)
{
    const unsigned last = --filling->count;
    OK(filling->ways[filling->block_ways[last]].give(&filling->blocks[last]));
}

static void give_all(struct filling *filling)
{
    OK(cuStreamSynchronize(stream));
    while (filling->count)
        give_last(filling);
}

/* No way has room where one has none. */
static void demand_full(struct filling *filling)
{
    for (unsigned way = 0; way < filling->way_count; way++)
        if (take(filling, way)) {
            fprintf(stderr, "%s: has a block of memory more\n", filling->ways[way].name);
            exit(1);
        }
}

static void fill(struct filling *filling, unsigned first, unsigned second, unsigned first_part)
{
    while (filling->count < first_part && take(filling, first))
        ;
    while (take(filling, second))
        ;
}

static void fill_in_two_ways(struct filling *filling, unsigned first, unsigned second)
{
    static unsigned most;
    char said[80];
    fill(filling, first, second, most / 2);
    if (!most)
        most = filling->count;
    if (filling->count != most) {
        fprintf(stderr, "%s and %s: %u blocks, not %u\n", filling->ways[first].name,
                filling->ways[second].name, filling->count, most);
        exit(1);
    }
    snprintf(said, sizeof said, "full %zu", (size_t)filling->count * BLOCK);
    tenant_pause(said);
    /* The room that one way leaves is another's. */
    OK(cuStreamSynchronize(stream));
    give_last(filling);
    CHECK(take(filling, first));
    demand_full(filling);
    give_all(filling);
}

static void fill_in_every_way(const struct way *ways, unsigned way_count)
{
    static const unsigned beside[] = {0, 1, 3};
    struct filling filling = {.ways = ways, .way_count = way_count};
    for (unsigned first = 0; first < way_count; first++)
        for (unsigned i = 0; i < sizeof beside / sizeof *beside; i++)
            fill_in_two_ways(&filling, first, (first + beside[i]) % way_count);
    for (unsigned i = 0; take(&filling, i % way_count); i++)
        ;
    demand_full(&filling);
    give_all(&filling);
    OK(cuCtxSynchronize());
    puts("right");
}

static void begin(void)
{
    struct tenant tenant;
    uint64_t all = UINT64_MAX;
    cuda_mem_pool pool;
    const cuda_mem_pool_props props = {.type = CUDA_MEM_ALLOCATION_PINNED,
                                       .location = {CUDA_MEM_LOCATION_DEVICE, 0}};
    tenant_begin(&tenant);
    OK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    OK(cuMemPoolCreate(&own_pool, &props));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    /* Pools keep what they have, until another way needs it. */
    OK(cuMemPoolSetAttribute(own_pool, MEMORY_POOL_RELEASE_THRESHOLD, &all));
    OK(cuMemPoolSetAttribute(pool, MEMORY_POOL_RELEASE_THRESHOLD, &all));
}

void fill_device(void)
{
    begin();
    fill_in_every_way(device_ways, sizeof device_ways / sizeof *device_ways);
}

/* Registered memory stays ordinary memory: it takes nothing of the limit, and copies go through it
 * while nothing of the limit is left. */
static void register_beside(void)
{
    enum { REGISTERED = 96 << 20 };
    struct block blocks[MOST];
    unsigned count = 0;
    char *memory = malloc(REGISTERED);
    cuda_device_ptr ptr;
    CHECK(memory);
    memset(memory, 5, REGISTERED);
    OK(cuMemAlloc_v2(&ptr, BLOCK));
    OK(cuMemHostRegister_v2(memory, REGISTERED, 0));
    while (count < MOST && take_host_alloc(&blocks[count]) == 0)
        count++;
    CHECK(count < MOST);
    /* A small and a large one: these buffers of the library's own stay, and count. */
    OK(cuMemcpyHtoD_v2(ptr, memory, 8));
    OK(cuMemcpyHtoD_v2(ptr, memory, BLOCK));
    OK(cuMemcpyDtoHAsync_v2(memory + REGISTERED - BLOCK, ptr, BLOCK, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(memcmp(memory, memory + REGISTERED - BLOCK, BLOCK) == 0);
    while (count)
        OK(give_host(&blocks[--count]));
    OK(cuMemHostUnregister(memory));
    OK(cuMemFree_v2(ptr));
    free(memory);
}

void fill_host(void)
{
    begin();
    register_beside();
    fill_in_every_way(host_ways, sizeof host_ways / sizeof *host_ways);
}
