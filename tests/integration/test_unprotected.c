/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Memory that gpushare does not protect, as README's comparison says: the kernels of all clients of
 * a GPU have one address space. When this test fails, the pages that warn of it are to be written
 * anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/server.h"

/* store(uint64_t word): writes 7 to this address. */
static const char store_ptx[] = ".version 7.0\n"
                                ".target sm_70\n"
                                ".address_size 64\n"
                                ".visible .entry store(.param .u64 word)\n"
                                "{\n"
                                "    .reg .u64 %a;\n"
                                "    .reg .u32 %v;\n"
                                "    ld.param.u64 %a, [word];\n"
                                "    mov.u32 %v, 7;\n"
                                "    st.global.u32 [%a], %v;\n"
                                "    ret;\n"
                                "}\n";

static struct server *server;

static int setup(void **state)
{
    *state = server = server_start(NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return server_stop(server);
}

static void a_stray_store_reaches_a_neighbours_memory(void **state)
{
    gpushare_connection *owner = arrival_connect(server, 0), *other = arrival_connect(server, 0);
    gpushare_function *store = arrival_load(other, store_ptx, "store");
    const struct gpushare_dim one = {1, 1, 1};
    gpushare_address word;
    uint32_t value = 5;
    void *parameters[] = {&word};
    (void)state;
    OK(gpushare_memory_alloc(owner, sizeof value, &word));
    OK(gpushare_copy_to_device(owner, word, &value, sizeof value));
    OK(gpushare_launch(store, one, one, 0, NULL, parameters));
    OK(gpushare_synchronize(other));
    OK(gpushare_copy_from_device(owner, &value, word, sizeof value));
    assert_int_equal(value, 7);
    gpushare_close(&other);
    gpushare_close(&owner);
}

/* The server refuses to do anything for a client with such an address: only kernels reach it. */
static void the_server_itself_touches_no_neighbours_memory(void **state)
{
    gpushare_connection *owner = arrival_connect(server, 0), *other = arrival_connect(server, 0);
    gpushare_address word;
    uint32_t value = 5, stolen = 0;
    (void)state;
    OK(gpushare_memory_alloc(owner, sizeof value, &word));
    OK(gpushare_copy_to_device(owner, word, &value, sizeof value));
    assert_int_not_equal(gpushare_copy_from_device(other, &stolen, word, sizeof stolen), 0);
    assert_int_not_equal(gpushare_copy_to_device(other, word, &stolen, sizeof stolen), 0);
    assert_int_not_equal(gpushare_memory_free(other, word), 0);
    assert_int_equal(stolen, 0);
    OK(gpushare_copy_from_device(owner, &value, word, sizeof value));
    assert_int_equal(value, 5);
    gpushare_close(&other);
    gpushare_close(&owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stray_store_reaches_a_neighbours_memory),
        cmocka_unit_test(the_server_itself_touches_no_neighbours_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
