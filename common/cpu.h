/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * The differences between processors, x86-64 and aarch64. No other file names one, but those that
 * are made for one alone and chosen by make.
 */
#ifndef GPUSHARE_COMMON_CPU_H
#define GPUSHARE_COMMON_CPU_H

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "common/cpu.h knows x86-64 and aarch64; give it this processor's instructions"
#endif

/*
 * Within a loop that polls memory: lets the other thread of the core run and saves power, for some
 * tens of cycles. On aarch64 ISB, since YIELD does nothing on cores without threads.
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
 * Asks for the cache line at `line` as the only copy, ahead of a write to it; the address may be
 * any. On x86-64 PREFETCHW rather than __builtin_prefetch, which without -mprfchw asks for a shared
 * copy only; where a processor lacks it, it does nothing.
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
