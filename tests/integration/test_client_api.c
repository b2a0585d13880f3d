/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Every call of the client library against the real server and the software GPU. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/util.h"
#include "tests/support/ok.h"
#include "tests/support/server.h"

enum { MIB = 1 << 20 };

__asm__(".section .rodata\n.balign 16\nclient_ptx:\n.incbin "
        "\"tests/integration/kernels/client.ptx\"\n.byte 0\n.previous\n");
extern const char client_ptx[];

static const struct gpushare_dim one = {1, 1, 1};

static struct server *server;

static int start(void **state)
{
    static const char *const env[] = {"SOFTGPU_DEVICES=2", NULL};
    *state = server = server_start(NULL, env);
    return 0;
}

struct client {
    gpushare_connection *gpu;
    gpushare_module *module;
};

static struct client open_client(uint32_t device)
{
    struct client client;
    struct gpushare_options options = {
        .size = sizeof options, .device = device, .socket = server_socket(server)};
    OK(gpushare_connect(&options, &client.gpu));
    OK(gpushare_module_load(client.gpu, client_ptx, 0, &client.module));
    return client;
}

static gpushare_function *kernel(const struct client *client, const char *name)
{
    gpushare_function *function;
    OK(gpushare_module_function(client->module, name, &function));
    return function;
}

static gpushare_address allocate(const struct client *client, uint64_t bytes)
{
    gpushare_address address;
    OK(gpushare_memory_alloc(client->gpu, bytes, &address));
    return address;
}

static uint32_t read_word(const struct client *client, gpushare_address address)
{
    uint32_t word = 0xdeadbeef;
    OK(gpushare_copy_from_device(client->gpu, &word, address, sizeof word));
    return word;
}

/* Stores number after so many milliseconds of the device's time. */
static void launch_late(const struct client *client, gpushare_stream *stream, gpushare_address to,
                        uint32_t milliseconds, uint32_t number)
{
    void *parameters[] = {&to, &milliseconds, &number};
    OK(gpushare_launch(kernel(client, "late"), one, one, 0, stream, parameters));
}

static void launch_add(const struct client *client, gpushare_stream *stream, gpushare_address to,
                       uint32_t count, uint32_t number)
{
    struct gpushare_dim grid = {(count + 127) / 128, 1, 1}, block = {128, 1, 1};
    void *parameters[] = {&to, &count, &number};
    OK(gpushare_launch(kernel(client, "add"), grid, block, 0, stream, parameters));
}

/* ---- memory ---- */

static void memory_round_trips_through_kernels(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    struct client client = open_client(0);
    gpushare_address device = allocate(&client, COUNT * 4);
    uint32_t *ordinary = malloc(COUNT * 4);
    void *shared;
    OK(gpushare_host_alloc(client.gpu, COUNT * 4, &shared));
    for (uint32_t i = 0; i < COUNT; i++)
        ordinary[i] = i * 3;
    OK(gpushare_copy_to_device(client.gpu, device, ordinary, COUNT * 4));
    launch_add(&client, NULL, device, COUNT, 7);
    OK(gpushare_copy_from_device(client.gpu, shared, device, COUNT * 4));
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(((uint32_t *)shared)[i], i * 3 + 7);
    /* A kernel works on the shared buffer itself. */
    launch_add(&client, NULL, (gpushare_address)(uintptr_t)shared, COUNT, 1);
    OK(gpushare_synchronize(client.gpu));
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(((uint32_t *)shared)[i], i * 3 + 8);
    OK(gpushare_copy_to_device_async(client.gpu, device, shared, COUNT * 4, NULL));
    memset(ordinary, 0, COUNT * 4);
    OK(gpushare_copy_from_device_async(client.gpu, ordinary, device, COUNT * 4, NULL));
    assert_int_equal(ordinary[COUNT - 1], (COUNT - 1) * 3 + 8);
    OK(gpushare_host_free(client.gpu, shared));
    OK(gpushare_memory_free(client.gpu, device));
    free(ordinary);
    gpushare_close(&client.gpu);
}

