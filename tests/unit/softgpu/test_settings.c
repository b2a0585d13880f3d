/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The environment's settings take effect. Every case is a process.
 */
#include "tests/unit/softgpu/kernels.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "common/error.h"
#include "common/ipc/arena.h"
#include "protocol.h"

static uint32_t read_memory(const char *text, struct softgpu_settings *settings, struct error *why)
{
    setenv("SOFTGPU_MEMORY", text, 1);
    uint32_t result = softgpu_settings_read(settings, why);
    unsetenv("SOFTGPU_MEMORY");
    return result;
}

static void sizes_are_read_or_refused(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"2097152", 2 << 20},      {"4096K", 4 << 20}, {"3M", 3 << 20},
                {"8G", UINT64_C(8) << 30}, {"2mb", 2 << 20},   {"16384G", UINT64_C(1) << 44}};
    static const char *const bad[] = {"K",       "-1",       "+4M", " 4M",
                                      "4M ",     "0x400000", "4MM", "4KM",
                                      "2097151", "16385G",   "0",   "18446744073709551616",
                                      "4.1"};
    struct softgpu_settings settings;
    struct error why = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(read_memory(good[i].text, &settings, &why), 0);
        assert_true(settings.memory == good[i].value);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_memory(bad[i], &settings, &why), PROTO_ERROR_INVALID_VALUE);
        assert_non_null(strstr(why.text, "SOFTGPU_MEMORY"));
        assert_non_null(strstr(why.text, bad[i]));
    }
}

static void strictness_changes_what_no_variable_says(void **state)
{
    struct softgpu_settings usual, strict, chosen;
    struct error why;

    (void)state;
    assert_int_equal(softgpu_settings_read(&usual, &why), 0);
    setenv("SOFTGPU_STRICT", "1", 1);
    assert_int_equal(softgpu_settings_read(&strict, &why), 0);
    setenv("SOFTGPU_HINT_REFUSAL", "3", 1);
    assert_int_equal(softgpu_settings_read(&chosen, &why), 0);
    unsetenv("SOFTGPU_HINT_REFUSAL");
    unsetenv("SOFTGPU_STRICT");
    /* A behaviour that costs nothing belongs to both. */
    assert_int_equal(usual.hint_refusal, 10);
    assert_int_equal(usual.hint_error, 10);
    assert_int_equal(usual.globaltimer_ns, 1000);
    assert_int_equal(strict.hint_refusal, 10);
    assert_int_equal(strict.hint_error, 10);
    assert_int_equal(chosen.hint_refusal, 3);
    assert_int_equal(usual.copy_bytes_per_second, 0);
    assert_int_equal(strict.copy_bytes_per_second, 25000000000);
    assert_int_equal(strict.context_lock, 1);
    assert_int_equal(usual.subcontexts, 64);
    assert_int_equal(strict.subcontexts, 64);
    assert_int_equal(strict.enqueue_ns, 3000);
    assert_int_equal(strict.launch_ns, 5000);
    assert_int_equal(strict.completion_ns, 2000);
    assert_int_equal(strict.completion_tail, 1);
    assert_int_equal(strict.creation_us, 2000);
    assert_int_equal(strict.load_us, 1000);
    assert_int_equal(strict.register_us_per_mib, 1000);
    assert_int_equal(strict.globaltimer_ns, 1000);
    assert_int_equal(strict.contention_percent, 100);
    assert_int_equal(strict.variation_percent, 33);
    assert_int_equal(usual.enqueue_ns + usual.launch_ns + usual.completion_ns + usual.creation_us +
                         usual.load_us + usual.register_us_per_mib + usual.context_lock +
                         usual.completion_tail,
                     0);
    assert_int_equal(strict.sms, usual.sms);
    assert_int_equal(strict.drain_percent, 80);
    assert_int_equal(strict.connections, 32);
    assert_int_equal(strict.queue_entries, 1024);
    assert_int_equal(
        strict.whole_registrations + strict.scatter + strict.grid_order + strict.fill_kernels, 4);
    assert_int_equal(strict.arrival_ns, 3000);
}

