/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A program that is linked with the driver and with the runtime, and that does the same thing in
 * every way that CUDA has for it. It knows nothing of gpushare.
 *
 *   tenant fill-device   allocates device memory in every way until nothing is left
 *   tenant fill-host     the same with host memory
 *   tenant launches      launches in every way, and prints where the blocks ran
 *   tenant signals       works while signals come, whose handlers interrupt system calls
 *   tenant signals-restart   the same with handlers behind which these go on
 *   tenant endless       launches until it is ended
 *   tenant devices       prints what it has, works on it, and waits for a line
 *   tenant local         asks what the process knows
 *   tenant handles       orders work by the handles of default streams
 *   tenant once          works, and has no device node open
 *   tenant child         the same, with a child that executes it
 */
#include <string.h>

#include "tests/programs/cudart/image.h"
#include "tests/programs/tenant/tenant.h"

__asm__(".section .rodata\n"
        ".globl tenant_kernels\n"
        "tenant_kernels: .incbin \"tests/programs/tenant/kernels.ptx\"\n"
        ".byte 0\n"
        ".previous\n");

char tenant_add, tenant_where;

void tenant_begin(struct tenant *tenant)
{
    static struct image image;
    image_make(&image, tenant_kernels, 70);
    void **handle = __cudaRegisterFatBinary(&image.wrapper);
    __cudaRegisterFunction(handle, &tenant_add, (char *)"add", "add", -1, NULL, NULL, NULL, NULL,
                           NULL);
    __cudaRegisterFunction(handle, &tenant_where, (char *)"where", "where", -1, NULL, NULL, NULL,
                           NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
    tenant_load(tenant);
}

void tenant_load(struct tenant *tenant)
{
    OK(cudaFree(NULL));
    OK(cuCtxGetCurrent(&tenant->context));
    OK(cuModuleLoadData(&tenant->module, tenant_kernels));
    OK(cuModuleGetFunction(&tenant->add, tenant->module, "add"));
    OK(cuModuleGetFunction(&tenant->where, tenant->module, "where"));
}

void tenant_pause(const char *text)
{
    puts(text);
    fflush(stdout);
    for (int c = 0; c != '\n';) {
        c = getchar();
        CHECK(c != EOF);
    }
}

void show_devices(void)
{
    struct tenant tenant;
    int count, runtime_count;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    OK(cudaGetDeviceCount(&runtime_count));
    CHECK(count == runtime_count);
    for (int i = 0; i < count; i++) {
        cuda_uuid uuid;
        size_t bytes;
        OK(cuDeviceGetUuid(&uuid, i));
        OK(cuDeviceTotalMem_v2(&bytes, i));
        for (size_t at = 0; at < sizeof uuid; at++)
            printf("%02x", ((const unsigned char *)&uuid)[at]);
        printf(" %zu\n", bytes);
    }
    tenant_begin(&tenant);
    tenant_pause("ready");
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"fill-device", fill_device},
        {"fill-host", fill_host},
        {"launches", launch_everywhere},
        {"signals-restart", run_in_restarting_signals},
        {"signals", run_in_interrupting_signals},
        {"endless", launch_until_ended},
        {"devices", show_devices},
        {"local", ask_what_is_local},
        {"handles", order_by_handles},
        {"once", work_once},
        {"child", work_with_child},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (count == 2 && strcmp(words[1], modes[i].name) == 0) {
            modes[i].run();
            return 0;
        }
    fprintf(stderr, "usage: tenant MODE, one of those in tenant.c\n");
    return 2;
}