static void fills_and_copies_on_the_device(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_address device = allocate(&client, 4096);
    uint8_t bytes[32];
    OK(gpushare_fill(client.gpu, device, 0xab, 1, 8));
    OK(gpushare_fill_async(client.gpu, device + 8, 0x1234, 2, 4, NULL));
    OK(gpushare_fill_async(client.gpu, device + 16, 0x11223344, 4, 2, NULL));
    OK(gpushare_copy_async(client.gpu, device + 2048, device, 24, NULL));
    OK(gpushare_copy(client.gpu, device + 1024, device + 2048, 24));
    OK(gpushare_copy_from_device(client.gpu, bytes, device + 1024, 24));
    assert_int_equal(bytes[7], 0xab);
    assert_int_equal(bytes[8], 0x34);
    assert_int_equal(bytes[15], 0x12);
    assert_int_equal(bytes[16], 0x44);
    assert_int_equal(bytes[23], 0x11);
    gpushare_close(&client.gpu);
}

static void large_ordinary_copies_are_staged(void **state)
{
    (void)state;
    const size_t bytes = 37 * MIB + 1001;
    struct client client = open_client(0);
    gpushare_address device = allocate(&client, bytes);
    uint8_t *in = malloc(bytes), *out = calloc(1, bytes);
    for (size_t i = 0; i < bytes; i++)
        in[i] = (uint8_t)(i * 2654435761u >> 24);
    OK(gpushare_copy_to_device(client.gpu, device, in, bytes));
    OK(gpushare_copy_from_device(client.gpu, out, device, bytes));
    assert_memory_equal(in, out, bytes);
    struct gpushare_memory_info info = {.size = sizeof info};
    OK(gpushare_memory_info(client.gpu, &info));
    assert_true(info.used >= bytes && info.used <= info.limit);
    assert_in_range(info.host_used, 1, 18 * MIB);
    free(in);
    free(out);
    gpushare_close(&client.gpu);
}

/* The server rounds sizes up; a copy beyond the size that was asked for is an error all the same.
 */
static void copies_end_at_the_last_byte_asked_for(void **state)
{
    (void)state;
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    gpushare_connection *gpu;
    gpushare_address address;
    char plain[5000] = {0};
    void *buffer;
    OK(gpushare_connect(&options, &gpu));
    OK(gpushare_memory_alloc(gpu, 1000, &address));
    OK(gpushare_host_alloc(gpu, 3000, &buffer));
    OK(gpushare_copy_to_device(gpu, address, plain, 1000));
    OK(gpushare_copy_to_device(gpu, address + 999, plain, 1));
    assert_int_not_equal(gpushare_copy_to_device(gpu, address, plain, 1001), GPUSHARE_SUCCESS);
    assert_true(strlen(gpushare_error_text()) > 20);
    assert_int_not_equal(gpushare_copy_to_device(gpu, address + 999, plain, 2), GPUSHARE_SUCCESS);
    assert_int_not_equal(gpushare_copy_to_device(gpu, address + 1010, plain, 1), GPUSHARE_SUCCESS);
    assert_int_not_equal(gpushare_copy_from_device(gpu, plain, address, 1001), GPUSHARE_SUCCESS);
    OK(gpushare_copy_to_device(gpu, address, (char *)buffer + 2000, 1000));
    assert_int_not_equal(gpushare_copy_to_device(gpu, address, (char *)buffer + 2001, 1000),
                         GPUSHARE_SUCCESS);
    OK(gpushare_host_free(gpu, buffer));
    OK(gpushare_memory_free(gpu, address));
    gpushare_close(&gpu);
}

