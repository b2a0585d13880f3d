/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Does a fresh process get the same fixed range, at its real size, from
 * cuMemAddressReserve every time right after cuInit, still after the context is made;
 * and can the host arena be mapped too?
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/question.h"

enum { TRIES = 100, BAD_HOST = 2, BAD_DEVICE = 3, BAD_USE = 4 };

static int attempt(int argc, char **argv)
{
    void *host = mmap((void *)(uintptr_t)QUESTION_HOST_BASE, QUESTION_ARENA_BYTES, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (host != (void *)(uintptr_t)QUESTION_HOST_BASE)
        return BAD_HOST;
    question_open(argc, argv);
    cuda_device_ptr base = 0;
    if (cu.cuMemAddressReserve(&base, QUESTION_ARENA_BYTES, 0, QUESTION_DEVICE_BASE, 0) !=
            CUDA_OK ||
        base != QUESTION_DEVICE_BASE)
        return BAD_DEVICE;
    question_context();
    cuda_mem_allocation_prop properties = question_properties();
    size_t bytes = question_granularity();
    cuda_mem_handle handle;
    CU(cu.cuMemCreate(&handle, bytes, &properties, 0));
    cuda_device_ptr end = base + QUESTION_ARENA_BYTES - bytes;
    question_map(end, bytes, handle);
    unsigned value = 0;
    CU(cu.cuMemsetD32(end, 0x12345678, bytes / 4));
    CU(cu.cuMemcpyDtoH(&value, end + bytes - 4, 4));
    return value == 0x12345678 ? 0 : BAD_USE;
}

int main(int argc, char **argv)
{
    int good = 0, counts[8] = {0};
    if (argc == 3 && !strcmp(argv[2], "attempt"))
        return attempt(argc, argv);
    for (int i = 0; i < TRIES; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", argv[0], argc > 1 ? argv[1] : "", "attempt", (char *)NULL);
            _exit(7);
        }
        waitpid(child, &status, 0);
        int code = WIFEXITED(status) && WEXITSTATUS(status) < 8 ? WEXITSTATUS(status) : 7;
        if (code == 1 || code == 7)
            question_die("attempt %d could not run", i + 1);
        counts[code]++;
        good += code == 0;
    }
    printf("question 1: %s: %d of %d processes had both arenas of 16 TiB at their addresses (host "
           "refused %d, device "
           "elsewhere %d, not usable %d)\n",
           good == TRIES ? "yes" : "no", good, TRIES, counts[BAD_HOST], counts[BAD_DEVICE],
           counts[BAD_USE]);
    return 0;
}
