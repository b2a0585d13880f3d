// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// Counts on which multiprocessor each block ran, and stays there a while.
extern "C" __global__ void where(unsigned *histogram, unsigned long long ns)
{
    unsigned sm;
    unsigned long long start, now;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    if (threadIdx.x == 0)
        atomicAdd(&histogram[sm], 1u);
    do {
        __nanosleep(10000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    } while (now - start < ns);
}

// Runs for ns nanoseconds and touches nothing.
extern "C" __global__ void last(unsigned long long ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    do {
        __nanosleep(10000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    } while (now - start < ns);
}

// Writes to an address where nothing is.
extern "C" __global__ void stray(unsigned *address)
{
    *address = 1;
}

// Counts up in memory until it is killed.
extern "C" __global__ void endless(volatile unsigned long long *word)
{
    for (;;) {
        *word = *word + 1;
        __nanosleep(1000);
    }
}