static void memory_beyond_the_limit_is_refused_in_words(void **state)
{
    (void)state;
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = server_socket(server),
                                       .memory_limit = 32 * MIB,
                                       .host_memory_limit = 8 * MIB};
    gpushare_connection *gpu;
    gpushare_address address;
    void *buffer;
    OK(gpushare_connect(&options, &gpu));
    assert_int_equal(gpushare_memory_alloc(gpu, 33 * MIB, &address), GPUSHARE_ERROR_OUT_OF_MEMORY);
    assert_true(strlen(gpushare_error_text()) > 20);
    OK(gpushare_memory_alloc(gpu, 32 * MIB, &address));
    OK(gpushare_memory_free(gpu, address));
    OK(gpushare_memory_alloc(gpu, 32 * MIB, &address));
    assert_int_equal(gpushare_host_alloc(gpu, 9 * MIB, &buffer), GPUSHARE_ERROR_OUT_OF_MEMORY);
    /* Staging works with the pinned memory that is left. */
    char *plain = calloc(1, 20 * MIB);
    OK(gpushare_copy_to_device(gpu, address, plain, 20 * MIB));
    OK(gpushare_copy_from_device(gpu, plain, address, 20 * MIB));
    free(plain);
    gpushare_close(&gpu);
}

static void ranges_outside_of_allocations_are_refused_at_once(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_address device = allocate(&client, 4096), gone = allocate(&client, 4096);
    OK(gpushare_memory_free(client.gpu, gone));
    assert_int_equal(gpushare_memory_free(client.gpu, gone), GPUSHARE_ERROR_INVALID_HANDLE);
    assert_int_equal(gpushare_memory_free(client.gpu, device + 512), GPUSHARE_ERROR_INVALID_HANDLE);
    assert_int_equal(gpushare_fill(client.gpu, gone, 0, 1, 64), GPUSHARE_ERROR_INVALID_VALUE);
    assert_int_equal(gpushare_fill(client.gpu, device + 4032, 0, 1, 128),
                     GPUSHARE_ERROR_INVALID_VALUE);
    OK(gpushare_fill(client.gpu, device, 0, 1, 4096));
    gpushare_close(&client.gpu);
}

/* ---- modules and launches ---- */

static void modules_from_memory_and_file(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_module *module;
    gpushare_function *function;
    OK(gpushare_module_load(client.gpu, client_ptx, strlen(client_ptx), &module));
    OK(gpushare_module_function(module, "bump", &function));
    assert_int_equal(gpushare_module_function(module, "bumb", &function), GPUSHARE_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpushare_error_text(), "no kernel 'bumb'"));
    assert_non_null(strstr(gpushare_error_text(), "mangled"));
    OK(gpushare_module_unload(module));
    char path[] = "/tmp/gpushare-client-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, client_ptx, strlen(client_ptx)), strlen(client_ptx));
    close(fd);
    OK(gpushare_module_load_file(client.gpu, path, &module));
    unlink(path);
    OK(gpushare_module_function(module, "add", &function));
    assert_int_equal(gpushare_module_function(module, "no_such_kernel", &function),
                     GPUSHARE_ERROR_NOT_FOUND);
    assert_int_equal(gpushare_module_variable(module, "no_such_variable", NULL, NULL),
                     GPUSHARE_ERROR_NOT_FOUND);
    assert_int_equal(gpushare_module_load_file(client.gpu, "/nonexistent.ptx", &module),
                     GPUSHARE_ERROR_NOT_FOUND);
    static const char broken[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                 ".visible .entry k()\n{\nfrobnicate.u32 %r1;\nret;\n}\n";
    assert_int_equal(gpushare_module_load(client.gpu, broken, 0, &module),
                     GPUSHARE_ERROR_INVALID_PTX);
    assert_non_null(strstr(gpushare_error_text(), "6"));
    static const char noise[64] = {'n', 'o', 'i', 's', 'e', 1, 2, 3};
    gpushare_error error = gpushare_module_load(client.gpu, noise, sizeof noise, &module);
    assert_true(error == GPUSHARE_ERROR_INVALID_IMAGE || error == GPUSHARE_ERROR_INVALID_PTX);
    gpushare_close(&client.gpu);
}

