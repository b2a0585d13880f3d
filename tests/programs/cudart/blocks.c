/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Pitched memory, and copies and fills of blocks in two and three dimensions, against loops over
 * bytes. */
#include <string.h>

#include "tests/programs/cudart/cudart.h"

enum { WIDTH = 37, HEIGHT = 11, DEPTH = 5, ROW = 64 /* of the host's blocks */ };

static unsigned char host[DEPTH][HEIGHT][ROW], back[DEPTH][HEIGHT][ROW];

static void make_host(void)
{
    for (int z = 0; z < DEPTH; z++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < ROW; x++)
                host[z][y][x] = (unsigned char)(x + 7 * y + 31 * z + 1);
    memset(back, 0, sizeof back);
}

/* The block came along, and nothing beside it. */
static void check_rows(int depth, int first_row, int rows)
{
    for (int z = 0; z < DEPTH; z++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < ROW; x++) {
                int in = z < depth && y >= first_row && y < first_row + rows && x < WIDTH;
                CHECK(back[z][y][x] == (in ? host[z][y][x] : 0));
            }
}

static void check_2d(void)
{
    void *rows = NULL, *others = NULL;
    size_t pitch = 0, other_pitch = 0;

    make_host();
    EXPECT(0, cudaMallocPitch(&rows, &pitch, WIDTH, HEIGHT));
    EXPECT(0, cudaMallocPitch(&others, &other_pitch, 3 * WIDTH, HEIGHT));
    CHECK(pitch >= WIDTH && pitch % 32 == 0);
    EXPECT(0, cudaMemset2D(rows, pitch, 0, pitch, HEIGHT));
    EXPECT(0, cudaMemcpy2D(rows, pitch, host, ROW, WIDTH, HEIGHT, CUDART_HOST_TO_DEVICE));
    EXPECT(0,
           cudaMemcpy2D(others, other_pitch, rows, pitch, WIDTH, HEIGHT, CUDART_DEVICE_TO_DEVICE));
    EXPECT(0, cudaMemcpy2DAsync(back, ROW, others, other_pitch, WIDTH, HEIGHT,
                                CUDART_DEVICE_TO_HOST, NULL));
    EXPECT(0, cudaDeviceSynchronize());
    check_rows(1, 0, HEIGHT);

    /* One row is filled: the others stay. */
    EXPECT(0, cudaMemset2DAsync((char *)rows + 2 * pitch, pitch, 0xee, WIDTH, 1, NULL));
    EXPECT(0, cudaMemcpy2D(back, ROW, rows, pitch, WIDTH, HEIGHT, CUDART_MEMCPY_DEFAULT));
    for (int x = 0; x < WIDTH; x++)
        CHECK(back[0][2][x] == 0xee && back[0][1][x] == host[0][1][x] &&
              back[0][3][x] == host[0][3][x]);

    EXPECT(CUDART_INVALID_PITCH,
           cudaMemcpy2D(rows, pitch, host, WIDTH - 1, WIDTH, HEIGHT, CUDART_HOST_TO_DEVICE));
    EXPECT(CUDART_INVALID_MEMCPY_DIRECTION, cudaMemcpy2D(rows, pitch, host, ROW, WIDTH, HEIGHT, 9));
    EXPECT(CUDART_INVALID_VALUE, cudaMallocPitch(NULL, &pitch, WIDTH, HEIGHT));
    EXPECT(0, cudaFree(rows));
    EXPECT(0, cudaFree(others));
    EXPECT(0, cudaMallocPitch(&rows, &pitch, 0, HEIGHT));
    CHECK(rows == NULL);
    (void)cudaGetLastError();
}

