// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// Counts on which multiprocessor each block ran, and stays there for ns nanoseconds.
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

// Ends at once.
extern "C" __global__ void nothing()
{
}

// Runs for ns nanoseconds, then writes value where the host can see it.
extern "C" __global__ void flag(volatile unsigned long long *word, unsigned long long value,
                                unsigned long long ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    do {
        __nanosleep(1000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    } while (now - start < ns);
    *word = value;
    __threadfence_system();
}

// Runs until the host writes to the word, for eight seconds at most: a thread that a launch beside
// it has blocked gets free again.
extern "C" __global__ void until(volatile unsigned *word)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    do {
        __nanosleep(100000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    } while (*word == 0 && now - start < 8000000000ull);
}

// Has 8 KiB of local memory a thread, addressed so that no compiler can do without it.
extern "C" __global__ void deep(unsigned *out, unsigned step)
{
    volatile unsigned local[2048];
    unsigned sum = 0;
    for (unsigned i = 0; i < 2048; i += 64)
        local[(i * step) % 2048] = i;
    for (unsigned i = 0; i < 2048; i += 64)
        sum += local[(i * step) % 2048];
    out[threadIdx.x] = sum;
}

// Has shared memory whose maximum can be raised.
extern "C" __global__ void sharing(unsigned *out)
{
    extern __shared__ unsigned shared[];
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = shared[threadIdx.x ^ 1];
}

// Writes to an address where nothing is.
extern "C" __global__ void stray(unsigned *address)
{
    *address = 1;
}

// Counts up in memory until its process is killed.
extern "C" __global__ void endless(volatile unsigned long long *word)
{
    for (;;) {
        *word = *word + 1;
        __nanosleep(1000);
    }
}

struct span {
    unsigned long long begin, end; // of the device's clock, ns
    unsigned sm, pad;
};

// Each block stays for ns nanoseconds and writes from when until when, and on which multiprocessor. It
// sleeps long, for on the software GPU each turn of the loop costs CPU time.
extern "C" __global__ void spans(struct span *spans, unsigned *count, unsigned room,
                                 unsigned long long ns)
{
    unsigned long long start, now;
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    do {
        __nanosleep(200000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    } while (now - start < ns);
    if (threadIdx.x == 0) {
        unsigned i = atomicAdd(count, 1u);
        if (i < room) {
            spans[i].begin = start;
            spans[i].end = now;
            spans[i].sm = sm;
        }
    }
}