/* A container with one entry, as nvcc lays it out: header, entry header, payload. */
static size_t pack(uint8_t *to, uint16_t kind, uint32_t arch, const char *payload, size_t bytes)
{
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
    } container = {0xba55ed50, 1, 16, 0};
    struct {
        uint16_t kind, version;
        uint32_t header_bytes;
        uint64_t padded;
        uint32_t stored, zero1, zero2, arch, zero3, zero4;
        uint64_t flags, zero5, unpacked;
    } entry = {.kind = kind,
               .version = 0x101,
               .header_bytes = sizeof entry,
               .padded = (bytes + 7) / 8 * 8,
               .arch = arch,
               .flags = 0x11};
    container.bytes = sizeof entry + entry.padded;
    memcpy(to, &container, sizeof container);
    memcpy(to + sizeof container, &entry, sizeof entry);
    memcpy(to + sizeof container + sizeof entry, payload, bytes);
    return sizeof container + sizeof entry + entry.padded;
}

static void fatbins_give_the_code_that_fits(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_module *module;
    gpushare_function *add;
    size_t text = strlen(client_ptx) + 1;
    uint8_t *image = calloc(1, text + 256);
    assert_non_null(image);
    size_t bytes = pack(image, 1, 75, client_ptx, text);
    OK(gpushare_module_load(client.gpu, image, bytes, &module));
    OK(gpushare_module_function(module, "add", &add));
    gpushare_address word = allocate(&client, 4);
    uint32_t count = 1, number = 3;
    void *parameters[] = {&word, &count, &number};
    OK(gpushare_fill(client.gpu, word, 4, 4, 1));
    OK(gpushare_launch(add, one, one, 0, NULL, parameters));
    assert_int_equal(read_word(&client, word), 7);
    /* Cut off, and for a device that does not exist. */
    assert_int_not_equal(gpushare_module_load(client.gpu, image, bytes / 2, &module),
                         GPUSHARE_SUCCESS);
    static const char foreign[] = "\177ELF for nobody";
    bytes = pack(image, 2, 999, foreign, sizeof foreign);
    gpushare_error error = gpushare_module_load(client.gpu, image, bytes, &module);
    assert_true(error == GPUSHARE_ERROR_NO_BINARY_FOR_GPU || error == GPUSHARE_ERROR_INVALID_IMAGE);
    assert_int_equal(gpushare_module_load(client.gpu, image, 0, &module),
                     GPUSHARE_ERROR_INVALID_IMAGE);
    OK(gpushare_synchronize(client.gpu));
    free(image);
    gpushare_close(&client.gpu);
}

static void variables_are_device_memory(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_address counter, factors;
    uint64_t bytes;
    uint32_t value = 100;
    OK(gpushare_module_variable(client.module, "counter", &counter, &bytes));
    assert_int_equal(bytes, 4);
    assert_int_equal(read_word(&client, counter), 5);
    OK(gpushare_launch(kernel(&client, "bump"), one, one, 0, NULL, NULL));
    assert_int_equal(read_word(&client, counter), 15);
    OK(gpushare_copy_to_device(client.gpu, counter, &value, 4));
    OK(gpushare_launch(kernel(&client, "bump"), one, one, 0, NULL, NULL));
    assert_int_equal(read_word(&client, counter), 110);
    OK(gpushare_module_variable(client.module, "factors", &factors, &bytes));
    assert_int_equal(bytes, 16);
    /* Constant memory too, wherever the driver put it. */
    value = 1000;
    OK(gpushare_copy_to_device(client.gpu, factors + 4, &value, 4));
    OK(gpushare_launch(kernel(&client, "bump"), one, one, 0, NULL, NULL));
    assert_int_equal(read_word(&client, counter), 1110);
    assert_int_equal(read_word(&client, factors + 4), 1000);
    /* Another client has variables of its own. */
    struct client other = open_client(0);
    OK(gpushare_module_variable(other.module, "counter", &counter, NULL));
    assert_int_equal(read_word(&other, counter), 5);
    gpushare_close(&other.gpu);
    gpushare_close(&client.gpu);
}

struct long_block {
    uint8_t first;
    uint64_t sum_of_others;
    uint32_t numbers[1000];
};

