/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Launches in every way, each of as many blocks as the whole device has room for. */
#include "tests/programs/tenant/tenant.h"

enum { MARKS = 1024, BLOCKS = 528, THREADS = 32 };

static struct tenant tenant;
static cuda_device_ptr marks;
static void *parameters[] = {&marks};

static int launch_kernel(cuda_stream stream, unsigned blocks)
{
    return cuLaunchKernel(tenant.where, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL);
}

static int launch_kernel_ptsz(cuda_stream stream, unsigned blocks)
{
    return cuLaunchKernel_ptsz(tenant.where, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters,
                               NULL);
}

static int launch_kernel_ex(cuda_stream stream, unsigned blocks)
{
    struct cuda_launch_attribute attribute = {.id = CUDA_LAUNCH_PRIORITY, .number = -1};
    const struct cuda_launch_config config = {.grid = {blocks, 1, 1},
                                              .block = {THREADS, 1, 1},
                                              .stream = stream,
                                              .attributes = &attribute,
                                              .attribute_count = 1};
    return cuLaunchKernelEx(&config, tenant.where, parameters, NULL);
}

static int launch_cooperative(cuda_stream stream, unsigned blocks)
{
    return cuLaunchCooperativeKernel(tenant.where, blocks, 1, 1, THREADS, 1, 1, 0, stream,
                                     parameters);
}

static int launch_grid_async(cuda_stream stream, unsigned blocks)
{
    OK(cuFuncSetBlockShape(tenant.where, THREADS, 1, 1));
    OK(cuParamSetSize(tenant.where, sizeof marks));
    OK(cuParamSetv(tenant.where, 0, &marks, sizeof marks));
    return cuLaunchGridAsync(tenant.where, (int)blocks, 1, stream);
}

static int launch_grid(cuda_stream stream, unsigned blocks)
{
    (void)stream;
    return cuLaunchGrid(tenant.where, (int)blocks, 1);
}

static int cuda_launch_kernel(cuda_stream stream, unsigned blocks)
{
    return cudaLaunchKernel(&tenant_where, (cudart_dim3){blocks, 1, 1},
                            (cudart_dim3){THREADS, 1, 1}, parameters, 0, stream);
}

static int cuda_launch_kernel_ex(cuda_stream stream, unsigned blocks)
{
    const struct cuda_launch_config config = {
        .grid = {blocks, 1, 1}, .block = {THREADS, 1, 1}, .stream = stream};
    return cudaLaunchKernelExC(&config, &tenant_where, parameters);
}

static int cuda_launch_cooperative(cuda_stream stream, unsigned blocks)
{
    return cudaLaunchCooperativeKernel(&tenant_where, (cudart_dim3){blocks, 1, 1},
                                       (cudart_dim3){THREADS, 1, 1}, parameters, 0, stream);
}

static int take_multiprocessors(int *seen)
{
    uint32_t found[MARKS];
    int count = 0;
    OK(cuMemcpyDtoH_v2(found, marks, sizeof found));
    for (int i = 0; i < MARKS; i++) {
        count += found[i] != 0;
        *seen += (int)found[i];
    }
    return count;
}

/* Occupancy says what the share holds, and the largest cooperative grid agrees. */
static unsigned largest_grid(int multiprocessors)
{
    int blocks, runtime_blocks, ordinal = -1, count;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, tenant.where, THREADS, 0));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&runtime_blocks, &tenant_where, THREADS, 0));
    CHECK(blocks == runtime_blocks && blocks > 0);
    OK(cudaGetDevice(&ordinal));
    OK(cudaDeviceGetAttribute(&count, CUDA_ATTR_MULTIPROCESSOR_COUNT, ordinal));
    CHECK(count == multiprocessors);
    const unsigned largest = (unsigned)(blocks * multiprocessors);
    EXPECT(CUDA_ERR_COOPERATIVE_LAUNCH_TOO_LARGE, launch_cooperative(NULL, largest + 1));
    EXPECT(CUDA_ERR_COOPERATIVE_LAUNCH_TOO_LARGE, cuda_launch_cooperative(NULL, largest + 1));
    EXPECT(CUDA_ERR_COOPERATIVE_LAUNCH_TOO_LARGE, cudaGetLastError());
    return largest;
}

void launch_everywhere(void)
{
    static const struct {
        const char *name;
        int (*launch)(cuda_stream stream, unsigned blocks);
    } ways[] = {{"cuLaunchKernel", launch_kernel},
                {"cuLaunchKernel_ptsz", launch_kernel_ptsz},
                {"cuLaunchKernelEx", launch_kernel_ex},
                {"cuLaunchCooperativeKernel", launch_cooperative},
                {"cuLaunchGrid", launch_grid},
                {"cuLaunchGridAsync", launch_grid_async},
                {"cudaLaunchKernel", cuda_launch_kernel},
                {"cudaLaunchKernelExC", cuda_launch_kernel_ex},
                {"cudaLaunchCooperativeKernel", cuda_launch_cooperative}};
    int multiprocessors;
    cuda_stream streams[4] = {NULL, CUDA_STREAM_PER_THREAD};
    tenant_begin(&tenant);
    OK(cuMemAlloc_v2(&marks, MARKS * 4));
    OK(cuStreamCreate(&streams[2], CUDA_STREAM_NON_BLOCKING));
    OK(cuStreamCreateWithPriority(&streams[3], CUDA_STREAM_NON_BLOCKING, -1));
    OK(cuDeviceGetAttribute(&multiprocessors, CUDA_ATTR_MULTIPROCESSOR_COUNT, 0));
    const unsigned largest = largest_grid(multiprocessors);
    const unsigned blocks = largest < BLOCKS ? largest : BLOCKS;
    printf("multiprocessors %d\n", multiprocessors);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
            int seen = 0;
            OK(cuMemsetD8_v2(marks, 0, MARKS * 4));
            OK(cuCtxSynchronize());
            /* It has the block and the parameters that the call before it left. */
            OK(ways[way].launch == launch_grid ? launch_grid_async(streams[i], blocks) : 0);
            OK(ways[way].launch(streams[i], blocks));
            OK(cuCtxSynchronize());
            const int count = take_multiprocessors(&seen);
            CHECK(seen > 0 && seen % (int)(blocks * THREADS) == 0);
            printf("%s %zu %d\n", ways[way].name, i, count);
        }
}
