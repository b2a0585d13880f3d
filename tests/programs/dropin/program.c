/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A program that is linked with libcuda.so.1 and knows nothing of gpushare; it runs on the software
 * GPU alone too. It exits with 0 if
 * every call did what CUDA's does; otherwise it names the first that did not.
 *
 *   program calls          goes through the driver API
 *   program share          prints its multiprocessors and the bytes of memory that it may have
 *   program takes          allocates the MiB that a line says, and prints what is free, for each
 *   program cooperative    launches cooperative grids, and prints the blocks of the largest
 *   program fault          faults, and demands CUDA's sticky error from then on
 *   program steady         counts until its standard input ends, then prints how often it did
 *   program idle           waits for its standard input, and goes on
 *   program absent         calls functions that are not carried
 *   program peers          copies between two devices
 *   program table          has a library ask for an undocumented table, twice, and asks too
 *   program link FILE...   links files of PTX, and prints the text that they make
 *   program run FILE...    links files of PTX, and prints the words that the kernel k makes
 *   program keep           keeps three eighths of the memory idle until its standard input ends
 *   program fill           has three quarters of the memory
 *   program waits          has streams that wait for values
 *   program waits-reset    ends a context with a stream that waits
 *   program wait-host      has streams that wait until standard input ends, for a value on the host
 *   program wait-device    the same, for one on the device
 *   program print-...      has kernels that print (check_print.c)
 *   program heap-...       has kernels that allocate memory (check_heap.c)
 *   program stack-...      sets the limit of stacks (check_heap.c)
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/dropin/dropin.h"

/* They are in no table of ours. */
cuda_result cuGraphCreate(void *graph, unsigned flags);
cuda_result cuStreamBeginCapture_v2_ptsz(cuda_stream stream, int mode);

__asm__(".section .rodata\n"
        ".globl dropin_kernels\n"
        "dropin_kernels: .incbin \"tests/programs/dropin/kernels.ptx\"\n"
        ".byte 0\n"
        ".previous\n");

bool is_served(void)
{
    return dlsym(RTLD_DEFAULT, "gpushare_dropin_marker") != NULL;
}

void begin(struct work *work)
{
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&work->context, 0));
    OK(cuCtxSetCurrent(work->context));
    OK(cuModuleLoadData(&work->module, dropin_kernels));
    OK(cuModuleGetFunction(&work->count, work->module, "count"));
    OK(cuMemAlloc_v2(&work->words, BYTES));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
}

cuda_result count(const struct work *work, uint32_t times, cuda_stream stream)
{
    void *parameters[] = {(void *)&work->words, &times};
    return cuLaunchKernel(work->count, 1, 1, 1, WORDS, 1, 1, 0, stream, parameters, NULL);
}

void demand(const struct work *work, uint32_t word)
{
    uint32_t found[WORDS];
    OK(cuMemcpyDtoH_v2(found, work->words, BYTES));
    for (int i = 0; i < WORDS; i++)
        CHECK(found[i] == word);
}