static uint64_t unsure_drains(uint64_t seed)
{
    struct softgpu_settings settings;
    struct error why;
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
    setenv("SOFTGPU_SEED", text, 1);
    assert_int_equal(softgpu_settings_read(&settings, &why), 0);
    unsetenv("SOFTGPU_SEED");
    return settings.unsure_drains;
}

/* Of any 32 seeds that follow each other, or every second or fourth one, both kinds are there. */
static void a_strict_device_decides_by_its_seed_whether_unsure_calls_wait(void **state)
{
    (void)state;
    setenv("SOFTGPU_STRICT", "1", 1);
    for (uint64_t first = 0; first < 1000; first += 111)
        for (uint64_t step = 1; step <= 4; step *= 2) {
            unsigned yes = 0;

            for (uint64_t i = 0; i < 32; i++)
                yes += unsure_drains(first + i * step) == 1;
            assert_in_range(yes, 8, 24);
        }
    setenv("SOFTGPU_UNSURE_DRAINS", "0", 1);
    for (uint64_t i = 0; i < 32; i++)
        assert_int_equal(unsure_drains(i), 0);
    unsetenv("SOFTGPU_UNSURE_DRAINS");
    unsetenv("SOFTGPU_STRICT");
    assert_int_equal(unsure_drains(2), 1);
}

/* The text that a process writes to standard error in cuInit. */
static void read_greeting(char *text, size_t size)
{
    int ends[2], status;
    ssize_t length;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        _exit(cuInit(0) == CUDA_OK ? 0 : 1);
    }
    close(ends[1]);
    length = read(ends[0], text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_strict_device_tells_its_seed(void **state)
{
    char text[200];

    (void)state;
    read_greeting(text, sizeof(text));
    assert_string_equal(text, "");
    setenv("SOFTGPU_STRICT", "1", 1);
    setenv("SOFTGPU_SEED", "4711", 1);
    read_greeting(text, sizeof(text));
    unsetenv("SOFTGPU_SEED");
    unsetenv("SOFTGPU_STRICT");
    assert_non_null(strstr(text, "SOFTGPU_SEED=4711"));
}

/* The last byte of the UUID of each device that is seen. */
static void body_visible(void)
{
    cuda_uuid uuid;
    cuda_context context;
    cuda_device device;
    cuda_device_ptr memory;
    int count, place;

    setenv("SOFTGPU_DEVICES", "4", 1);
    setenv("CUDA_VISIBLE_DEVICES", "GPU-736f6674-6770-4075-8000-000000000002,0,9,1", 1);
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuDeviceGetCount(&count) == CUDA_OK && count == 2);
    CHECK(cuDeviceGetUuid_v2(&uuid, 0) == CUDA_OK && uuid.bytes[15] == 2);
    CHECK(cuDeviceGetUuid_v2(&uuid, 1) == CUDA_OK && uuid.bytes[15] == 0);
    CHECK(cuDeviceGet(&device, 2) == CUDA_ERR_INVALID_DEVICE);
    CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_OK);
    CHECK(cuCtxSetCurrent(context) == CUDA_OK);
    CHECK(cuCtxGetDevice(&device) == CUDA_OK && device == 0);
    CHECK(cuMemAlloc_v2(&memory, 4096) == CUDA_OK);
    CHECK(cuPointerGetAttribute(&place, CUDA_POINTER_DEVICE_ORDINAL, memory) == CUDA_OK);
    CHECK(place == 0);
}

static void body_nothing_visible(void)
{
    setenv("CUDA_VISIBLE_DEVICES", "GPU-77", 1);
    CHECK(cuInit(0) == CUDA_ERR_NO_DEVICE);
}

static void the_listed_devices_are_seen_alone(void **state)
{
    (void)state;
    in_child(body_visible);
    in_child(body_nothing_visible);
}

/* A process that opens the device now gets every address that can be had. */
static void honour_hints(void)
{
    setenv("SOFTGPU_HINT_ERROR", "0", 1);
    setenv("SOFTGPU_HINT_REFUSAL", "0", 1);
}

