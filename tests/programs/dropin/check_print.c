/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Kernels that print. tests/integration/test_print.py reads it. */
#include <string.h>
#include <unistd.h>

#include "tests/programs/dropin/dropin.h"

__asm__(".section .rodata\n"
        ".globl dropin_print\n"
        "dropin_print: .incbin \"tests/programs/dropin/print.ptx\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char dropin_print[];

static cuda_module load(void)
{
    cuda_module module;
    cuda_context context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, dropin_print));
    return module;
}

static void launch(cuda_module module, const char *name, unsigned threads, void **parameters)
{
    cuda_function function;
    OK(cuModuleGetFunction(&function, module, name));
    OK(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
}

static cuda_device_ptr text_on_device(size_t bytes, char letter)
{
    cuda_device_ptr text;
    OK(cuMemAlloc_v2(&text, bytes));
    OK(cuMemsetD8_v2(text, (unsigned char)letter, bytes - 1));
    OK(cuMemsetD8_v2(text + bytes - 1, 0, 1));
    return text;
}

void print_all(void)
{
    cuda_module module = load();
    int number = 77, steps = 3, name = 1, first = 5;
    double real = 1234.5678;
    cuda_device_ptr text = text_on_device(5, 'q');
    void *all[] = {&number, &real, &text}, *ordered[] = {&steps}, *lines[] = {&name, &first};
    launch(module, "print_all", 32, all);
    OK(cuCtxSynchronize());
    printf("the context is synchronized\n");
    launch(module, "print_ordered", 40, ordered);
    OK(cuStreamSynchronize(NULL));
    printf("the stream is synchronized\n");
    launch(module, "print_lines", 1, lines);
    OK(cuModuleUnload(module));
    printf("the module is unloaded\n");
    first++;
    OK(cuModuleLoadData(&module, dropin_print));
    launch(module, "print_lines", 1, lines);
    OK(cuMemFree_v2(text));
    OK(cuDevicePrimaryCtxReset_v2(0));
    printf("the context is reset\n");
}

/* Formats that the software GPU alone does not know, and a text that is longer than the ring. */
void print_more(void)
{
    cuda_module module = load();
    int number = 77;
    double real = 2.75;
    cuda_device_ptr huge = text_on_device((1 << 20) + 1, 'h');
    void *parameters[] = {&number, &real, &huge};
    size_t bytes = 0;
    launch(module, "print_more", 1, parameters);
    OK(cuCtxSynchronize());
    OK(cuCtxGetLimit(&bytes, CUDA_LIMIT_PRINTF_FIFO_SIZE));
    CHECK(bytes == 1 << 20);
    OK(cuCtxSetLimit(CUDA_LIMIT_PRINTF_FIFO_SIZE, 1 << 20));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuCtxSetLimit(CUDA_LIMIT_PRINTF_FIFO_SIZE, 1 << 21));
}

/* In many rounds, so that several processes print at once; it exits without a word of its own. */
void print_own(void)
{
    cuda_module module = load();
    int name = (int)getpid();
    for (int first = 0; first < 64 * 50; first += 64) {
        void *parameters[] = {&name, &first};
        launch(module, "print_lines", 64, parameters);
        OK(cuStreamSynchronize(NULL));
    }
}

/* More than the ring holds. */
void print_overflow(void)
{
    cuda_context context;
    int name = 3, lines = 5000;
    size_t bytes = 0;
    void *parameters[] = {&name, &lines};
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuCtxSetLimit(CUDA_LIMIT_PRINTF_FIFO_SIZE, (size_t)1 << 40));
    OK(cuCtxSetLimit(CUDA_LIMIT_PRINTF_FIFO_SIZE, 60000));
    OK(cuCtxGetLimit(&bytes, CUDA_LIMIT_PRINTF_FIFO_SIZE));
    CHECK(bytes == 65536);
    cuda_module module;
    OK(cuModuleLoadData(&module, dropin_print));
    for (int round = 0; round < 2; round++) {
        launch(module, "print_loop", 1, parameters);
        OK(cuCtxSynchronize());
        printf("synchronized\n");
    }
}

void print_fault(void)
{
    cuda_module module = load();
    int name = 7, first = 1;
    void *lines[] = {&name, &first}, *stray[] = {&name};
    launch(module, "print_lines", 3, lines);
    OK(cuCtxSynchronize());
    launch(module, "print_and_stray", 1, stray);
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    printf("the fault is seen\n");
    OK(cuDevicePrimaryCtxReset_v2(0));
    module = load();
    first = 9;
    launch(module, "print_lines", 1, lines);
    OK(cuCtxSynchronize());
}
