/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* draining: without locks, for if mapping waited, nobody could connect beside the endless kernel */
/*
 * Clients that come, pin memory, copy from it and leave, beside another client's kernel that does
 * not end: nothing can be unregistered meanwhile, and still they all find room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/endless.h"
#include "tests/support/ok.h"
#include "tests/support/server.h"

/* With the buffers that the library stages copies in, each has 32 MiB: together far more than there
 * is. */
enum { ARRIVALS = 30, BYTES = 16 << 20 };

static struct server *server;

static int setup(void **state)
{
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100", NULL};
    static const char *const args[] = {"--host-memory-total", "512M", "--pinned-pool", "192M",
                                       NULL};
    *state = server = server_start(args, env);
    return 0;
}

/* Pins memory, finds it empty, and copies from it. Leaves without freeing anything if told so. */
static void visit(bool frees)
{
    gpushare_connection *gpu = arrival_connect(server, 0);
    gpushare_address there;
    void *pinned;
    uint8_t *back = malloc(BYTES);
    assert_non_null(back);
    OK(gpushare_host_alloc(gpu, BYTES, &pinned));
    OK(gpushare_memory_alloc(gpu, BYTES, &there));
    for (size_t i = 0; i < BYTES; i += 512)
        assert_int_equal(((uint8_t *)pinned)[i], 0);
    memset(pinned, 0x5a, BYTES);
    OK(gpushare_copy_to_device_async(gpu, there, pinned, BYTES, NULL));
    OK(gpushare_copy_from_device(gpu, back, there, BYTES));
    assert_memory_equal(back, pinned, BYTES);
    if (frees) {
        OK(gpushare_host_free(gpu, pinned));
        OK(gpushare_host_alloc(gpu, BYTES, &pinned));
        for (size_t i = 0; i < BYTES; i += 512)
            assert_int_equal(((uint8_t *)pinned)[i], 0);
    }
    gpushare_close(&gpu);
    free(back);
}

static void clients_that_come_and_go_beside_an_endless_kernel_find_room(void **state)
{
    (void)state;
    struct endless endless;
    endless_prepare(&endless, arrival_connect(server, 25));
    endless_start(&endless, 1, 32);
    for (unsigned i = 0; i < ARRIVALS; i++)
        visit(i % 3 == 0);
    endless_end(&endless);
}

/* Kept buffers are unregistered in a quiet window, and beside such a kernel there is none. */
static int setup_small(void **state)
{
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100",
                                      "GPUSHARE_HOST_MEMORY_LIMIT=64M", NULL};
    static const char *const args[] = {"--host-memory-total", "64M", "--pinned-pool", "48M", NULL};
    *state = server = server_start(args, env);
    return 0;
}

/* Another stream's fill, handed over later, ends when the kernel has long been handed over. */
static void start_for_sure(struct endless *endless)
{
    gpushare_stream *stream;
    gpushare_address used;
    OK(gpushare_stream_create(endless->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    OK(gpushare_memory_alloc(endless->gpu, 1, &used));
    endless_start(endless, 1, 32);
    OK(gpushare_fill_async(endless->gpu, used, 0, 1, 1, stream));
    OK(gpushare_stream_synchronize(endless->gpu, stream));
}

static void a_full_pool_that_cannot_give_way_is_told(void **state)
{
    (void)state;
    enum { PART = 16 << 20 };
    struct endless endless;
    void *pinned;
    endless_prepare(&endless, arrival_connect(server, 25));
    gpushare_connection *gpu = arrival_connect(server, 0);
    for (int i = 0; i < 3; i++)
        OK(gpushare_host_alloc(gpu, PART, &pinned));
    /* The log says when a client that used the GPU has left. */
    gpushare_address used;
    OK(gpushare_memory_alloc(gpu, 1, &used));
    OK(gpushare_copy_to_device(gpu, used, pinned, 1));
    gpushare_close(&gpu);
    assert_true(server_log_wait(server, "GPU seconds"));
    start_for_sure(&endless);
    gpu = arrival_connect(server, 0);
    /* There is room only if the pool gives way. */
    assert_int_equal(gpushare_host_alloc(gpu, 2 * PART, &pinned), GPUSHARE_ERROR_OUT_OF_MEMORY);
    print_message("%s\n", gpushare_error_text());
    assert_non_null(strstr(gpushare_error_text(), "--host-memory-total"));
    assert_non_null(strstr(gpushare_error_text(), "48 MiB of it kept for the next clients"));
    endless_end(&endless);
    /* Each try waits for a while. */
    gpushare_error error = GPUSHARE_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < 10 && error == GPUSHARE_ERROR_OUT_OF_MEMORY; i++)
        error = gpushare_host_alloc(gpu, 2 * PART, &pinned);
    assert_int_equal(error, GPUSHARE_SUCCESS);
    gpushare_close(&gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(clients_that_come_and_go_beside_an_endless_kernel_find_room,
                                        setup, server_teardown),
        cmocka_unit_test_setup_teardown(a_full_pool_that_cannot_give_way_is_told, setup_small,
                                        server_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
