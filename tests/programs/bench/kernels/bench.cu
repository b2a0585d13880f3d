// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// Occupies its multiprocessors for `ns` nanoseconds of the device's time.
extern "C" __global__ void occupy(unsigned long long ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    do {
        __nanosleep(500000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    } while (now - start < ns);
}

extern "C" __global__ void nothing(unsigned *a, unsigned *b, unsigned *c, unsigned count)
{
}

// Eight dependent integer operations a turn in each of four chains, nothing else to speak of.
extern "C" __global__ void arithmetic(unsigned *out, unsigned turns)
{
    unsigned a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 1
    for (unsigned i = 0; i < turns; i++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            a = a * 1664525u + b;
            b = (b ^ c) + 1013904223u;
            c = c + (d << 3);
            d = d ^ (a >> 5);
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

// Says on which multiprocessors a launch ran: the highest one, then that a block is done, after
// `ns` nanoseconds of the device's time.
extern "C" __global__ void mark(unsigned *blocks, unsigned *highest, unsigned long long ns)
{
    unsigned long long start, now;
    unsigned sm;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    do {
        __nanosleep(100000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    } while (now - start < ns);
    atomicMax(highest, sm);
    __threadfence_system();
    atomicAdd(blocks, 1u);
}

struct span {
    unsigned long long begin, end; // of the device's clock
    unsigned sm, done;
};

// Each block says where it ran, from when until when, and counts itself for its client. It sleeps `ns`
// nanoseconds in all, by what it asked for and not by the clock: a device that makes kernels last
// longer or shorter changes each sleep.
extern "C" __global__ void span(struct span *spans, unsigned *blocks, unsigned long long ns)
{
    unsigned long long start, now;
    unsigned sm;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    while (ns > 0) {
        unsigned step = ns < 1000000 ? (unsigned)ns : 1000000;
        __nanosleep(step);
        ns -= step;
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    if (threadIdx.x == 0) {
        struct span *mine = &spans[blockIdx.x];
        mine->begin = start;
        mine->end = now;
        mine->sm = sm;
        __threadfence_system();
        mine->done = 1;
        atomicAdd(blocks, 1u);
    }
}