static void long_parameters_arrive_whole(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_function *weigh = kernel(&client, "weigh");
    gpushare_address result = allocate(&client, 64 * 16);
    struct gpushare_function_info info = {.size = sizeof info};
    OK(gpushare_function_info(weigh, &info));
    assert_int_equal(info.parameters, 2);
    assert_int_equal(info.parameter_bytes, sizeof(struct long_block) + 8);
    size_t offset, size;
    OK(gpushare_function_parameter(weigh, 1, &offset, &size));
    assert_int_equal(offset, sizeof(struct long_block));
    assert_int_equal(size, 8);
    /* More than the arena holds at a time. */
    for (uint32_t n = 0; n < 64; n++) {
        struct long_block block = {.first = (uint8_t)n, .sum_of_others = n * 1000u};
        gpushare_address at = result + n * 16;
        for (uint32_t i = 0; i < 1000; i++)
            block.numbers[i] = n + i;
        void *parameters[] = {&block, &at};
        OK(gpushare_launch(weigh, one, one, 0, NULL, parameters));
    }
    uint64_t weights[128];
    OK(gpushare_copy_from_device(client.gpu, weights, result, sizeof weights));
    for (uint32_t n = 0; n < 64; n++) {
        uint64_t expected = n;
        for (uint64_t i = 0; i < 1000; i++)
            expected += (n + i) * (i + 1);
        assert_true(weights[2 * n] == expected);
        assert_true(weights[2 * n + 1] == n * 1000u);
    }
    gpushare_close(&client.gpu);
}

static void forgotten_parameters_and_sizes_are_refused(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_address to = allocate(&client, 64);
    uint32_t count = 1;
    void *parameters[] = {&to, &count, NULL};
    gpushare_function *add = kernel(&client, "add");
    assert_int_equal(gpushare_launch(add, one, one, 0, NULL, parameters),
                     GPUSHARE_ERROR_INVALID_VALUE);
    assert_non_null(strstr(gpushare_error_text(), "number 2, from 0, is NULL"));
    /* A size that was never set, one that is too small, and sizes above the largest accepted. */
    struct gpushare_limits limits;
    struct gpushare_options options = {0};
    static const size_t sizes[] = {0, sizeof(size_t), 4097, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        gpushare_connection *none;
        limits.size = options.size = sizes[i];
        assert_int_equal(gpushare_limits(client.gpu, &limits), GPUSHARE_ERROR_INVALID_VALUE);
        assert_non_null(strstr(gpushare_error_text(), "set it to sizeof"));
        assert_int_equal(gpushare_connect(&options, &none), GPUSHARE_ERROR_INVALID_VALUE);
        assert_non_null(strstr(gpushare_error_text(), "set it to sizeof"));
    }
    gpushare_close(&client.gpu);
}

static void dynamic_shared_memory_is_bounded_by_the_value_set(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_function *reverse = kernel(&client, "reverse");
    gpushare_address from = allocate(&client, 1024), to = allocate(&client, 1024);
    uint32_t numbers[256], reversed[256];
    for (uint32_t i = 0; i < 256; i++)
        numbers[i] = i * i;
    OK(gpushare_copy_to_device(client.gpu, from, numbers, sizeof numbers));
    struct {
        gpushare_address to, from;
    } packed = {to, from};
    struct gpushare_dim block = {256, 1, 1};
    struct gpushare_device device = {.size = sizeof device};
    OK(gpushare_device(client.gpu, &device));
    const uint32_t large = min(device.block_shared_optin, 100U << 10);
    assert_int_equal(
        gpushare_launch_packed(reverse, one, block, large, NULL, &packed, sizeof packed),
        GPUSHARE_ERROR_INVALID_VALUE);
    OK(gpushare_function_set_shared(reverse, large));
    OK(gpushare_launch_packed(reverse, one, block, large, NULL, &packed, sizeof packed));
    OK(gpushare_copy_from_device(client.gpu, reversed, to, sizeof reversed));
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(reversed[i], numbers[255 - i]);
    assert_int_equal(gpushare_function_set_shared(reverse, 1 << 30), GPUSHARE_ERROR_INVALID_VALUE);
    uint32_t few, many;
    OK(gpushare_occupancy(reverse, 256, large, &few));
    OK(gpushare_occupancy(reverse, 256, 0, &many));
    assert_true(few >= 1 && few <= 2 && many > few);
    struct gpushare_dim too_many = {1025, 1, 1};
    assert_int_equal(
        gpushare_launch_packed(reverse, one, too_many, 0, NULL, &packed, sizeof packed),
        GPUSHARE_ERROR_INVALID_VALUE);
    gpushare_close(&client.gpu);
}

