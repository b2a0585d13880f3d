/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Copies of blocks between contexts, and batches of such copies. */
#include <string.h>

#include "tests/programs/dropin/dropin.h"

/* A block of 2 planes of 2 rows of 4 bytes, in rows of 8 bytes and planes of 3 rows. */
enum { WIDE = 4, HIGH = 2, DEEP = 2, ROW = 8, ROWS = 3, ROOM = ROW * ROWS * DEEP };

static bool is_inside(int at)
{
    return at % ROW < WIDE && at / ROW % ROWS < HIGH;
}

static void demand_block(cuda_device_ptr block, int inside)
{
    uint8_t found[ROOM];
    OK(cuMemcpyDtoH_v2(found, block, ROOM));
    for (int i = 0; i < ROOM; i++)
        CHECK(found[i] == (is_inside(i) ? inside : 7));
    OK(cuMemsetD8_v2(block, 7, ROOM));
}

static cuda_memcpy_3d describe(cuda_device_ptr dst, cuda_device_ptr src, cuda_context context)
{
    return (cuda_memcpy_3d){.src_type = CUDA_MEMORYTYPE_DEVICE,
                            .src_device = src,
                            .src_context = context,
                            .src_pitch = ROW,
                            .src_height = ROWS,
                            .dst_type = CUDA_MEMORYTYPE_DEVICE,
                            .dst_device = dst,
                            .dst_context = context,
                            .dst_pitch = ROW,
                            .dst_height = ROWS,
                            .width = WIDE,
                            .height = HIGH,
                            .depth = DEEP};
}

static void check_peer_blocks(const struct work *work, cuda_device_ptr dst, cuda_device_ptr src)
{
    static uint8_t host[ROOM];
    cuda_memcpy_3d copy = describe(dst, src, work->context);
    OK(cuMemcpy3DPeer(&copy));
    demand_block(dst, 5);
    OK(cuMemcpy3DPeer_ptds(&copy));
    demand_block(dst, 5);
    OK(cuMemcpy3DPeerAsync(&copy, NULL));
    OK(cuStreamSynchronize(NULL));
    demand_block(dst, 5);
    OK(cuMemcpy3DPeerAsync_ptsz(&copy, NULL));
    OK(cuStreamSynchronize(CUDA_STREAM_PER_THREAD));
    demand_block(dst, 5);
    memset(host, 6, sizeof host);
    copy.src_type = CUDA_MEMORYTYPE_HOST;
    copy.src_host = host;
    copy.src_context = NULL;
    OK(cuMemcpy3DPeer(&copy));
    demand_block(dst, 6);
    copy.src_type = CUDA_MEMORYTYPE_DEVICE;
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuMemcpy3DPeer(&copy));
    copy.src_type = CUDA_MEMORYTYPE_ARRAY;
    copy.src_context = work->context;
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuMemcpy3DPeer(&copy));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpy3DPeer(NULL));
}

static void check_block_batch(cuda_device_ptr dst, cuda_device_ptr src, cuda_stream stream)
{
    cuda_batch_3d blocks[2] = {
        {.src = {CUDA_COPY_OPERAND_POINTER, src, ROW, ROWS, {0}},
         .dst = {CUDA_COPY_OPERAND_POINTER, dst, ROW, ROWS, {0}},
         .width = WIDE,
         .height = HIGH,
         .depth = DEEP,
         .order = CUDA_COPY_ORDER_STREAM},
        {.src = {CUDA_COPY_OPERAND_POINTER, src, 0, 0, {0}},
         .dst = {CUDA_COPY_OPERAND_POINTER, dst + ROOM, 0, 0, {0}},
         .width = 8,
         .height = 1,
         .depth = 1,
         .order = CUDA_COPY_ORDER_DURING_CALL},
    };
    size_t failed = 77;
    uint8_t found[8];
    OK(cuMemcpy3DBatchAsync(2, blocks, &failed, 0, stream));
    CHECK(failed == SIZE_MAX);
    OK(cuStreamSynchronize(stream));
    demand_block(dst, 5);
    OK(cuMemcpyDtoH_v2(found, dst + ROOM, sizeof found));
    CHECK(found[0] == 5 && found[7] == 5);
    OK(cuMemcpy3DBatchAsync_v2(1, blocks, 0, stream));
    OK(cuStreamSynchronize(stream));
    demand_block(dst, 5);
    OK(cuMemcpy3DBatchAsync_v2_ptsz(1, blocks, 0, NULL));
    OK(cuMemcpy3DBatchAsync_ptsz(1, blocks, &failed, 0, NULL));
    OK(cuStreamSynchronize(CUDA_STREAM_PER_THREAD));
    demand_block(dst, 5);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, blocks, &failed, 0, NULL));
    blocks[1].src.type = CUDA_COPY_OPERAND_ARRAY;
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuMemcpy3DBatchAsync(2, blocks, &failed, 0, stream));
    CHECK(failed == 1);
    blocks[0].depth = 0;
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, blocks, &failed, 0, stream));
    CHECK(failed == 0);
    OK(cuStreamSynchronize(stream));
}

void check_block_copies(const struct work *work)
{
    cuda_device_ptr src, dst;
    cuda_stream stream;
    OK(cuMemAlloc_v2(&src, ROOM));
    OK(cuMemAlloc_v2(&dst, 2 * ROOM));
    OK(cuStreamCreate(&stream, 1 /* non-blocking */));
    OK(cuMemsetD8_v2(src, 5, ROOM));
    OK(cuMemsetD8_v2(dst, 7, 2 * ROOM));
    OK(cuCtxSynchronize());
    check_peer_blocks(work, dst, src);
    OK(cuCtxSynchronize());
    check_block_batch(dst, src, stream);
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFree_v2(src));
    OK(cuMemFree_v2(dst));
}