/* An address below this many bits at which so much is free. Sanitizers use much of the address
 * space, each other parts of it. */
static cuda_device_ptr free_address(unsigned bits, size_t bytes)
{
    for (cuda_device_ptr at = UINT64_C(3) << (bits - 2); at >= UINT64_C(1) << 30; at >>= 1) {
        void *got = mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == MAP_FAILED)
            continue;
        munmap(got, bytes);
        if (got == (void *)(uintptr_t)at)
            return at;
    }
    CHECK(!"no address is free");
    return 0;
}

static void body_few_address_bits(void)
{
    const size_t size = UINT64_C(1) << 30;
    const cuda_device_ptr high = UINT64_C(1) << 45, low = free_address(45, size);
    cuda_device_ptr got;

    honour_hints();
    setenv("SOFTGPU_ADDRESS_BITS", "45", 1);
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuMemAddressReserve(&got, 2 << 20, 0, high, 0) == CUDA_OK && got != high);
    CHECK(cuMemAddressReserve(&got, size, 0, low, 0) == CUDA_OK && got == low);
}

/* ThreadSanitizer ends a program that maps memory outside of its layout. */
static void skip_without_room(void)
{
#ifdef ARENA_THREAD_SANITIZER
    skip();
#endif
}

static void hints_beyond_the_address_bits_are_answered_elsewhere(void **state)
{
    (void)state;
    skip_without_room();
    in_child(body_few_address_bits);
}

static void body_shape(void)
{
    size_t bytes;
    int count, sms;

    setenv("SOFTGPU_DEVICES", "3", 1);
    setenv("SOFTGPU_SMS", "20", 1);
    setenv("SOFTGPU_MEMORY", "96M", 1);
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuDeviceGetCount(&count) == CUDA_OK && count == 3);
    CHECK(cuDeviceGetAttribute(&sms, CUDA_ATTR_MULTIPROCESSOR_COUNT, 2) == CUDA_OK && sms == 20);
    CHECK(cuDeviceTotalMem_v2(&bytes, 2) == CUDA_OK && bytes == 96 << 20);
    CHECK(cuDeviceTotalMem_v2(&bytes, 3) == CUDA_ERR_INVALID_DEVICE);
}

static void devices_have_the_shape_asked_for(void **state)
{
    (void)state;
    in_child(body_shape);
}

static void body_no_green(void)
{
    cuda_dev_resource resource;
    void *fn;

    setenv("SOFTGPU_NO_GREEN", "1", 1);
    /* Asked before cuInit, as one does who opens a driver. */
    CHECK(cuGetProcAddress("cuGreenCtxCreate", &fn, 13000, 0) == CUDA_ERR_NOT_FOUND);
    CHECK(cuGetProcAddress("cuDeviceGetDevResource", &fn, 13000, 0) == CUDA_ERR_NOT_FOUND);
    CHECK(cuGetProcAddress("cuMemCreate", &fn, 13000, 0) == CUDA_OK);
    CHECK(kernels_open() == 0);
    CHECK(cuDeviceGetDevResource(0, &resource, CUDA_RESOURCE_SM) == CUDA_ERR_NOT_SUPPORTED);
}

static void a_driver_without_green_contexts_can_be_had(void **state)
{
    (void)state;
    in_child(body_no_green);
}

/* Two kernels of 10 ms that would fit beside each other: milliseconds from the first's start to the
 * last's end. */
