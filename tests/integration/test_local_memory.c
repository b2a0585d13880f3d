/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: launches go on within 0.5 s beside an endless kernel, and so do those with room */
/* light: it waits for kernels that are held */
/* draining: without locks, for if mapping waited, nobody could connect beside the endless kernel */
/*
 * Local memory beside a kernel that does not end, on a driver that makes room for it on each
 * partition by itself, when a kernel that needs it is launched there, and lets everybody wait for
 * the device meanwhile. The room that an administrator asked for is there before that, on
 * partitions that are made later too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/clock.h"
#include "tests/support/admin_answer.h"
#include "tests/support/arrival.h"
#include "tests/support/endless.h"
#include "tests/support/launcher.h"
#include "tests/support/ok.h"
#include "tests/support/server.h"

#define MS       UINT64_C(1000000)
#define STALL_NS (500 * MS)

/* Writes 7 to a word, through the far end of so much local memory. */
static const char deep_format[] = ".version 7.0\n"
                                  ".target sm_70\n"
                                  ".address_size 64\n"
                                  ".visible .entry deep(.param .u64 word)\n"
                                  "{\n"
                                  "    .local .align 16 .b8 own[%1$u];\n"
                                  "    .reg .u64 %%a, %%l;\n"
                                  "    .reg .u32 %%v;\n"
                                  "    ld.param.u64 %%a, [word];\n"
                                  "    mov.u64 %%l, own;\n"
                                  "    mov.u32 %%v, 7;\n"
                                  "    st.local.u32 [%%l+%2$u], %%v;\n"
                                  "    ld.local.u32 %%v, [%%l+%2$u];\n"
                                  "    st.global.u32 [%%a], %%v;\n"
                                  "    ret;\n"
                                  "}\n";

static struct server *server;

static int setup(void **state)
{
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100",
                                      "SOFTGPU_LIMIT_RESERVES=0", "SOFTGPU_LOCAL_APART=1", NULL};
    *state = server = server_start(NULL, env);
    return 0;
}

/* ---- a client whose kernel needs local memory ---- */

struct deep {
    gpushare_connection *gpu;
    gpushare_function *function;
    _Atomic uint32_t *word; /* on the host */
};

static void deep_prepare(struct deep *deep, double percentage, unsigned bytes)
{
    char text[sizeof deep_format + 32];
    void *word;
    snprintf(text, sizeof text, deep_format, bytes, bytes - 4);
    deep->gpu = arrival_connect(server, percentage);
    deep->function = arrival_load(deep->gpu, text, "deep");
    OK(gpushare_host_alloc(deep->gpu, 4096, &word));
    deep->word = word;
    atomic_store(deep->word, 0);
}

static void deep_start(struct deep *deep)
{
    struct gpushare_dim one = {1, 1, 1};
    uint64_t address = (uint64_t)(uintptr_t)deep->word;
    void *parameters[] = {&address};
    OK(gpushare_launch(deep->function, one, one, 0, NULL, parameters));
}

static bool deep_ends(struct deep *deep, uint64_t ns)
{
    uint64_t end = clock_now() + ns;
    while (!atomic_load(deep->word) && clock_now() < end)
        usleep(1000);
    return atomic_load(deep->word) == 7;
}

static void deep_close(struct deep *deep)
{
    OK(gpushare_synchronize(deep->gpu));
    gpushare_close(&deep->gpu);
}

/* ---- the scene ---- */

enum { ROOM = 32 << 10, PLACES = 4 };

static void ask_for_room(void)
{
    json_t *answer = admin_answer(server, "set gpu 0 local_memory=32K");
    assert_non_null(answer);
    json_decref(answer);
    assert_true(server_log_wait(server, "there is room for 32768 bytes of local memory a thread"));
}

/* Partitions that are there from the start, one that nobody had before, and the whole device. */
static const double places[PLACES] = {25, 50, 37, 0};

static void a_kernel_waits_only_for_room_that_is_not_there(void **state)
{
    struct deep within[PLACES], beyond;
    struct launcher other;
    struct endless endless;
    (void)state;
    ask_for_room();
    for (int i = 0; i < PLACES; i++)
        deep_prepare(&within[i], places[i], ROOM);
    deep_prepare(&beyond, 25, 2 * ROOM);
    launcher_prepare(&other, arrival_connect(server, 25), 0, 2, 1);
    endless_prepare(&endless, arrival_connect(server, 25));
    endless_start(&endless, 1, 1);
    launcher_start(&other);
    usleep(100000);
    deep_start(&beyond);
    for (int i = 0; i < PLACES; i++) {
        deep_start(&within[i]);
        if (!deep_ends(&within[i], STALL_NS))
            fail_msg("the client of %g %% waits", places[i]);
    }
    assert_false(deep_ends(&beyond, 2 * STALL_NS));
    launcher_stop(&other);
    print_message("longest gap %.1f ms\n", (double)other.longest / 1e6);
    assert_true(other.longest < STALL_NS);
    endless_end(&endless);
    assert_true(deep_ends(&beyond, 10 * STALL_NS));
    deep_close(&beyond);
    for (int i = 0; i < PLACES; i++)
        deep_close(&within[i]);
    launcher_close(&other);
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_kernel_waits_only_for_room_that_is_not_there, setup,
                                        server_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