/* ---- order ---- */

static void default_stream_comes_after_blocking_streams(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_stream *streams[4];
    gpushare_address words = allocate(&client, 16);
    for (uint32_t round = 1; round <= 5; round++) {
        for (uint32_t i = 0; i < 4; i++) {
            if (round == 1)
                OK(gpushare_stream_create(client.gpu, 0, 0, &streams[i]));
            launch_late(&client, streams[i], words + 4 * i, 3, round * 10 + i);
        }
        launch_add(&client, NULL, words, 4, 100);
        for (uint32_t i = 0; i < 4; i++)
            launch_add(&client, streams[i], words + 4 * i, 1, 1000);
        uint32_t seen[4];
        OK(gpushare_copy_from_device(client.gpu, seen, words, sizeof seen));
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(seen[i], round * 10 + i + 1100);
    }
    for (uint32_t i = 0; i < 4; i++)
        OK(gpushare_stream_destroy(streams[i]));
    gpushare_close(&client.gpu);
}

static void non_blocking_streams_are_ordered_by_events_alone(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_stream *a, *b;
    gpushare_event *event;
    gpushare_address word = allocate(&client, 4);
    OK(gpushare_stream_create(client.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &a));
    OK(gpushare_stream_create(client.gpu, GPUSHARE_STREAM_NON_BLOCKING, -1, &b));
    OK(gpushare_event_create(client.gpu, 0, &event));
    for (uint32_t round = 0; round < 10; round++) {
        launch_late(&client, a, word, 2, round);
        OK(gpushare_event_record(event, a));
        OK(gpushare_stream_wait_event(client.gpu, b, event));
        launch_add(&client, b, word, 1, 5);
        OK(gpushare_stream_synchronize(client.gpu, b));
        OK(gpushare_event_query(event));
        assert_int_equal(read_word(&client, word), round + 5);
    }
    int32_t urgent = 0, normal = 0;
    OK(gpushare_stream_priority(client.gpu, b, &urgent));
    OK(gpushare_stream_priority(client.gpu, a, &normal));
    assert_true(urgent < normal);
    launch_late(&client, a, word, 200, 1);
    assert_int_equal(gpushare_stream_query(client.gpu, a), GPUSHARE_ERROR_NOT_READY);
    /* The default stream does not wait for it. */
    OK(gpushare_stream_synchronize(client.gpu, NULL));
    assert_int_equal(gpushare_stream_query(client.gpu, a), GPUSHARE_ERROR_NOT_READY);
    OK(gpushare_synchronize(client.gpu));
    OK(gpushare_stream_query(client.gpu, a));
    OK(gpushare_event_destroy(event));
    gpushare_close(&client.gpu);
}

static void events_tell_the_devices_time(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_event *start, *end;
    gpushare_address word = allocate(&client, 4);
    double milliseconds = 0;
    OK(gpushare_event_create(client.gpu, GPUSHARE_EVENT_TIMING, &start));
    OK(gpushare_event_create(client.gpu, GPUSHARE_EVENT_TIMING, &end));
    OK(gpushare_event_record(start, NULL));
    launch_late(&client, NULL, word, 20, 1);
    OK(gpushare_event_record(end, NULL));
    OK(gpushare_event_synchronize(end));
    OK(gpushare_event_elapsed(start, end, &milliseconds));
    assert_true(milliseconds >= 19.9 && milliseconds < 5000);
    OK(gpushare_event_destroy(start));
    OK(gpushare_event_destroy(end));
    gpushare_close(&client.gpu);
}

