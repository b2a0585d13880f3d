/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stray: a program with a defect, a kernel that writes where nothing is. It shows what a fault
 * costs its author: CUDA's error, the kernel's name and launch geometry, and the end of its
 * connection. While others have work on the GPU too, the server can't know yet whose kernel it was;
 * then the program's stream is interrupted like theirs, and its next fault names it.
 *
 * usage: stray
 */
#include "examples/example.h"

INCLUDE_PTX(stray_ptx, "examples/kernels/stray.ptx");

int main(void)
{
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *stray;
    gpushare_address nowhere = 0x7000000000;
    struct gpushare_dim one = {1, 1, 1};
    void *parameters[] = {&nowhere};
    unsigned faults = 0;
    CHECK(gpushare_connect(NULL, &gpu));
    CHECK(gpushare_module_load(gpu, stray_ptx, 0, &module));
    CHECK(gpushare_module_function(module, "stray", &stray));
    for (;;) {
        gpushare_error error = gpushare_launch(stray, one, one, 0, NULL, parameters);
        if (!error)
            error = gpushare_synchronize(gpu);
        if (!error) {
            fprintf(stderr, "stray: the kernel did not fault\n");
            return 1;
        }
        faults++;
        if (error != GPUSHARE_ERROR_INTERRUPTED) {
            printf("stray: %s after %u: %s\n", gpushare_error_name(error), faults,
                   gpushare_error_text());
            return error != GPUSHARE_ERROR_ILLEGAL_ADDRESS;
        }
        CHECK(gpushare_stream_recover(gpu, NULL, NULL));
    }
}
