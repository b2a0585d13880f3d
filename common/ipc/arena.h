/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * arena: where the address plan's two arenas lie unless the administrator says
 * otherwise. The bases differ in exactly one bit, so that a fence around a client's
 * two windows is one mask; both are a multiple of the arena's size.
 *
 * ThreadSanitizer keeps most of the address space for its shadow; what it leaves to
 * mappings at fixed addresses is smaller and lower.
 */
#ifndef GPUSHARE_COMMON_ARENA_H
#define GPUSHARE_COMMON_ARENA_H

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
#define ARENA_BYTES       UINT64_C(0x2000000000) /* 128 GiB: it ends where the shadow begins */
#else
#define ARENA_DEVICE_BASE UINT64_C(0x200000000000)
#define ARENA_HOST_BASE   UINT64_C(0x300000000000)
#define ARENA_BYTES       UINT64_C(0x100000000000) /* 16 TiB */
#endif

/* One bit apart, and each aligned to the size of both. */
#define ARENA_PAIR_VALID(device, host, bytes)                                                      \
    ((((device) ^ (host)) & (((device) ^ (host)) - 1)) == 0 && (device) != (host) &&               \
     ((bytes) & ((bytes)-1)) == 0 && (device) % (bytes) == 0 && (host) % (bytes) == 0)

_Static_assert(ARENA_PAIR_VALID(ARENA_DEVICE_BASE, ARENA_HOST_BASE, ARENA_BYTES),
               "the arenas are one bit apart and aligned");

#endif
