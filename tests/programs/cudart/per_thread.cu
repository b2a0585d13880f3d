// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// A CUDA program whose threads have default streams of their own, if nvcc is told so. One thread's kernel waits for
// the kernel that another thread launches behind it, but no longer than the program's argument says, in
// milliseconds. The program prints what the first kernel saw: 7, or 0 if it waited in vain.
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            std::printf("%s: %s\n", #call, cudaGetErrorName(error_));                              \
            std::exit(2);                                                                          \
        }                                                                                          \
    } while (0)

__device__ int value;

__global__ void await_word(const volatile int *word, int *seen, unsigned long long limit_ns)
{
    unsigned long long begin, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        *seen = *word;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (*seen == 0 && now - begin < limit_ns);
}

__global__ void set_word(volatile int *word)
{
    *word = value;
}

static void set_second(int *word, std::promise<void> ready, std::future<void> first_launched)
{
    const int seven = 7;

    // The thread's stream is made here: making it may wait for the device.
    set_word<<<1, 1>>>(word);
    CHECK(cudaStreamSynchronize(0));
    ready.set_value();
    first_launched.wait();
    CHECK(cudaMemcpyToSymbol(value, &seven, sizeof(seven)));
    set_word<<<1, 1>>>(word);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(0));
}

int main(int argc, char **argv)
{
    const unsigned long long limit_ns = argc > 1 ? std::atoll(argv[1]) * 1000000ULL : 0;
    std::promise<void> ready, first_launched;
    int *word, *word_on_device, *seen, found = -1;

    CHECK(cudaHostAlloc(&word, sizeof(*word), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&word_on_device, word, 0));
    CHECK(cudaMalloc(&seen, sizeof(*seen)));
    // What is loaded at its first use is loaded here.
    set_word<<<1, 1>>>(word_on_device);
    await_word<<<1, 1>>>(word_on_device, seen, 0);
    CHECK(cudaDeviceSynchronize());
    *word = 0;

    std::future<void> second_ready = ready.get_future();
    std::thread second(set_second, word_on_device, std::move(ready), first_launched.get_future());
    second_ready.wait();
    await_word<<<1, 1>>>(word_on_device, seen, limit_ns);
    CHECK(cudaGetLastError());
    first_launched.set_value();
    CHECK(cudaMemcpy(&found, seen, sizeof(found), cudaMemcpyDeviceToHost));
    second.join();
    std::printf("%d\n", found);
    return *word == 7 ? 0 : 1;
}
