/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Starts on machines that are not as they should be: their actions and their sentences. */
#include "tests/unit/worker/fake.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/error.h"
#include "server/worker/device/device_list.h"
#include "common/cuda/driver_error.h"
#include "server/worker/device/gpu.h"
#include "server/worker/device/gpu_arena.h"
#include "server/worker/device/start_check.h"
#include "tests/unit/worker/whole_gpu.h"

#define TIB (UINT64_C(1) << 40)
#define GIB (UINT64_C(1) << 30)

static struct cuda_driver driver;

static int setup(void **state)
{
    (void)state;
    fake_reset();
    driver = fake_driver();
    return 0;
}

static void says(const struct error *why, const char *words)
{
    if (!strstr(why->text, words))
        fail_msg("no \"%s\" in: %s", words, why->text);
}

/* ---- address ranges ---- */

static struct {
    uint64_t base, most; /* of a range that is given; 0, 0: none */
    unsigned strays;     /* answers elsewhere before the first that is right */
    cuda_result otherwise;
    unsigned calls, freed;
} given;

static cuda_result reserve(cuda_device_ptr *ptr, size_t size, size_t align, cuda_device_ptr hint,
                           unsigned long long flags)
{
    (void)align;
    (void)flags;
    given.calls++;
    if (hint == given.base && size <= given.most && !given.strays) {
        *ptr = hint;
        return CUDA_OK;
    }
    if (given.strays)
        given.strays--;
    *ptr = UINT64_C(0x7000000000000000);
    return given.otherwise;
}

static cuda_result free_address(cuda_device_ptr ptr, size_t size)
{
    (void)ptr;
    (void)size;
    given.freed++;
    return CUDA_OK;
}

static uint32_t choose(const struct arena *only, struct arena *chosen, struct error *why)
{
    driver.cuMemAddressReserve = reserve;
    driver.cuMemAddressFree = free_address;
    given.calls = given.freed = 0;
    return gpu_arena_choose(&driver, only, chosen, why);
}

#ifndef ARENA_THREAD_SANITIZER
/* AddressSanitizer has memory of its own in some of the ranges. */
static bool host_is_free(uint64_t base, uint64_t bytes)
{
    if (shm_reserve(base, bytes) < 0)
        return false;
    munmap((void *)(uintptr_t)base, bytes);
    return true;
}

static void the_first_range_that_is_given_is_taken(void **state)
{
    (void)state;
    static const struct {
        uint64_t base, most;
        struct arena expected;
    } rows[] = {
        {32 * TIB, 64 * TIB, {32 * TIB, 48 * TIB, 16 * TIB}},
        {16 * TIB, 64 * TIB, {16 * TIB, 48 * TIB, 16 * TIB}},
        {64 * TIB, 64 * TIB, {64 * TIB, 96 * TIB, 16 * TIB}},
        {32 * TIB, 4 * TIB, {32 * TIB, 48 * TIB, 4 * TIB}},
        {16 * TIB, 15 * TIB, {16 * TIB, 48 * TIB, 4 * TIB}},
        {64 * TIB, TIB, {64 * TIB, 96 * TIB, TIB}},
    };
    static const cuda_result answers[] = {CUDA_OK, CUDA_ERR_INVALID_VALUE, CUDA_ERR_OUT_OF_MEMORY};
    size_t tried = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!host_is_free(rows[i].expected.host_base, rows[i].expected.bytes))
            continue;
        tried++;
        for (size_t j = 0; j < sizeof answers / sizeof *answers; j++) {
            struct arena chosen;
            struct error why = {0};
            given.base = rows[i].base;
            given.most = rows[i].most;
            given.otherwise = answers[j];
            assert_int_equal(choose(NULL, &chosen, &why), 0);
            assert_memory_equal(&chosen, &rows[i].expected, sizeof chosen);
            /* Nothing stays reserved, here or at the driver. */
            if (answers[j] == CUDA_OK)
                assert_int_equal(given.freed, given.calls);
            assert_int_equal(shm_reserve(chosen.host_base, chosen.bytes), 0);
            munmap((void *)(uintptr_t)chosen.host_base, chosen.bytes);
        }
    }
    assert_true(tried >= 4);
}

