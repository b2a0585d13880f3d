// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// Takes so long and touches nothing; asleep, so that the software GPU needs no processor for it.
extern "C" __global__ void take(unsigned long long ns)
{
    unsigned long long start, now, left = ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    do {
        __nanosleep(left < 1000000 ? (unsigned)left : 1000000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
        left = ns - (now - start);
    } while (now - start < ns);
}
