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
    (void)state;
    server = server_start(args, env);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return server_stop(server);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(clients_that_come_and_go_beside_an_endless_kernel_find_room,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