static void host_addresses_in_use_go_a_rung_down(void **state)
{
    (void)state;
    struct arena chosen;
    struct error why = {0};
    given.base = 16 * TIB;
    given.most = 16 * TIB;
    given.otherwise = CUDA_ERR_INVALID_VALUE;
    /* 48 to 64 TiB is not free, but its first 4 TiB are. */
    assert_int_equal(shm_reserve(60 * TIB, GIB), 0);
    assert_int_equal(choose(NULL, &chosen, &why), 0);
    munmap((void *)(uintptr_t)(60 * TIB), GIB);
    assert_int_equal(chosen.bytes, 4 * TIB);
    assert_int_equal(chosen.device_base, 16 * TIB);
}

static void a_refusal_names_both_ends_of_the_ladder(void **state)
{
    (void)state;
    struct arena chosen;
    struct error why = {0};
    static const uint64_t sizes[] = {16 * TIB, 4 * TIB, TIB};
    /* AddressSanitizer's own memory lies at some of these addresses, and the driver is not asked
     * about those. */
    int free_at_48 = 0, free_at_96 = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        free_at_48 += host_is_free(48 * TIB, sizes[i]);
        free_at_96 += host_is_free(96 * TIB, sizes[i]);
    }
    given.most = 0;
    given.otherwise = CUDA_ERR_INVALID_VALUE;
    assert_int_equal(choose(NULL, &chosen, &why), PROTO_ERROR_DEVICE_NOT_READY);
    assert_int_equal(given.calls, 16 * (2 * free_at_48 + free_at_96));
    says(&why, "none of 9 pairs");
    says(&why, "from 16T each at 32T and 48T down to 1T each at 64T and 96T:");
    says(&why, "--device-base");
    if (host_is_free(96 * TIB, TIB))
        says(&why, "CUDA_ERROR_INVALID_VALUE");
}
#endif

static void a_named_range_is_tried_alone(void **state)
{
    (void)state;
    const struct arena named = {ARENA_DEVICE_BASE, ARENA_HOST_BASE, GIB};
    struct arena chosen;
    struct error why = {0};
    given.base = ARENA_DEVICE_BASE;
    given.most = GIB;
    given.otherwise = CUDA_OK;
    assert_int_equal(choose(&named, &chosen, &why), 0);
    assert_memory_equal(&chosen, &named, sizeof named);
    given.most = 0;
    assert_int_equal(choose(&named, &chosen, &why), PROTO_ERROR_DEVICE_NOT_READY);
    says(&why, "1G each at ");
    says(&why, "can't be had");
    assert_int_equal(given.calls, 16);
}

/* The choice is made in one process and used in another, whose first answers may differ. */
static void errors_and_strays_are_asked_again(void **state)
{
    (void)state;
    const struct arena arena = {64 * GIB, 128 * GIB, GIB};
    static const cuda_result answers[] = {CUDA_OK, CUDA_ERR_INVALID_VALUE};
    driver.cuMemAddressReserve = reserve;
    driver.cuMemAddressFree = free_address;
    for (size_t i = 0; i < 2; i++) {
        struct error why = {0};
        given.base = 64 * GIB;
        given.most = GIB;
        given.otherwise = answers[i];
        given.strays = 5;
        given.freed = 0;
        assert_int_equal(gpu_arena_reserve_device(&driver, &arena, &why), 0);
        assert_int_equal(given.freed, answers[i] == CUDA_OK ? 5 : 0);
    }
}

/* ---- what cuInit answers ---- */