static void check_3d(void)
{
    const struct cudart_extent extent = {WIDTH, HEIGHT, DEPTH};
    struct cudart_pitched_ptr block = {0};
    struct cudart_memcpy_3d up = {.extent = extent, .kind = CUDART_HOST_TO_DEVICE};
    struct cudart_memcpy_3d down = {.extent = {WIDTH, HEIGHT - 4, DEPTH - 2},
                                    .kind = CUDART_DEVICE_TO_HOST};

    make_host();
    EXPECT(0, cudaMalloc3D(&block, extent));
    CHECK(block.row_bytes == WIDTH && block.rows == HEIGHT && block.pitch >= WIDTH);
    EXPECT(0, cudaMemset3D(block, 0, (struct cudart_extent){block.pitch, HEIGHT, DEPTH}));
    up.src = (struct cudart_pitched_ptr){host, ROW, WIDTH, HEIGHT};
    up.dst = block;
    EXPECT(0, cudaMemcpy3DAsync(&up, NULL));
    /* Rows 3 and on, of the first planes. */
    down.src = block;
    down.src_pos.y = down.dst_pos.y = 3;
    down.dst = (struct cudart_pitched_ptr){back, ROW, WIDTH, HEIGHT};
    EXPECT(0, cudaMemcpy3D(&down));
    check_rows(DEPTH - 2, 3, HEIGHT - 4);

    /* A fill of all planes' second half leaves the first. */
    block.ptr = (char *)block.ptr + 16;
    EXPECT(0,
           cudaMemset3DAsync(block, 0x55, (struct cudart_extent){WIDTH - 16, HEIGHT, DEPTH}, NULL));
    block.ptr = (char *)block.ptr - 16;
    down = (struct cudart_memcpy_3d){.src = block,
                                     .dst = {back, ROW, WIDTH, HEIGHT},
                                     .extent = extent,
                                     .kind = CUDART_MEMCPY_DEFAULT};
    EXPECT(0, cudaMemcpy3D(&down));
    for (int z = 0; z < DEPTH; z++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                CHECK(back[z][y][x] == (x < 16 ? host[z][y][x] : 0x55));

    up.src_array = &up;
    EXPECT(CUDART_NOT_SUPPORTED, cudaMemcpy3D(&up));
    EXPECT(CUDART_INVALID_VALUE, cudaMemcpy3D(NULL));
    EXPECT(0, cudaFree(block.ptr));
    (void)cudaGetLastError();
}

/* The forms of programs with default streams of each thread. */
static void check_forms(void)
{
    const struct cudart_extent extent = {WIDTH, HEIGHT, 1};
    struct cudart_pitched_ptr block = {0};
    struct cudart_memcpy_3d up = {
        .src = {host, ROW, WIDTH, HEIGHT}, .extent = extent, .kind = CUDART_HOST_TO_DEVICE};

    make_host();
    EXPECT(0, cudaMalloc3D(&block, extent));
    up.dst = block;
    EXPECT(0, cudaMemset3D_ptds(block, 1, extent));
    EXPECT(0, cudaMemcpy3D_ptds(&up));
    EXPECT(0, cudaMemset2D_ptds(block.ptr, block.pitch, 9, WIDTH, 1));
    EXPECT(0, cudaMemcpy2D_ptds(back, ROW, block.ptr, block.pitch, WIDTH, HEIGHT,
                                CUDART_DEVICE_TO_HOST));
    for (int x = 0; x < WIDTH; x++)
        CHECK(back[0][0][x] == 9 && back[0][1][x] == host[0][1][x]);
    EXPECT(0, cudaFree(block.ptr));
}

/* Of memory of the host each fill that is not asynchronous has ended when it returns. */
static void check_host_fills(void)
{
    const struct cudart_extent extent = {ROW, HEIGHT, DEPTH};
    unsigned char *memory = NULL;

    EXPECT(0, cudaMallocHost((void **)&memory, sizeof host));
    struct cudart_pitched_ptr block = {memory, ROW, ROW, HEIGHT};
    EXPECT(0, cudaMemset3D(block, 7, extent));
    CHECK(memory[sizeof host - 1] == 7);
    EXPECT(0, cudaMemset3D_ptds(block, 8, extent));
    CHECK(memory[sizeof host - 1] == 8);
    EXPECT(0, cudaMemset2D_ptds(memory, ROW, 9, ROW, HEIGHT));
    CHECK(memory[ROW * HEIGHT - 1] == 9 && memory[ROW * HEIGHT] == 8);
    /* A single row needs no number of rows. */
    block.rows = 0;
    EXPECT(0, cudaMemset3D(block, 6, (struct cudart_extent){ROW, 1, 1}));
    CHECK(memory[0] == 6 && memory[ROW] == 9);
    EXPECT(CUDART_INVALID_VALUE, cudaMemset3D(block, 6, extent));
    EXPECT(0, cudaFreeHost(memory));
    (void)cudaGetLastError();
}

static void check_peers(void)
{
    struct cudart_pitched_ptr from = {0}, to = {0};
    const struct cudart_extent extent = {WIDTH, HEIGHT, DEPTH};
    struct cudart_memcpy_3d load = {
        .src = {host, ROW, ROW, HEIGHT}, .extent = extent, .kind = CUDART_HOST_TO_DEVICE};
    struct cudart_memcpy_3d store = {
        .dst = {back, ROW, ROW, HEIGHT}, .extent = extent, .kind = CUDART_DEVICE_TO_HOST};

    EXPECT(0, cudaMalloc3D(&from, extent));
    EXPECT(0, cudaMalloc3D(&to, extent));
    load.dst = from;
    store.src = to;
    struct cudart_memcpy_3d_peer copy = {.src = from, .dst = to, .extent = extent};
    for (int call = 0; call < 4; call++) {
        make_host();
        EXPECT(0, cudaMemset3D(to, 0, extent));
        EXPECT(0, cudaMemcpy3D(&load));
        EXPECT(0, call == 0   ? cudaMemcpy3DPeer(&copy)
                  : call == 1 ? cudaMemcpy3DPeer_ptds(&copy)
                  : call == 2 ? cudaMemcpy3DPeerAsync(&copy, NULL)
                              : cudaMemcpy3DPeerAsync_ptsz(&copy, NULL));
        EXPECT(0, cudaDeviceSynchronize());
        EXPECT(0, cudaMemcpy3D(&store));
        check_rows(DEPTH, 0, HEIGHT);
    }
    copy.dst_device = 1000;
    EXPECT(CUDART_INVALID_DEVICE, cudaMemcpy3DPeer(&copy));
    EXPECT(CUDART_INVALID_VALUE, cudaMemcpy3DPeer(NULL));
    EXPECT(0, cudaFree(from.ptr));
    EXPECT(0, cudaFree(to.ptr));
    (void)cudaGetLastError();
}

void check_blocks(void)
{
    check_peers();
    check_host_fills();
    check_2d();
    check_3d();
    check_forms();
}
