/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * arena: the default places of the address plan's two arenas, one for device memory and one for
 * host memory. The administrator may choose others, and the server chooses others where the driver
 * gives no memory there. The bases differ in exactly one bit, so that one mask describes a client's
 * windows in both. Each base is a multiple of the arena's size.
 *
 * ThreadSanitizer uses most of the address space for its shadow. The ranges that it leaves to
 * mappings at fixed addresses are smaller and lower.
 */
#ifndef GPUSHARE_COMMON_IPC_ARENA_H
#define GPUSHARE_COMMON_IPC_ARENA_H

#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define ARENA_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ARENA_THREAD_SANITIZER 1
#endif
#endif

#ifdef ARENA_THREAD_SANITIZER
#define ARENA_DEVICE_BASE UINT64_C(0x2000000000)
#define ARENA_HOST_BASE   UINT64_C(0x6000000000)
#define ARENA_BYTES       UINT64_C(0x2000000000) /* 128 GiB; the shadow begins behind it */
#else
#define ARENA_DEVICE_BASE UINT64_C(0x200000000000)
#define ARENA_HOST_BASE   UINT64_C(0x300000000000)
#define ARENA_BYTES       UINT64_C(0x100000000000) /* 16 TiB */
#endif

/* A pair of arenas: the address where each begins, and the size of each in bytes. */
struct arena {
    uint64_t device_base, host_base, bytes;
};

/* Whether two bases are one bit apart, and both aligned to the size, which is a power of two. */
#define ARENA_PAIR_VALID(device, host, bytes)                                                      \
    ((((device) ^ (host)) & (((device) ^ (host)) - 1)) == 0 && (device) != (host) &&               \
     ((bytes) & ((bytes)-1)) == 0 && (device) % (bytes) == 0 && (host) % (bytes) == 0)

_Static_assert(ARENA_PAIR_VALID(ARENA_DEVICE_BASE, ARENA_HOST_BASE, ARENA_BYTES),
               "the arenas are one bit apart and aligned");

#endif