static struct client threads_client;

static void *work_on_own_stream(void *context)
{
    uint32_t number = (uint32_t)(uintptr_t)context;
    gpushare_stream *own = GPUSHARE_STREAM_PER_THREAD;
    gpushare_address memory;
    uint32_t words[256] = {0};
    gpushare_error error = gpushare_memory_alloc(threads_client.gpu, sizeof words, &memory);
    for (int round = 0; round < 20 && !error; round++) {
        for (uint32_t i = 0; i < 256; i++)
            words[i] = i;
        error = gpushare_copy_to_device_async(threads_client.gpu, memory, words, sizeof words, own);
        for (uint32_t n = 0; n < number && !error; n++)
            launch_add(&threads_client, own, memory, 256, 3);
        if (!error)
            error = gpushare_copy_from_device_async(threads_client.gpu, words, memory, sizeof words,
                                                    own);
        for (uint32_t i = 0; i < 256 && !error; i++)
            if (words[i] != i + 3 * number)
                error = GPUSHARE_ERROR_UNKNOWN;
    }
    return (void *)(uintptr_t)error;
}

static void threads_work_side_by_side(void **state)
{
    (void)state;
    pthread_t threads[6];
    threads_client = open_client(0);
    for (uintptr_t i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, work_on_own_stream, (void *)(i + 1));
    for (int i = 0; i < 6; i++) {
        void *error;
        pthread_join(threads[i], &error);
        assert_ptr_equal(error, NULL);
    }
    gpushare_close(&threads_client.gpu);
}

static void more_launches_than_a_ring_holds(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_address word = allocate(&client, 4);
    OK(gpushare_fill(client.gpu, word, 0, 4, 1));
    launch_late(&client, NULL, word, 50, 0);
    for (int i = 0; i < 3000; i++)
        launch_add(&client, NULL, word, 1, 1);
    assert_int_equal(read_word(&client, word), 3000);
    gpushare_close(&client.gpu);
}

static void streams_come_back_when_destroyed(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_address word = allocate(&client, 4);
    OK(gpushare_fill(client.gpu, word, 0, 4, 1));
    for (int i = 0; i < 300; i++) {
        gpushare_stream *stream;
        OK(gpushare_stream_create(client.gpu, 0, 0, &stream));
        launch_add(&client, stream, word, 1, 1);
        OK(gpushare_stream_destroy(stream));
        /* One at a time: the default stream's wait stands between them. */
        launch_add(&client, NULL, word, 1, 1);
    }
    assert_int_equal(read_word(&client, word), 600);
    gpushare_close(&client.gpu);
}

/* ---- two devices, two processes ---- */

static void two_devices_and_copies_between_them(void **state)
{
    (void)state;
    const uint32_t count = 3 * MIB;
    uint32_t devices = 0;
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    OK(gpushare_device_count(&options, &devices));
    struct gpushare_device described = {.size = sizeof described};
    OK(gpushare_device_query(&options, &described));
    if (devices < 2 && (!strstr(described.name, "software") || strstr(described.name, "MIG")))
        skip(); /* a real machine with one GPU, or one instance of a GPU */
    assert_true(devices >= 2);
    struct client a = open_client(0), b = open_client(1);
    struct gpushare_device device = {.size = sizeof device};
    OK(gpushare_device(b.gpu, &device));
    assert_int_equal(device.ordinal, 1);
    gpushare_address here = allocate(&a, count * 4), there = allocate(&b, count * 4);
    OK(gpushare_fill(a.gpu, here, 1, 4, count));
    launch_add(&a, NULL, here, count, 41);
    OK(gpushare_copy_peer(b.gpu, there, a.gpu, here, count * 4));
    launch_add(&b, NULL, there, count, 100);
    /* Back again, asynchronously, in a stream of the source. */
    gpushare_stream *stream;
    OK(gpushare_stream_create(b.gpu, 0, 0, &stream));
    OK(gpushare_copy_peer_async(a.gpu, here, b.gpu, there, count * 4, b.gpu, stream));
    OK(gpushare_stream_synchronize(b.gpu, stream));
    uint32_t *words = malloc(count * 4);
    OK(gpushare_copy_from_device(a.gpu, words, here, count * 4));
    for (uint32_t i = 0; i < count; i++)
        if (words[i] != 142)
            fail_msg("word %u is %u", i, words[i]);
    free(words);
    /* An event of one device holds up a stream of the other. */
    gpushare_event *event;
    OK(gpushare_event_create(a.gpu, 0, &event));
    gpushare_address flag = allocate(&a, 4);
    launch_late(&a, NULL, flag, 30, 77);
    OK(gpushare_event_record(event, NULL));
    OK(gpushare_stream_wait_event(b.gpu, NULL, event));
    launch_add(&b, NULL, there, 1, 1);
    OK(gpushare_stream_synchronize(b.gpu, NULL));
    OK(gpushare_event_query(event));
    gpushare_close(&a.gpu);
    /* The other connection still works. */
    assert_int_equal(read_word(&b, there), 143);
    gpushare_close(&b.gpu);
}