static float two_kernels(void)
{
    cuda_stream streams[2], gate;
    cuda_event start, ends[2];
    float milliseconds[2];

    CHECK(kernels_open() == 0);
    CHECK(cuStreamCreate(&gate, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuEventCreate(&start, 0) == CUDA_OK);
    CHECK(launch_sleep(1, 32, 1000000, 10, gate) == CUDA_OK);
    CHECK(cuEventRecord(start, gate) == CUDA_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(cuStreamCreate(&streams[i], CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
        CHECK(cuEventCreate(&ends[i], 0) == CUDA_OK);
        CHECK(cuStreamWaitEvent(streams[i], start, 0) == CUDA_OK);
        CHECK(launch_sleep(4, 32, 1000000, 10, streams[i]) == CUDA_OK);
        CHECK(cuEventRecord(ends[i], streams[i]) == CUDA_OK);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(cuEventSynchronize(ends[i]) == CUDA_OK);
        CHECK(cuEventElapsedTime(&milliseconds[i], start, ends[i]) == CUDA_OK);
    }
    return milliseconds[0] > milliseconds[1] ? milliseconds[0] : milliseconds[1];
}

static void body_concurrent(void)
{
    setenv("SOFTGPU_ARRIVAL_NS", "0", 1);
    CHECK(two_kernels() < 11.0f);
}

static void body_serial(void)
{
    setenv("SOFTGPU_ARRIVAL_NS", "0", 1);
    setenv("SOFTGPU_SERIALIZE", "1", 1);
    CHECK(two_kernels() > 19.0f);
}

static void kernels_can_be_made_to_take_turns(void **state)
{
    (void)state;
    in_child(body_concurrent);
    in_child(body_serial);
}

/* Grids of one block that follow each other: on how many multiprocessors they were. */
static unsigned scattered(void)
{
    enum { GRIDS = 24, SMS = 8 };
    uint32_t histogram[SMS];
    cuda_device_ptr counts;
    unsigned used = 0;

    setenv("SOFTGPU_SMS", "8", 1);
    CHECK(kernels_open() == 0);
    CHECK(cuMemAlloc_v2(&counts, sizeof histogram) == CUDA_OK);
    CHECK(cuMemsetD32_v2(counts, 0, SMS) == CUDA_OK);
    for (int i = 0; i < GRIDS; i++) {
        CHECK(launch_smid(counts, 1, 32, 1000, NULL) == CUDA_OK);
        CHECK(cuCtxSynchronize() == CUDA_OK);
    }
    CHECK(cuMemcpyDtoH_v2(histogram, counts, sizeof histogram) == CUDA_OK);
    for (int i = 0; i < SMS; i++)
        used += histogram[i] > 0;
    return used;
}

static void body_scattered(void)
{
    CHECK(scattered() > 1);
}

static void body_not_scattered(void)
{
    setenv("SOFTGPU_SCATTER", "0", 1);
    CHECK(scattered() == 1);
}

static void grids_begin_on_any_multiprocessor_unless_switched_off(void **state)
{
    (void)state;
    in_child(body_scattered);
    in_child(body_not_scattered);
}

/* Kernels of 0.1 ms that were submitted while one of 100 ms ran before them: milliseconds from the
 * first's start to the last's end. */
static float late_kernels(void)
{
    enum { KERNELS = 48 };
    cuda_event start, end;
    float milliseconds;

    CHECK(kernels_open() == 0);
    CHECK(cuEventCreate(&start, 0) == CUDA_OK);
    CHECK(cuEventCreate(&end, 0) == CUDA_OK);
    CHECK(launch_sleep(1, 32, 1000000, 100, NULL) == CUDA_OK);
    CHECK(cuEventRecord(start, NULL) == CUDA_OK);
    for (int i = 0; i < KERNELS; i++)
        CHECK(launch_sleep(1, 32, 100000, 1, NULL) == CUDA_OK);
    CHECK(cuEventRecord(end, NULL) == CUDA_OK);
    CHECK(cuEventSynchronize(end) == CUDA_OK);
    CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_OK);
    return milliseconds;
}

static void body_in_time(void)
{
    setenv("SOFTGPU_ARRIVAL_NS", "0", 1);
    CHECK(late_kernels() < 10.0f);
}

/* Late by up to half a second: some arrive after the first kernel has ended. */
static void body_late(void)
{
    setenv("SOFTGPU_ARRIVAL_NS", "500000000", 1);
    CHECK(late_kernels() > 20.0f);
}

static void submissions_can_arrive_late(void **state)
{
    (void)state;
    in_child(body_in_time);
    in_child(body_late);
}

static void body_hints(void)
{
    const cuda_device_ptr hint = free_address(45, 2 << 20);
    cuda_device_ptr ptr;

    honour_hints();
    setenv("SOFTGPU_HINT_REFUSAL", "100", 1);
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuMemAddressReserve(&ptr, 2 << 20, 0, hint, 0) == CUDA_OK);
    CHECK(ptr != hint);
}

static void body_hint_errors(void)
{
    const cuda_device_ptr hint = free_address(45, 2 << 20);
    cuda_device_ptr ptr;

    setenv("SOFTGPU_HINT_ERROR", "100", 1);
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuMemAddressReserve(&ptr, 2 << 20, 0, hint, 0) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemAddressReserve(&ptr, 2 << 20, 0, 0, 0) == CUDA_OK);
}

