/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * cpu: the operations that differ between x86-64 and aarch64. No other file asks for the processor,
 * except files that are written for one processor and chosen by make.
 */
#ifndef GPUSHARE_COMMON_CPU_H
#define GPUSHARE_COMMON_CPU_H

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "common/cpu.h knows x86-64 and aarch64; give it this processor's instructions"
#endif

/*
 * Call it in a loop that polls memory. It lets the core's other hardware thread run, and saves
 * power, for some tens of cycles. aarch64 uses ISB, because YIELD does nothing on cores without
 * hardware threads.
 */
static inline void cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("isb" ::: "memory");
#endif
}

/*
 * Fetches the cache line at `line` into this core as the only copy, ahead of a write to it. Any
 * address is allowed, also one that is not mapped. x86-64 uses PREFETCHW: __builtin_prefetch asks
 * for a shared copy unless the compiler has -mprfchw. A processor without PREFETCHW ignores the
 * instruction.
 */
static inline void cpu_prefetch_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1, 3);
#endif
}

#endif
