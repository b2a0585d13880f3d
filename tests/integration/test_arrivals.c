/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: 100 clients are served in 40 s; loads of modest users take 3 s beside a greedy one
 * light: its clients wait for kernels and windows
 * draining: without locks, for if mapping waited, nobody could connect beside the endless kernel
 * long: a crowd comes, and loads are repeated
 *
 * Many clients that come at once, and clients of several users, on a driver that waits for the
 * device and keeps the context's lock meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/clock.h"
#include "tests/support/arrival.h"
#include "tests/support/endless.h"
#include "tests/support/kernels.h"
#include "tests/support/launcher.h"
#include "tests/support/ok.h"
#include "tests/support/server.h"

#define MS       UINT64_C(1000000)
#define STALL_NS (500 * MS)
#define CROWD_NS (20000 * MS)

static struct server *server;

static int setup(void **state)
{
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100", NULL};
    static const char *const args[] = {"--max-clients", "256", NULL};
    (void)state;
    server = server_start(args, env);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return server_stop(server);
}

/* Limits of memory, so that all find addresses: a server under ThreadSanitizer has few. */
static gpushare_connection *arrive(void)
{
    return arrival_connect_with(
        server, (struct gpushare_options){.memory_limit = 64 << 20, .host_memory_limit = 64 << 20});
}

/* ---- a crowd that comes beside an endless kernel ---- */

enum { CROWD = 100, WORDS = 4096 };

static atomic_uint connected, served;

/* A client that pins memory, copies there and back, and stays until the endless kernel has ended.
 */
static void *come(void *context)
{
    atomic_bool *leave = context;
    uint32_t *words, back[WORDS];
    void *pinned;
    gpushare_address memory;
    gpushare_connection *gpu = arrive();
    atomic_fetch_add(&connected, 1);
    OK(gpushare_memory_alloc(gpu, sizeof back, &memory));
    OK(gpushare_host_alloc(gpu, sizeof back, &pinned));
    words = pinned;
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 7;
    OK(gpushare_copy_to_device(gpu, memory, words, sizeof back));
    OK(gpushare_copy_from_device(gpu, back, memory, sizeof back));
    if (memcmp(words, back, sizeof back))
        abort();
    atomic_fetch_add(&served, 1);
    while (!atomic_load(leave))
        usleep(10000);
    gpushare_close(&gpu);
    return NULL;
}

static void wait_for(atomic_uint *count, unsigned wanted, uint64_t within)
{
    uint64_t end = clock_now() + within;
    while (atomic_load(count) < wanted && clock_now() < end)
        usleep(1000);
}

static void a_crowd_is_served_beside_an_endless_kernel(void **state)
{
    (void)state;
    struct endless endless;
    struct launcher other;
    pthread_t threads[CROWD];
    atomic_bool leave = false;
    launcher_prepare(&other, arrive(), 0, 2, 1);
    endless_prepare(&endless, arrive());
    endless_start(&endless, 1, 1);
    launcher_start(&other);
    usleep(300000); /* the server sees that the kernel goes on */
    uint64_t begun = clock_now();
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come, &leave), 0);
    wait_for(&connected, CROWD, CROWD_NS);
    uint64_t came = clock_now();
    wait_for(&served, CROWD, CROWD_NS);
    print_message("%u came in %.1f ms, %u served in %.1f ms; longest gap %.1f ms\n",
                  atomic_load(&connected), (double)(came - begun) / 1e6, atomic_load(&served),
                  (double)(clock_now() - begun) / 1e6, (double)other.longest / 1e6);
    unsigned all = atomic_load(&served);
    launcher_stop(&other);
    atomic_store(&leave, true);
    endless_end(&endless);
    for (unsigned i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    launcher_close(&other);
    assert_int_equal(connected, CROWD);
    assert_int_equal(all, CROWD);
    assert_true(other.longest < STALL_NS);
}

/* ---- users ---- */

enum { GREEDY = 8, MODEST = 2, LOADS = 4, GREEDY_UID = 1001 };

#define LOAD_NS (3000 * MS)

struct loader {
    gpushare_connection *gpu;
    pthread_t thread;
    unsigned loads;
};

static atomic_bool stop;

/* A client counts as the effective user of the moment in which it connects. */
static gpushare_connection *arrive_as(uid_t uid)
{
    assert_int_equal(seteuid(uid), 0);
    gpushare_connection *gpu = arrive();
    assert_int_equal(seteuid(0), 0);
    return gpu;
}

static void load_once(struct loader *loader)
{
    gpushare_module *module;
    OK(gpushare_module_load(loader->gpu, kernels_ptx, 0, &module));
    OK(gpushare_module_unload(module));
    loader->loads++;
}

static void *load_on(void *context)
{
    while (!atomic_load(&stop))
        load_once(context);
    return NULL;
}

/* Each load needs a quiet window, and windows have 5 % of the time: a user with eight clients asks
 * for more than all of them. */
static void a_user_who_loads_on_and_on_delays_no_other_users_loads(void **state)
{
    (void)state;
    static struct loader greedy[GREEDY], modest[MODEST];
    struct launcher other;
    uint64_t worst = 0;
    if (geteuid() != 0) {
        print_message("skipped: only root can connect as another user\n");
        skip();
    }
    launcher_prepare(&other, arrive(), 0, 2, 20);
    for (unsigned i = 0; i < GREEDY; i++)
        greedy[i] = (struct loader){.gpu = arrive_as(GREEDY_UID)};
    for (unsigned i = 0; i < MODEST; i++)
        modest[i] = (struct loader){.gpu = arrive_as(GREEDY_UID + 1 + i)};
    launcher_start(&other);
    for (unsigned i = 0; i < GREEDY; i++)
        assert_int_equal(pthread_create(&greedy[i].thread, NULL, load_on, &greedy[i]), 0);
    usleep(2000000); /* what windows had saved up is used */
    for (unsigned n = 0; n < LOADS; n++)
        for (unsigned i = 0; i < MODEST; i++) {
            uint64_t begun = clock_now();
            load_once(&modest[i]);
            uint64_t took = clock_now() - begun;
            worst = took > worst ? took : worst;
        }
    atomic_store(&stop, true);
    launcher_stop(&other);
    unsigned loads = 0;
    for (unsigned i = 0; i < GREEDY; i++) {
        pthread_join(greedy[i].thread, NULL);
        loads += greedy[i].loads;
        gpushare_close(&greedy[i].gpu);
    }
    print_message("the worst load of the modest took %.1f ms; %u of the greedy\n",
                  (double)worst / 1e6, loads);
    for (unsigned i = 0; i < MODEST; i++)
        gpushare_close(&modest[i].gpu);
    launcher_close(&other);
    assert_true(loads > GREEDY);
    assert_true(worst < LOAD_NS);
}

int main(void)
{
    server_needs_softgpu();
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_crowd_is_served_beside_an_endless_kernel),
        T(a_user_who_loads_on_and_on_delays_no_other_users_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
