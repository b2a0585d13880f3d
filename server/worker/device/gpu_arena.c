/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/gpu_arena.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/ipc/shm.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/cuda/driver_error.h"

/* The driver may place a reservation elsewhere, or refuse it, and do as told next time. */
#define RESERVE_ATTEMPTS 16

#define TIB (UINT64_C(1) << 40)

static const struct {
    uint64_t device_base, host_base;
} pairs[] = {
    {ARENA_DEVICE_BASE, ARENA_HOST_BASE},
#ifndef ARENA_THREAD_SANITIZER
    {16 * TIB, 48 * TIB}, /* a GPU with 45 bits of address */
    {64 * TIB, 96 * TIB}, /* something of the process lies below; programs lie at 85 TiB */
#endif
};

/* Clients' windows come out of the arena; the smallest still holds two windows of 512 GiB. */
static const uint64_t sizes[] = {ARENA_BYTES, ARENA_BYTES / 4, ARENA_BYTES / 16};

uint32_t gpu_arena_reserve_host(const struct arena *arena, struct error *why)
{
    int reserved = shm_reserve(arena->host_base, arena->bytes);
    if (reserved == 0)
        return 0;
    return error_set(why, MESSAGE(host_arena_reserved), (unsigned long long)arena->host_base,
                     (unsigned long long)arena->bytes, strerror(-reserved));
}

static void release_host(const struct arena *arena)
{
    munmap((void *)(uintptr_t)arena->host_base, arena->bytes);
}

/* Reservations that the driver made elsewhere than at the hint. */
struct strays {
    cuda_device_ptr at[RESERVE_ATTEMPTS];
    unsigned count;
};

static void free_strays(const struct cuda_driver *cuda, const struct arena *arena,
                        struct strays *strays)
{
    while (strays->count)
        cuda->cuMemAddressFree(strays->at[--strays->count], arena->bytes);
}

/* A stray is kept until the loop is over, so that the next attempt can't be given the same place.
 * One that lies in the arena would be in the way of all attempts, and a process has room for seven
 * of 16 TiB: the sixth may lie there. */
static void keep_stray(const struct cuda_driver *cuda, const struct arena *arena,
                       struct strays *strays, cuda_device_ptr at)
{
    if (at < arena->device_base + arena->bytes && arena->device_base < at + arena->bytes)
        cuda->cuMemAddressFree(at, arena->bytes);
    else
        strays->at[strays->count++] = at;
}

uint32_t gpu_arena_reserve_device(const struct cuda_driver *cuda, const struct arena *arena,
                                  struct error *why)
{
    struct strays strays = {.count = 0};
    cuda_device_ptr got = 0;
    cuda_result result = CUDA_OK;
    for (unsigned i = 0; i < RESERVE_ATTEMPTS; i++) {
        result = cuda->cuMemAddressReserve(&got, arena->bytes, 0, arena->device_base, 0);
        if (result == CUDA_OK && got == arena->device_base)
            break;
        if (result == CUDA_OK)
            keep_stray(cuda, arena, &strays, got);
        got = 0;
    }
    free_strays(cuda, arena, &strays);
    if (got == arena->device_base)
        return 0;
    if (result != CUDA_OK)
        return driver_error_set(why, "cuMemAddressReserve", result);
    return error_set(why, MESSAGE(device_arena_place), (unsigned long long)arena->device_base);
}

static void release_device(const struct cuda_driver *cuda, const struct arena *arena)
{
    cuda->cuMemAddressFree(arena->device_base, arena->bytes);
}

static uint32_t try_arena(const struct cuda_driver *cuda, const struct arena *arena,
                          struct error *why)
{
    uint32_t error = gpu_arena_reserve_host(arena, why);
    if (error)
        return error;
    error = gpu_arena_reserve_device(cuda, arena, why);
    if (!error)
        release_device(cuda, arena);
    release_host(arena);
    return error;
}

enum { PAIRS = sizeof pairs / sizeof *pairs, RUNGS = PAIRS * (sizeof sizes / sizeof *sizes) };

static struct arena rung_at(size_t i)
{
    return (struct arena){pairs[i % PAIRS].device_base, pairs[i % PAIRS].host_base,
                          sizes[i / PAIRS]};
}

static uint32_t refuse_named(struct error *why, const struct arena *arena, const char *cause)
{
    char size[UNITS_TEXT], device[UNITS_TEXT], host[UNITS_TEXT];
    return error_set(why, MESSAGE(arena_named_none), units_format_size(arena->bytes, size),
                     units_format_size(arena->device_base, device),
                     units_format_size(arena->host_base, host), cause);
}

static uint32_t refuse_ladder(struct error *why, const char *cause)
{
    char size[2][UNITS_TEXT], device[2][UNITS_TEXT], host[2][UNITS_TEXT];
    const struct arena ends[] = {rung_at(0), rung_at(RUNGS - 1)};
    for (size_t i = 0; i < 2; i++) {
        units_format_size(ends[i].bytes, size[i]);
        units_format_size(ends[i].device_base, device[i]);
        units_format_size(ends[i].host_base, host[i]);
    }
    return error_set(why, MESSAGE(arena_none), (int)RUNGS, size[0], device[0], host[0], size[1],
                     device[1], host[1], cause);
}

uint32_t gpu_arena_choose(const struct cuda_driver *cuda, const struct arena *only,
                          struct arena *chosen, struct error *why)
{
    struct error last;
    size_t count = only ? 1 : RUNGS;
    for (size_t i = 0; i < count; i++) {
        struct arena arena = only ? *only : rung_at(i);
        if (!try_arena(cuda, &arena, &last)) {
            *chosen = arena;
            return 0;
        }
    }
    return only ? refuse_named(why, only, last.text) : refuse_ladder(why, last.text);
}