static void forked_child_connects_for_itself(void **state)
{
    (void)state;
    struct client client = open_client(0);
    gpushare_address word = allocate(&client, 4);
    OK(gpushare_fill(client.gpu, word, 9, 4, 1));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (gpushare_synchronize(client.gpu) != GPUSHARE_ERROR_NOT_INITIALIZED)
            _exit(1);
        gpushare_close(&client.gpu);
        struct client own = open_client(0);
        gpushare_address mine = allocate(&own, 4);
        OK(gpushare_fill(own.gpu, mine, 1, 4, 1));
        launch_add(&own, NULL, mine, 1, 6);
        int good = read_word(&own, mine) == 7;
        gpushare_close(&own.gpu);
        _exit(good ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(read_word(&client, word), 9);
    gpushare_close(&client.gpu);
}

static void closing_with_work_in_flight_leaves_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct client client = open_client(0);
        gpushare_address word = allocate(&client, 4);
        for (int n = 0; n < 20; n++)
            launch_late(&client, NULL, word, 1, 1);
        gpushare_close(&client.gpu);
    }
    struct client client = open_client(0);
    struct gpushare_memory_info info = {.size = sizeof info};
    OK(gpushare_memory_info(client.gpu, &info));
    assert_int_equal(info.host_used, 0);
    const char *text = NULL;
    OK(gpushare_connection_error(client.gpu, &text));
    assert_string_equal(text, "");
    gpushare_close(&client.gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_round_trips_through_kernels),
        cmocka_unit_test(fills_and_copies_on_the_device),
        cmocka_unit_test(large_ordinary_copies_are_staged),
        cmocka_unit_test(copies_end_at_the_last_byte_asked_for),
        cmocka_unit_test(memory_beyond_the_limit_is_refused_in_words),
        cmocka_unit_test(ranges_outside_of_allocations_are_refused_at_once),
        cmocka_unit_test(modules_from_memory_and_file),
        cmocka_unit_test(fatbins_give_the_code_that_fits),
        cmocka_unit_test(variables_are_device_memory),
        cmocka_unit_test(long_parameters_arrive_whole),
        cmocka_unit_test(forgotten_parameters_and_sizes_are_refused),
        cmocka_unit_test(dynamic_shared_memory_is_bounded_by_the_value_set),
        cmocka_unit_test(default_stream_comes_after_blocking_streams),
        cmocka_unit_test(non_blocking_streams_are_ordered_by_events_alone),
        cmocka_unit_test(events_tell_the_devices_time),
        cmocka_unit_test(threads_work_side_by_side),
        cmocka_unit_test(more_launches_than_a_ring_holds),
        cmocka_unit_test(streams_come_back_when_destroyed),
        cmocka_unit_test(two_devices_and_copies_between_them),
        cmocka_unit_test(forked_child_connects_for_itself),
        cmocka_unit_test(closing_with_work_in_flight_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, start, server_teardown);
}