/* A hundred hints: each of the three answers is met. */
static void body_hints_by_seed(void)
{
    const cuda_device_ptr hint = free_address(45, 2 << 20);
    unsigned honoured = 0, elsewhere = 0, refused = 0;

    setenv("SOFTGPU_HINT_ERROR", "30", 1);
    setenv("SOFTGPU_HINT_REFUSAL", "30", 1);
    CHECK(cuInit(0) == CUDA_OK);
    for (int i = 0; i < 100; i++) {
        cuda_device_ptr ptr;
        cuda_result result = cuMemAddressReserve(&ptr, 2 << 20, 0, hint, 0);

        refused += result != CUDA_OK;
        honoured += result == CUDA_OK && ptr == hint;
        elsewhere += result == CUDA_OK && ptr != hint;
        CHECK(result != CUDA_OK || cuMemAddressFree(ptr, 2 << 20) == CUDA_OK);
    }
    CHECK(honoured > 10 && elsewhere > 5 && refused > 10);
}

static void hints_can_be_refused(void **state)
{
    (void)state;
    skip_without_room();
    in_child(body_hints);
    in_child(body_hint_errors);
    in_child(body_hints_by_seed);
}

static void body_old_driver(void)
{
    cuda_proc_address_status status;
    void *fn;
    int version;

    setenv("SOFTGPU_DRIVER_VERSION", "12000", 1);
    CHECK(cuDriverGetVersion(&version) == CUDA_OK && version == 12000);
    /* 12.4 has green contexts and the parameters of functions, 12.3 their names. */
    CHECK(cuGetProcAddress_v2("cuGreenCtxCreate", &fn, 13000, 0, &status) == CUDA_ERR_NOT_FOUND);
    CHECK(status == CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(cuGetProcAddress("cuFuncGetParamInfo", &fn, 13000, 0) == CUDA_ERR_NOT_FOUND);
    CHECK(cuGetProcAddress("cuFuncGetName", &fn, 13000, 0) == CUDA_ERR_NOT_FOUND);
    CHECK(cuGetProcAddress("cuMemCreate", &fn, 13000, 0) == CUDA_OK);
    /* The newest form that this driver has: without a context. */
    CHECK(cuGetProcAddress("cuCtxSynchronize", &fn, 13000, 0) == CUDA_OK);
    CHECK((cuda_result(*)(void))fn == cuCtxSynchronize);
    CHECK(kernels_open() == 0);
}

static void an_old_driver_lacks_what_came_later(void **state)
{
    (void)state;
    in_child(body_old_driver);
}

/* Two halves of a buffer, registered one by one; and two mappings side by side. */
static void try_spanning_copies(cuda_result wanted)
{
    enum { HALF = 2 << 20 };
    static const cuda_mem_allocation_prop prop = {.type = CUDA_MEM_ALLOCATION_PINNED,
                                                  .location = {CUDA_MEM_LOCATION_DEVICE, 0}};
    static const cuda_mem_access_desc access = {{CUDA_MEM_LOCATION_DEVICE, 0},
                                                CUDA_MEM_ACCESS_READWRITE};
    char *host = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cuda_device_ptr device;

    CHECK(host != MAP_FAILED && kernels_open() == 0);
    CHECK(cuMemAddressReserve(&device, 2 * HALF, 0, 0, 0) == CUDA_OK);
    for (int i = 0; i < 2; i++) {
        cuda_mem_handle handle;

        CHECK(cuMemHostRegister_v2(host + i * HALF, HALF, 0) == CUDA_OK);
        CHECK(cuMemCreate(&handle, HALF, &prop, 0) == CUDA_OK);
        CHECK(cuMemMap(device + (unsigned)i * HALF, HALF, 0, handle, 0) == CUDA_OK);
    }
    CHECK(cuMemSetAccess(device, 2 * HALF, &access, 1) == CUDA_OK);
    CHECK(cuMemcpyHtoDAsync_v2(device, host, 2 * HALF, NULL) == wanted);
    CHECK(cuMemcpyDtoHAsync_v2(host + 4096, device, HALF, NULL) == wanted);
    CHECK(cuMemsetD32Async((uintptr_t)host + HALF - 4, 1, 2, NULL) == wanted);
    /* A copy within one is done, also to the place where two mappings meet. */
    CHECK(cuMemcpyHtoDAsync_v2(device + 4096, host + HALF, HALF, NULL) == CUDA_OK);
    CHECK(cuMemsetD32Async((uintptr_t)host + HALF - 4, 1, 1, NULL) == CUDA_OK);
    CHECK(cuMemsetD8Async(device, 1, 2 * HALF, NULL) == CUDA_OK);
    CHECK(cuCtxSynchronize() == CUDA_OK);
}

static void body_whole_registrations(void)
{
    try_spanning_copies(CUDA_ERR_INVALID_VALUE);
}

static void body_spanning_copies(void)
{
    setenv("SOFTGPU_WHOLE_REGISTRATIONS", "0", 1);
    try_spanning_copies(CUDA_OK);
}

static void a_copy_stays_within_one_registration(void **state)
{
    (void)state;
    in_child(body_whole_registrations);
    in_child(body_spanning_copies);
}

static cuda_result make_green(cuda_green_ctx *green)
{
    cuda_dev_resource all;
    cuda_resource_desc desc;

    CHECK(cuDeviceGetDevResource(0, &all, CUDA_RESOURCE_SM) == CUDA_OK);
    CHECK(cuDevResourceGenerateDesc(&desc, &all, 1) == CUDA_OK);
    return cuGreenCtxCreate(green, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM);
}

static void body_subcontexts(void)
{
    cuda_green_ctx greens[64];
    cuda_stream stream;

    CHECK(kernels_open() == 0);
    for (int i = 0; i < 63; i++)
        CHECK(make_green(&greens[i]) == CUDA_OK);
    CHECK(make_green(&greens[63]) == CUDA_ERR_OUT_OF_MEMORY);
    CHECK(cuGreenCtxDestroy(greens[5]) == CUDA_OK);
    CHECK(make_green(&greens[5]) == CUDA_OK);
    /* One that leaves a stream behind is not given back. */
    CHECK(cuGreenCtxStreamCreate(&stream, greens[6], CUDA_STREAM_NON_BLOCKING, 0) == CUDA_OK);
    CHECK(cuGreenCtxDestroy(greens[6]) == CUDA_OK);
    CHECK(make_green(&greens[6]) == CUDA_ERR_OUT_OF_MEMORY);
}

static void body_many_subcontexts(void)
{
    cuda_green_ctx green;

    setenv("SOFTGPU_SUBCONTEXTS", "0", 1);
    CHECK(kernels_open() == 0);
    for (int i = 0; i < 200; i++)
        CHECK(make_green(&green) == CUDA_OK);
}

static void green_contexts_run_out(void **state)
{
    (void)state;
    in_child(body_subcontexts);
    in_child(body_many_subcontexts);
}

static void *create_memory(void *user)
{
    static const cuda_mem_allocation_prop prop = {.type = CUDA_MEM_ALLOCATION_PINNED,
                                                  .location = {CUDA_MEM_LOCATION_DEVICE, 0}};
    cuda_mem_handle handle;

    CHECK(cuMemCreate(&handle, 2 << 20, &prop, 0) == CUDA_OK);
    __atomic_store_n((int *)user, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Launches go on while another thread changes the context. */
static void body_delay(void)
{
    pthread_t thread;
    int done = 0;

    setenv("SOFTGPU_CONTEXT_DELAY_US", "400000", 1);
    CHECK(kernels_open() == 0);
    CHECK(pthread_create(&thread, NULL, create_memory, &done) == 0);
    for (int i = 0; i < 20; i++) {
        CHECK(launch_sleep(1, 32, 10000, 1, NULL) == CUDA_OK);
        CHECK(cuStreamSynchronize(NULL) == CUDA_OK);
    }
    CHECK(__atomic_load_n(&done, __ATOMIC_ACQUIRE) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(done == 1);
}

static void launches_do_not_wait_for_context_changes(void **state)
{
    (void)state;
    in_child(body_delay);
}

static void body_rate(void)
{
    enum { COUNT = 1 << 16 };
    cuda_device_ptr words;
    cuda_event start, end;
    float milliseconds;

    /* A microsecond for each warp instruction: 64 blocks of 8 warps, one block a multiprocessor. */
    setenv("SOFTGPU_INSTRUCTION_PS", "1000000", 1);
    CHECK(kernels_open() == 0);
    CHECK(cuMemAlloc_v2(&words, COUNT * 4) == CUDA_OK);
    CHECK(cuEventCreate(&start, 0) == CUDA_OK && cuEventCreate(&end, 0) == CUDA_OK);
    CHECK(launch_sleep(1, 32, 1000000, 10, NULL) == CUDA_OK);
    CHECK(cuEventRecord(start, NULL) == CUDA_OK);
    CHECK(launch_store(words, 1, 64, 256, NULL) == CUDA_OK);
    CHECK(cuEventRecord(end, NULL) == CUDA_OK);
    CHECK(cuEventSynchronize(end) == CUDA_OK);
    CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_OK);
    /* Ten instructions or a few more of each of eight warps. */
    CHECK(milliseconds >= 0.064f && milliseconds <= 0.2f);
}

static void instructions_can_cost_a_stated_time(void **state)
{
    (void)state;
    in_child(body_rate);
}

static void body_init_error(void)
{
    setenv("SOFTGPU_INIT_ERROR", "802", 1);
    CHECK(cuInit(0) == CUDA_ERR_SYSTEM_NOT_READY);
    CHECK(cuInit(0) == CUDA_ERR_SYSTEM_NOT_READY);
}

static void body_green_error(void)
{
    cuda_green_ctx green;

    setenv("SOFTGPU_GREEN_ERROR", "914", 1);
    CHECK(kernels_open() == 0);
    CHECK((int)make_green(&green) == 914);
}

/* Whether a stream memory operation works on a stream of the primary context, and on one of a green
 * context. */
static void try_memops(cuda_result of_green)
{
    cuda_stream plain, inside;
    cuda_green_ctx green;
    void *page;

    CHECK(kernels_open() == 0);
    CHECK(cuMemAllocHost_v2(&page, 4096) == CUDA_OK);
    CHECK(make_green(&green) == CUDA_OK);
    CHECK(cuStreamCreate(&plain, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuGreenCtxStreamCreate(&inside, green, CUDA_STREAM_NON_BLOCKING, 0) == CUDA_OK);
    CHECK(cuStreamWriteValue64_v2(plain, (uintptr_t)page, 1, 0) == CUDA_OK);
    CHECK(cuStreamWriteValue64_v2(inside, (uintptr_t)page, 1, 0) == of_green);
    CHECK(cuCtxSynchronize() == CUDA_OK);
}

static void body_no_green_memops(void)
{
    setenv("SOFTGPU_NO_GREEN_MEMOPS", "1", 1);
    try_memops(CUDA_ERR_NOT_SUPPORTED);
}

static void body_green_memops(void)
{
    try_memops(CUDA_OK);
}

static void body_attributes(void)
{
    int value;

    setenv("SOFTGPU_PAGEABLE_ACCESS", "1", 1);
    setenv("SOFTGPU_COMPUTE_MODE", "3", 1);
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuDeviceGetAttribute(&value, CUDA_ATTR_PAGEABLE_MEMORY_ACCESS, 0) == CUDA_OK);
    CHECK(value == 1);
    CHECK(cuDeviceGetAttribute(&value, CUDA_ATTR_COMPUTE_MODE, 0) == CUDA_OK);
    CHECK(value == 3);
}

static void what_a_machine_may_lack_can_be_taken_away(void **state)
{
    (void)state;
    in_child(body_init_error);
    in_child(body_green_error);
    in_child(body_no_green_memops);
    in_child(body_green_memops);
    in_child(body_attributes);
}

/* The engine's threads of this process; of its threads at real-time priority, the engine's and all
 * others. */
static void count_threads(unsigned *all, unsigned *engine, unsigned *others)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;

    *all = *engine = *others = 0;
    CHECK(tasks != NULL);
    while ((task = readdir(tasks)) != NULL) {
        char path[300], name[32] = "";
        FILE *file;

        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        CHECK(file != NULL && fgets(name, sizeof(name), file) != NULL);
        fclose(file);
        *all += strcmp(name, "softgpu\n") == 0;
        if ((sched_getscheduler(atoi(task->d_name)) & ~SCHED_RESET_ON_FORK) != SCHED_FIFO)
            continue;
        *(strcmp(name, "softgpu\n") == 0 ? engine : others) += 1;
    }
    closedir(tasks);
}

static bool may_be_realtime(void)
{
    const struct sched_param lowest = {.sched_priority = 1}, none = {0};
    bool may = sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;

    return may && sched_setscheduler(0, SCHED_OTHER, &none) == 0;
}

static void body_realtime(void)
{
    bool may = may_be_realtime();
    unsigned all, engine, others;

    setenv("SOFTGPU_REALTIME", "1", 1);
    setenv("SOFTGPU_THREADS", "3", 1);
    CHECK(kernels_open() == 0);
    CHECK(launch_sleep(1, 32, 1000, 1, NULL) == CUDA_OK && cuCtxSynchronize() == CUDA_OK);
    /* Each thread asks when it first runs. */
    for (int i = 0; i < 5000; i++) {
        count_threads(&all, &engine, &others);
        if (all == 3 && engine == (may ? 3 : 0))
            break;
        usleep(1000);
    }
    CHECK(all == 3);
    CHECK(engine == (may ? 3 : 0) && others == 0);
}

static void body_no_realtime(void)
{
    unsigned all, engine, others;

    setenv("SOFTGPU_STRICT", "1", 1);
    CHECK(kernels_open() == 0);
    count_threads(&all, &engine, &others);
    CHECK(engine == 0 && others == 0);
}

static void engine_threads_alone_may_run_at_realtime_priority(void **state)
{
    (void)state;
    in_child(body_realtime);
    in_child(body_no_realtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_or_refused),
        cmocka_unit_test(strictness_changes_what_no_variable_says),
        cmocka_unit_test(a_strict_device_decides_by_its_seed_whether_unsure_calls_wait),
        cmocka_unit_test(a_strict_device_tells_its_seed),
        cmocka_unit_test(the_listed_devices_are_seen_alone),
        cmocka_unit_test(hints_beyond_the_address_bits_are_answered_elsewhere),
        cmocka_unit_test(hints_can_be_refused),
        cmocka_unit_test(devices_have_the_shape_asked_for),
        cmocka_unit_test(a_driver_without_green_contexts_can_be_had),
        cmocka_unit_test(kernels_can_be_made_to_take_turns),
        cmocka_unit_test(grids_begin_on_any_multiprocessor_unless_switched_off),
        cmocka_unit_test(submissions_can_arrive_late),
        cmocka_unit_test(a_copy_stays_within_one_registration),
        cmocka_unit_test(green_contexts_run_out),
        cmocka_unit_test(an_old_driver_lacks_what_came_later),
        cmocka_unit_test(launches_do_not_wait_for_context_changes),
        cmocka_unit_test(instructions_can_cost_a_stated_time),
        cmocka_unit_test(what_a_machine_may_lack_can_be_taken_away),
        cmocka_unit_test(engine_threads_alone_may_run_at_realtime_priority),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