static void each_refusal_of_cuinit_names_a_remedy(void **state)
{
    (void)state;
    static const struct {
        cuda_result result;
        const char *words, *name;
    } rows[] = {
        {CUDA_ERR_STUB_LIBRARY, "stub", "CUDA_ERROR_STUB_LIBRARY"},
        {CUDA_ERR_NO_DEVICE, "nvidia-smi", "CUDA_ERROR_NO_DEVICE"},
        {CUDA_ERR_INVALID_DEVICE, "MIG", "CUDA_ERROR_INVALID_DEVICE"},
        {CUDA_ERR_SYSTEM_NOT_READY, "nvidia-fabricmanager", "CUDA_ERROR_SYSTEM_NOT_READY"},
        {CUDA_ERR_SYSTEM_DRIVER_MISMATCH, "restart the machine",
         "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
        {CUDA_ERR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "--driver",
         "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
        {CUDA_ERR_UNKNOWN, "gpushare-devices.service", "CUDA_ERROR_UNKNOWN"},
        {CUDA_ERR_OUT_OF_MEMORY, "cuInit", "CUDA_ERROR_OUT_OF_MEMORY"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error why = {0};
        assert_int_equal(driver_error_set_init(&why, rows[i].result),
                         error_from_cuda((int)rows[i].result));
        says(&why, rows[i].words);
        says(&why, rows[i].name);
    }
}

/* ---- a context that can't be had ---- */

static int compute_mode, host_access;

static cuda_result told_attribute(int *value, cuda_device_attribute which, cuda_device device)
{
    if (which == CUDA_ATTR_COMPUTE_MODE)
        return *value = compute_mode, CUDA_OK;
    if (which == CUDA_ATTR_PAGEABLE_MEMORY_ACCESS)
        return *value = host_access, CUDA_OK;
    return fake_cuDeviceGetAttribute(value, which, device);
}

static cuda_result retained;

static cuda_result retain(cuda_context *context, cuda_device device)
{
    (void)context;
    (void)device;
    return retained;
}

/* A process that looks like MPS's control daemon. */
static pid_t daemon_start(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "nvidia-cuda-mps-control");
        if (write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    assert_true(pid > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void daemon_end(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void open_refused(int mode, cuda_result result, uint32_t number, const char *words)
{
    struct gpu gpu;
    struct error why = {0};
    compute_mode = mode;
    retained = result;
    driver.cuDeviceGetAttribute = told_attribute;
    driver.cuDevicePrimaryCtxRetain = retain;
    const struct gpu_options options = {
        &driver, 0, NULL, {ARENA_DEVICE_BASE, ARENA_HOST_BASE, GIB}, 0};
    assert_int_equal(whole_gpu_open(&gpu, &options, &why), number);
    says(&why, words);
    /* The reserved ranges were given back. */
    assert_int_equal(shm_reserve(ARENA_HOST_BASE, GIB), 0);
    assert_int_equal(shm_reserve(ARENA_DEVICE_BASE, GIB), 0);
    munmap((void *)(uintptr_t)ARENA_HOST_BASE, GIB);
    munmap((void *)(uintptr_t)ARENA_DEVICE_BASE, GIB);
}

static void compute_modes_are_named(void **state)
{
    (void)state;
    open_refused(CUDA_COMPUTEMODE_PROHIBITED, CUDA_ERR_UNKNOWN, PROTO_ERROR_DEVICE_NOT_READY,
                 "nvidia-smi -i 0000:00:00.0 -c DEFAULT");
    open_refused(CUDA_COMPUTEMODE_EXCLUSIVE_PROCESS, CUDA_ERR_DEVICE_UNAVAILABLE,
                 PROTO_ERROR_DEVICE_NOT_READY, "another program uses the GPU 0000:00:00.0");
    open_refused(CUDA_COMPUTEMODE_DEFAULT, CUDA_ERR_OUT_OF_MEMORY, PROTO_ERROR_OUT_OF_MEMORY,
                 "cuDevicePrimaryCtxRetain");
    pid_t mps = daemon_start();
    open_refused(CUDA_COMPUTEMODE_EXCLUSIVE_PROCESS, CUDA_ERR_DEVICE_UNAVAILABLE,
                 PROTO_ERROR_DEVICE_NOT_READY, "echo quit | nvidia-cuda-mps-control");
    daemon_end(mps);
}

/* ---- one device alone, and threads that sleep while they wait ---- */

static int calls, flags_at, retained_at;
static unsigned flags_set;

static cuda_result set_flags(cuda_device device, unsigned flags)
{
    (void)device;
    flags_set = flags;
    flags_at = ++calls;
    return CUDA_OK;
}

static cuda_result retain_noted(cuda_context *context, cuda_device device)
{
    retained_at = ++calls;
    return fake_cuDevicePrimaryCtxRetain(context, device);
}

static uint32_t open_device(struct gpu *gpu, const uint8_t *uuid, struct error *why)
{
    driver.cuDevicePrimaryCtxSetFlags = set_flags;
    driver.cuDevicePrimaryCtxRetain = retain_noted;
    const struct gpu_options options = {
        &driver, 7, uuid, {ARENA_DEVICE_BASE, ARENA_HOST_BASE, GIB}, 0};
    return whole_gpu_open(gpu, &options, why);
}

static void the_device_is_found_by_its_uuid(void **state)
{
    (void)state;
    struct gpu gpu;
    struct error why = {0};
    uint8_t uuid[16];
    memset(uuid, 2, sizeof uuid); /* of the fake's device 1 */
    assert_int_equal(open_device(&gpu, uuid, &why), 0);
    assert_int_equal(gpu.handle, 1);
    assert_int_equal(gpu.info.device, 7);
    gpu_close(&gpu);
    uuid[15] = 0;
    assert_int_equal(open_device(&gpu, uuid, &why), PROTO_ERROR_DEVICE_NOT_READY);
    says(&why, "nvidia-smi -L");
}

/* The fake's device 1 is an instance by its UUID, its device 2 by its name. */
static cuda_result gpu_uuid(cuda_uuid *uuid, cuda_device device)
{
    memset(uuid, device == 1 ? 77 : device + 1, sizeof *uuid);
    return CUDA_OK;
}

static cuda_result find_gpu_uuid(const char *symbol, void **function, int version, uint64_t flags,
                                 cuda_proc_address_status *status)
{
    cuda_result (*found)(cuda_uuid *, cuda_device) = gpu_uuid;
    (void)flags;
    *status = CUDA_PROC_ADDRESS_SUCCESS;
    if (strcmp(symbol, "cuDeviceGetUuid") || version != 9020)
        return CUDA_ERR_NOT_FOUND;
    memcpy(function, &found, sizeof found);
    return CUDA_OK;
}

static cuda_result name_instance(char *name, int size, cuda_device device)
{
    snprintf(name, (size_t)size, device == 2 ? "NVIDIA H200 MIG 1g.18gb" : "NVIDIA H200");
    return CUDA_OK;
}

static cuda_result count_three(int *count)
{
    *count = 3;
    return CUDA_OK;
}

/* The lines of the list that are devices, without their UUIDs. */
static void list_devices(char kinds[4])
{
    struct arena only = {ARENA_DEVICE_BASE, ARENA_HOST_BASE, GIB};
    struct error why = {0};
    char *text = NULL, *rest, *line;
    size_t bytes = 0, used = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    assert_int_equal(device_list_write(&driver, &only, to, &why), 0);
    fclose(to);
    memset(kinds, 0, 4);
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (!strncmp(line, "device ", 7) && used < 3)
            kinds[used++] = strstr(line, " mig") ? 'm' : 'g';
    free(text);
}

static void an_instance_is_told_by_its_uuid_or_its_name(void **state)
{
    (void)state;
    char kinds[4];
    driver.cuDeviceGetCount = count_three;
    driver.cuDeviceGetName = name_instance;
    driver.cuGetProcAddress = find_gpu_uuid;
    list_devices(kinds);
    assert_string_equal(kinds, "gmm");
    driver.cuGetProcAddress = NULL;
    list_devices(kinds);
    assert_string_equal(kinds, "ggm");
}

static void waiting_threads_sleep(void **state)
{
    (void)state;
    struct gpu gpu;
    struct error why = {0};
    calls = 0;
    assert_int_equal(open_device(&gpu, NULL, &why), 0);
    gpu_close(&gpu);
    assert_int_equal(flags_set, CUDA_CTX_SCHED_BLOCKING_SYNC);
    assert_true(flags_at < retained_at);
}

/* ---- what a start warns of ---- */

static struct proto_worker_warning warnings[8];
static unsigned warning_count;

static void note_warning(void *context, const struct proto_worker_warning *warning)
{
    (void)context;
    warnings[warning_count++] = *warning;
}

/* The sentence of a warning; NULL if it was not given. */
static const char *warned(uint32_t which)
{
    const char *text = NULL;
    for (unsigned i = 0; i < warning_count; i++)
        if (warnings[i].warning == which)
            text = warnings[i].text;
    return text;
}

static cuda_result compiled, memory_operations;

static cuda_result load(cuda_module *module, const void *image, unsigned count,
                        cuda_jit_option *options, void **values)
{
    return compiled == CUDA_OK ? fake_cuModuleLoadDataEx(module, image, count, options, values)
                               : compiled;
}

static void check_start(void)
{
    struct gpu gpu = {.cuda = &driver};
    driver.cuDeviceGetAttribute = told_attribute;
    driver.cuModuleLoadDataEx = load;
    warning_count = 0;
    start_check_run(&gpu, memory_operations, note_warning, NULL);
    assert_int_equal(fake.live_modules, 0);
}

static void a_start_warns_of_what_it_finds(void **state)
{
    (void)state;
    host_access = 0;
    compiled = CUDA_OK;
    check_start();
    assert_null(warned(PROTO_WARNING_HOST_ACCESS));
    assert_null(warned(PROTO_WARNING_NO_COMPILER));
    host_access = 1;
    compiled = CUDA_ERR_JIT_COMPILER_NOT_FOUND;
    assert_null(warned(PROTO_WARNING_POLLED));
    memory_operations = CUDA_ERR_NOT_SUPPORTED;
    pid_t mps = daemon_start();
    check_start();
    daemon_end(mps);
    assert_non_null(strstr(warned(PROTO_WARNING_POLLED), "CUDA_ERROR_NOT_SUPPORTED"));
    assert_non_null(strstr(warned(PROTO_WARNING_HOST_ACCESS), "uvm_disable_hmm=1"));
    assert_non_null(strstr(warned(PROTO_WARNING_NO_COMPILER), "libnvidia-ptxjitcompiler.so.1"));
    assert_non_null(strstr(warned(PROTO_WARNING_MPS), "echo quit | nvidia-cuda-mps-control"));
    /* Whatever else is wrong with a module is not a missing compiler. */
    compiled = CUDA_ERR_OUT_OF_MEMORY;
    check_start();
    assert_null(warned(PROTO_WARNING_NO_COMPILER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifndef ARENA_THREAD_SANITIZER
        cmocka_unit_test_setup(the_first_range_that_is_given_is_taken, setup),
        cmocka_unit_test_setup(host_addresses_in_use_go_a_rung_down, setup),
        cmocka_unit_test_setup(a_refusal_names_both_ends_of_the_ladder, setup),
#endif
        cmocka_unit_test_setup(a_named_range_is_tried_alone, setup),
        cmocka_unit_test_setup(errors_and_strays_are_asked_again, setup),
        cmocka_unit_test_setup(each_refusal_of_cuinit_names_a_remedy, setup),
        cmocka_unit_test_setup(compute_modes_are_named, setup),
        cmocka_unit_test_setup(the_device_is_found_by_its_uuid, setup),
        cmocka_unit_test_setup(an_instance_is_told_by_its_uuid_or_its_name, setup),
        cmocka_unit_test_setup(waiting_threads_sleep, setup),
        cmocka_unit_test_setup(a_start_warns_of_what_it_finds, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
