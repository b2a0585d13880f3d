/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/endless.h"

#include "tests/support/arrival.h"
#include "tests/support/kernels.h"
#include "tests/support/ok.h"

void endless_prepare(struct endless *endless, gpushare_connection *gpu)
{
    void *word;
    endless->gpu = gpu;
    OK(gpushare_host_alloc(gpu, 4096, &word));
    endless->word = word;
    atomic_store(endless->word, 0);
    endless->function = arrival_load(gpu, kernels_ptx, "until");
}

void endless_start(struct endless *endless, uint32_t blocks, uint32_t threads)
{
    struct gpushare_dim grid = {blocks, 1, 1}, block = {threads, 1, 1};
    uint64_t address = (uint64_t)(uintptr_t)endless->word;
    void *parameters[] = {&address};
    OK(gpushare_launch(endless->function, grid, block, 0, NULL, parameters));
}

void endless_end(struct endless *endless)
{
    atomic_store(endless->word, 1);
    OK(gpushare_synchronize(endless->gpu));
    gpushare_close(&endless->gpu);
}
