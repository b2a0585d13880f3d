/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Separately compiled parts, as the start-up code of nvcc -rdc=true registers them. */
#include "tests/programs/cudart/cudart.h"
#include "tests/programs/cudart/image.h"

__asm__(".section .rodata\n"
        "part_caller: .incbin \"tests/programs/cudart/part_caller.ptx\"\n"
        ".byte 0\n"
        "part_library: .incbin \"tests/programs/cudart/part_library.ptx\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char part_caller[], part_library[];

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

/* NVIDIA's device runtime has more than this variable, by which it is known. */
static const char device_runtime[] =
    HEAD ".visible .global .align 4 .u32 __CNPRT_VERSION_NUMBER__ = 6000;\n";
static const char of_device_runtime[] =
    HEAD ".extern .func (.param .b32 v) __cudaCDP2LaunchDeviceV2(.param .b32 a);\n"
         ".visible .entry fill(.param .u64 words)\n{\n"
         "\t{\n\t.param .b32 a;\n\t.param .b32 v;\n\tst.param.b32 [a], 0;\n"
         "\tcall.uni (v), __cudaCDP2LaunchDeviceV2, (a);\n\t}\n\tret;\n}\n";
static const char plain[] = HEAD ".visible .entry fill(.param .u64 words)\n{\n"
                                 "\t.reg .u64 %d;\n\tld.param.u64 %d, [words];\n"
                                 "\tst.global.u32 [%d], 77;\n\tret;\n}\n";

enum { WORDS = 32, PARTS_MAX = 4 };
#define BYTES (WORDS * sizeof(uint32_t))

/* As nvcc's link stub has it: the fatbin of nvlink, and those of the objects. */
static struct program {
    struct image linked, parts[PARTS_MAX];
    const void *list[PARTS_MAX + 1];
    void **handle;
    int *calls; /* in the place of the managed variable */
} program;
static char fill, set_base, base;
static uint32_t *words;

static void add_part(const char *text)
{
    unsigned i = 0;
    while (program.list[i])
        i++;
    image_make(&program.parts[i], text, 75);
    program.list[i] = &program.parts[i].fatbin;
}

/* linked: the text that nvlink's fatbin has; NULL: an empty fatbin. arch: of that text. */
static void begin(const char *linked, uint32_t arch)
{
    program = (struct program){0};
    image_make(&program.linked, linked ? linked : "", arch);
    if (!linked)
        program.linked.fatbin.size = 0;
    program.linked.wrapper.version = 2;
    program.linked.wrapper.pieces = program.list;
}

static void start(void)
{
    program.handle = __cudaRegisterFatBinary(&program.linked.wrapper);
    __cudaRegisterFunction(program.handle, &fill, &fill, "fill", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(program.handle, &set_base, &set_base, "set_base", -1, NULL, NULL, NULL,
                           NULL, NULL);
    __cudaRegisterVar(program.handle, &base, NULL, "base", 0, sizeof(int), 0, 0);
    __cudaRegisterFatBinaryEnd(program.handle);
}

static void end(void)
{
    EXPECT(0, cudaDeviceSynchronize());
    __cudaUnregisterFatBinary(program.handle);
}

static cudart_error launch(const char *kernel, void *parameter, unsigned threads)
{
    void *parameters[] = {parameter};
    return cudaLaunchKernel(kernel, (cudart_dim3){1, 1, 1}, (cudart_dim3){threads, 1, 1},
                            parameters, 0, NULL);
}

/* The words that part_caller.cu and part_library.cu make, in C. */
static void demand_filled(uint32_t is_base)
{
    uint32_t found[WORDS];
    EXPECT(0, launch(&fill, &words, WORDS));
    EXPECT(0, cudaMemcpy(found, words, BYTES, CUDART_DEVICE_TO_HOST));
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK(found[i] == 3 * is_base + 100 * i + 2 + (i % 2 == 0) + 1 + is_base);
}

static void run_parts(void)
{
    int number = 11;
    start();
    demand_filled(7);
    EXPECT(0, launch(&set_base, &number, 1));
    demand_filled(11);
    EXPECT(0, cudaMemcpyFromSymbol(&number, &base, sizeof number, 0, CUDART_DEVICE_TO_HOST));
    CHECK(number == 11);
    number = 20;
    EXPECT(0, cudaMemcpyToSymbol(&base, &number, sizeof number, 0, CUDART_HOST_TO_DEVICE));
    demand_filled(20);
    end();
}

static void check_orders(void)
{
    begin(NULL, 75);
    add_part(part_caller);
    add_part(part_library);
    run_parts();
    begin(NULL, 75);
    add_part(part_library);
    add_part(device_runtime);
    add_part(part_caller);
    run_parts();
}

/* The code of nvlink is for another device, and then for this one: the parts are not looked at. */
static void check_linked(void)
{
    uint32_t word = 0;
    begin(plain, 200);
    add_part(part_caller);
    add_part(part_library);
    run_parts();
    begin(plain, 75);
    add_part("nonsense");
    start();
    EXPECT(0, launch(&fill, &words, 1));
    EXPECT(0, cudaMemcpy(&word, words, sizeof word, CUDART_DEVICE_TO_HOST));
    CHECK(word == 77);
    end();
}

static void check_managed(void)
{
    begin(NULL, 75);
    add_part(part_caller);
    add_part(part_library);
    program.handle = __cudaRegisterFatBinary(&program.linked.wrapper);
    __cudaRegisterFunction(program.handle, &fill, &fill, "fill", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterManagedVar(program.handle, (void **)&program.calls, NULL, "calls", 0, sizeof(int),
                             0, 0);
    __cudaRegisterFatBinaryEnd(program.handle);
    CHECK(__cudaInitModule(program.handle) != 0 && program.calls);
    CHECK(*(volatile int *)program.calls == 5);
    demand_filled(7);
    EXPECT(0, cudaDeviceSynchronize());
    CHECK(*(volatile int *)program.calls == 5 + WORDS);
    end();
}

/* The log says which case the sentences behind are about: test_cudart.py reads them. */
static void demand_refused(const char *which)
{
    fprintf(stderr, "parts: %s\n", which);
    start();
    cudart_error error = launch(&fill, &words, 1);
    fprintf(stderr, "parts: %s\n", cudaGetErrorName(error));
    CHECK(error != CUDART_OK && cudaGetLastError() == error);
    end();
}

static void check_refusals(void)
{
    begin(NULL, 75);
    add_part(device_runtime);
    add_part(part_caller);
    demand_refused("a part is missing");
    begin(NULL, 75);
    add_part(part_caller);
    add_part(part_library);
    add_part(part_library);
    demand_refused("a part is there twice");
    begin(NULL, 75);
    add_part(of_device_runtime);
    add_part(device_runtime);
    demand_refused("a kernel launches kernels");
    begin(NULL, 75);
    add_part(part_caller);
    add_part(part_library);
    program.parts[1].fatbin.payload_bytes++;
    demand_refused("an entry is longer than its fatbin");
    begin(NULL, 75);
    add_part(part_caller);
    add_part(part_library);
    program.parts[1].fatbin.magic++;
    demand_refused("a part is no fatbin");
    begin(NULL, 75);
    add_part(part_caller);
    add_part(part_library);
    program.parts[1].fatbin.arch = 200;
    demand_refused("a part is for other devices");
    begin(NULL, 75);
    demand_refused("no part");
}

void check_parts(void)
{
    EXPECT(0, cudaMalloc((void **)&words, BYTES));
    check_orders();
    check_linked();
    check_managed();
    check_refusals();
    EXPECT(0, cudaFree(words));
}