static void calls(void)
{
    struct work work;
    check_before_init();
    check_devices();
    check_contexts();
    check_crossing();
    check_reset();
    OK(cuDevicePrimaryCtxReset_v2(0));
    check_libraries();
    begin(&work);
    check_pools();
    begin(&work);
    check_freed(&work);
    check_copies(&work);
    check_pointers(&work);
    check_registered(&work);
    check_blocks();
    check_streams(&work);
    check_kernels(&work);
    check_lookup();
    check_fork();
    demand(&work, 15);
    check_attributes(&work);
    check_functions(&work);
    check_full(&work);
    check_sync_memory(&work);
    check_per_thread(&work);
    check_managed(&work);
    check_variables();
    check_elements();
    check_enumeration(&work);
    check_stream_attributes(&work);
    check_values(&work);
    check_occupancy(&work);
    check_link(&work);
    check_old_launches(&work);
    check_batches(&work);
    check_block_copies(&work);
    check_rest(&work);
    OK(cuModuleUnload(work.module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

static void waits(void)
{
    struct work work;
    begin(&work);
    check_waits(&work);
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

static void share(void)
{
    int multiprocessors;
    size_t bytes, free_bytes, total;
    struct work work;
    begin(&work);
    OK(cuDeviceGetAttribute(&multiprocessors, CUDA_ATTR_MULTIPROCESSOR_COUNT, 0));
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    OK(cuMemGetInfo_v2(&free_bytes, &total));
    CHECK(total == bytes && free_bytes < total);
    cuda_device_ptr ptr;
    EXPECT(CUDA_ERR_OUT_OF_MEMORY, cuMemAlloc_v2(&ptr, total + 1));
    printf("%d %zu\n", multiprocessors, bytes);
}

static void takes(void)
{
    unsigned mib;
    size_t bytes, free_bytes, total;
    cuda_context context;
    cuda_device_ptr ptr;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    puts("ready");
    while (fflush(stdout), scanf("%u", &mib) == 1) {
        const cuda_result result = mib ? cuMemAlloc_v2(&ptr, (size_t)mib << 20) : CUDA_OK;
        OK(cuDeviceTotalMem_v2(&bytes, 0));
        OK(cuMemGetInfo_v2(&free_bytes, &total));
        printf("%d %zu %zu %zu\n", result, bytes, total, free_bytes);
    }
}

static void cooperative(void)
{
    struct work work;
    begin(&work);
    printf("%u\n", check_cooperative(&work));
}

/* Every call on the context returns the same, but for those that end it. */
static void fault(void)
{
    struct work work;
    cuda_function stray;
    cuda_device_ptr ptr;
    cuda_stream stream;
    begin(&work);
    OK(cuModuleGetFunction(&stray, work.module, "stray"));
    OK(cuCtxSynchronize());
    OK(cuLaunchKernel(stray, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&ptr, 1));
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, count(&work, 1, NULL));
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, cuStreamCreate(&stream, 0));
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, cuModuleUnload(work.module));
    OK(cuDevicePrimaryCtxReset_v2(0));
    begin(&work);
    OK(count(&work, 1, NULL));
    demand(&work, 8);
}

/* Ends at the first error, as a CUDA program does. */
static void steady(void)
{
    struct work work;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    uint32_t times = 0;
    begin(&work);
    demand(&work, 7);
    printf("ready\n");
    fflush(stdout);
    do {
        OK(count(&work, 1, NULL));
        demand(&work, 7 + ++times);
    } while (poll(&input, 1, 0) == 0);
    printf("%u\n", times);
}

/* Idle meanwhile, so it loses nothing. */
static void idle(void)
{
    struct work work;
    begin(&work);
    OK(count(&work, 1, NULL));
    demand(&work, 8);
    printf("ready\n");
    fflush(stdout);
    (void)!read(STDIN_FILENO, &(char){0}, 1);
    OK(count(&work, 1, NULL));
    demand(&work, 9);
    printf("right\n");
}

/* Twice each: it is named once. */
static void absent(void)
{
    for (int i = 0; i < 2; i++) {
        EXPECT(CUDA_ERR_NOT_SUPPORTED, cuGraphCreate(NULL, 0));
        EXPECT(CUDA_ERR_NOT_SUPPORTED, cuStreamBeginCapture_v2_ptsz(NULL, 0));
    }
}

/* The first that asks is named, which is the library. */
static void table(void)
{
    static const cuda_uuid id;
    const void *found = &id;
    cuda_result (*ask)(const void **table, const cuda_uuid *id);
    void *library = dlopen("libasker.so", RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    *(void **)&ask = dlsym(library, "asker_ask");
    CHECK(ask);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuGetExportTable(&found, NULL));
    EXPECT(CUDA_ERR_NOT_FOUND, ask(&found, &id));
    CHECK(!found);
    EXPECT(CUDA_ERR_NOT_FOUND, ask(&found, &id));
    EXPECT(CUDA_ERR_NOT_FOUND, cuGetExportTable(&found, &id));
}

int main(int count_of_words, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"calls", calls},
                 {"share", share},
                 {"takes", takes},
                 {"cooperative", cooperative},
                 {"fault", fault},
                 {"steady", steady},
                 {"idle", idle},
                 {"absent", absent},
                 {"peers", check_peers},
                 {"table", table},
                 {"keep", keep_idle},
                 {"fill", fill_memory},
                 {"waits", waits},
                 {"waits-reset", check_waits_reset},
                 {"wait-host", wait_on_host},
                 {"wait-device", wait_on_device},
                 {"print-all", print_all},
                 {"print-more", print_more},
                 {"print-own", print_own},
                 {"print-overflow", print_overflow},
                 {"print-fault", print_fault},
                 {"heap-calls", heap_calls},
                 {"heap-kept", heap_kept},
                 {"heap-together", heap_together},
                 {"heap-twice", heap_twice},
                 {"heap-limit", heap_limit},
                 {"stack-limit", stack_limit},
                 {"stack-too-large", stack_too_large}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (count_of_words == 2 && !strcmp(words[1], modes[i].name)) {
            modes[i].run();
            return 0;
        }
    if (count_of_words > 2 && !strcmp(words[1], "link")) {
        print_linked(count_of_words - 2, words + 2);
        return 0;
    }
    if (count_of_words > 2 && !strcmp(words[1], "run")) {
        run_linked(count_of_words - 2, words + 2);
        return 0;
    }
    fprintf(stderr, "usage: program MODE, one of those in program.c\n");
    return 2;
}
