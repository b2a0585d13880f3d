/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: 15 ms of a test must not take 75 ms */
/* light: it waits for windows */
/* Calls that wait for the device are made while nothing is on it: harness_stop looks that none was
 * made beside anything that the driver held back. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/worker/harness.h"

static struct peer *busy, *other;
static uint32_t function;

static int setup(void **state)
{
    harness_setup(state);
    busy = peer_attach(1);
    other = peer_attach(2);
    peer_load_text(busy, 1, harness_ptx, 0);
    function = peer_function(busy, 1, "kernel");
    return 0;
}

/* The quiet thread gets no memory for what it notes of running work. */
static bool has_no_rows;

void *reallocarray(void *items, size_t count, size_t bytes)
{
    size_t all;
    if ((has_no_rows && bytes == sizeof(struct quiet_work)) ||
        __builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(items, all);
}

static int setup_without_rows(void **state)
{
    has_no_rows = true;
    return setup(state);
}

static int stop_without_rows(void **state)
{
    int result = harness_stop(state);
    has_no_rows = false;
    return result;
}

/* A kernel that runs until fake_release. */
static uint64_t occupy(void)
{
    struct proto_command_launch launch = peer_launch(function);
    fake_hold();
    uint64_t value = peer_push(busy, 0, &launch);
    peer_wait_head(busy, 0, value);
    return value;
}

static void a_load_waits_for_what_runs(void **state)
{
    (void)state;
    uint64_t value = occupy();
    peer_send_text(other, 1, harness_ptx);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    struct proto_worker_module_load load = {.module = 1};
    harness_send(PROTO_WORKER_MODULE_LOAD, 2, &load, NULL, 0, NULL, 0);
    assert_false(harness_has_message(300));
    assert_int_equal(fake_count(FAKE_LOAD), 1);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_MODULE_LOADED);
    assert_int_equal(peer_wait(busy, 0, value), 0);
    peer_detach(busy);
    peer_detach(other);
}

/* The same where there is no memory to note what runs. */
static void a_load_waits_for_work_that_has_no_row(void **state)
{
    a_load_waits_for_what_runs(state);
}

static void others_submit_while_a_kernel_outlives_its_expectation(void **state)
{
    (void)state;
    occupy();
    peer_send_text(other, 1, harness_ptx);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    struct proto_worker_module_load load = {.module = 1};
    harness_send(PROTO_WORKER_MODULE_LOAD, 2, &load, NULL, 0, NULL, 0);
    /* An unknown kernel is expected to last 50 ms, and given up after one and a half times that. */
    usleep(200000);
    peer_wait_head(other, 0, peer_push_nop(other, 0));
    fake_release();
    assert_int_equal(harness_receive(), PROTO_MODULE_LOADED);
    peer_detach(busy);
    peer_detach(other);
}

/* The attempt at a window has failed by then, since the kernel outlives what is expected of it. */
static void each_ring_has_one_kernel_in_flight_while_a_call_waits(void **state)
{
    (void)state;
    peer_load_text(other, 1, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(other, 1, "kernel"));
    uint32_t second = peer_stream(other, 0);
    uint64_t last[2];
    occupy();
    peer_send_text(other, 2, harness_ptx);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    struct proto_worker_module_load load = {.module = 2};
    harness_send(PROTO_WORKER_MODULE_LOAD, 2, &load, NULL, 0, NULL, 0);
    usleep(200000);
    uint32_t before = fake_count(FAKE_LAUNCH);
    for (int i = 0; i < 3; i++)
        last[0] = peer_push(other, 0, &launch);
    last[1] = peer_push(other, second, &launch);
    peer_wait_head(other, second, last[1]);
    peer_wait_head(other, 0, last[0] - 2);
    usleep(20000);
    assert_int_equal(fake_count(FAKE_LAUNCH), before + 2);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_MODULE_LOADED);
    assert_int_equal(peer_wait(other, 0, last[0]), 0);
    assert_int_equal(peer_wait(other, second, last[1]), 0);
    peer_detach(busy);
    peer_detach(other);
}

/* Where in the log the latest call of this kind stands; 0: there is none. */
static uint32_t last_call(enum fake_kind kind)
{
    uint32_t at = 0;
    pthread_mutex_lock(&fake.lock);
    for (uint32_t i = 0; i < fake.calls && i < FAKE_LOG; i++)
        if (fake.log[i].kind == kind)
            at = i + 1;
    pthread_mutex_unlock(&fake.lock);
    return at;
}

static void while_a_window_is_awaited_nobody_submits(void **state)
{
    (void)state;
    uint64_t value = occupy();
    peer_send_text(other, 1, harness_ptx);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    struct proto_worker_module_load load = {.module = 1};
    harness_send(PROTO_WORKER_MODULE_LOAD, 2, &load, NULL, 0, NULL, 0);
    usleep(10000);
    uint64_t held = peer_push_nop(other, 0);
    usleep(5000);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_MODULE_LOADED);
    assert_int_equal(peer_wait(busy, 0, value), 0);
    assert_int_equal(peer_wait(other, 0, held), 0);
    assert_true(last_call(FAKE_LOAD) < last_call(FAKE_WRITE));
    peer_detach(busy);
    peer_detach(other);
}

static void kept_buffers_go_from_client_to_client_without_a_window(void **state)
{
    (void)state;
    const uint64_t bytes = 1 << 16;
    uint64_t address = peer_host_map(other, 0, bytes);
    struct peer *third = peer_attach(3);
    struct proto_worker_host_keep keep = {.address = address, .count = bytes};
    struct proto_worker_host_lend lend = {.address = address, .count = bytes};
    struct proto_worker_host_drop drop = {.address = address, .count = bytes};
    uint32_t made = fake_count(FAKE_REGISTER), gone = fake_count(FAKE_UNREGISTER);
    occupy();
    harness_ask(PROTO_WORKER_HOST_LEND, 3, &lend, PROTO_FAILED); /* the other's still */
    harness_ask(PROTO_WORKER_HOST_KEEP, 2, &keep, PROTO_DONE);
    harness_ask(PROTO_WORKER_HOST_KEEP, 2, &keep, PROTO_FAILED);
    harness_ask(PROTO_WORKER_HOST_LEND, 3, &lend, PROTO_DONE);
    harness_ask(PROTO_WORKER_HOST_LEND, 2, &lend, PROTO_FAILED);
    harness_ask(PROTO_WORKER_HOST_KEEP, 3, &keep, PROTO_DONE);
    assert_int_equal(fake_count(FAKE_REGISTER), made);
    assert_int_equal(fake_count(FAKE_UNREGISTER), gone);
    uint64_t serial = harness_send(PROTO_WORKER_HOST_DROP, 0, &drop, NULL, 0, NULL, 0);
    harness_ask(PROTO_WORKER_HOST_LEND, 3, &lend, PROTO_FAILED); /* on its way out */
    assert_false(harness_has_message(50));
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(harness.message.header.serial, serial);
    assert_int_equal(fake_count(FAKE_UNREGISTER), gone + 1);
    harness_ask(PROTO_WORKER_HOST_DROP, 0, &drop, PROTO_DONE); /* unknown by now */
    /* Its addresses are free again. */
    peer_host_map(other, 0, bytes);
    peer_detach(third);
    peer_detach(busy);
    peer_detach(other);
}

static void a_client_that_leaves_has_no_memory_before_the_window(void **state)
{
    (void)state;
    uint32_t maps = fake.live_maps;
    peer_map(other, 0, FAKE_GRANULE);
    peer_load_text(other, 1, harness_ptx, 0);
    occupy();
    assert_int_equal(fake.live_maps, maps + 1);
    harness_send(PROTO_WORKER_DETACH, 2, NULL, NULL, 0, NULL, 0);
    for (int i = 0; i < 1000 && !harness.released; i++)
        assert_false(harness_has_message(10));
    assert_int_equal(harness.released, 1);
    assert_int_equal(fake.live_maps, maps);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    peer_free(other);
    peer_detach(busy);
}

/* Its multiprocessors are others' at once, though its end waits for the window. */
static void a_client_that_leaves_has_no_multiprocessors_before_the_window(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    limits.allowance.threads.request = 6000;
    harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_WORKER_ATTACHED);
    struct peer *third = peer_attach(3);
    harness_ask(PROTO_WORKER_LIMITS, 3, &limits, PROTO_FAILED);
    occupy();
    uint64_t detach = harness_send(PROTO_WORKER_DETACH, 2, NULL, NULL, 0, NULL, 0);
    for (int i = 0; i < 1000 && !harness.released; i++)
        assert_false(harness_has_message(10));
    harness_ask(PROTO_WORKER_LIMITS, 3, &limits, PROTO_WORKER_ATTACHED);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(harness.message.header.serial, detach);
    peer_free(other);
    peer_detach(third);
    peer_detach(busy);
}

static void unloads_and_unregistrations_ride_along(void **state)
{
    (void)state;
    uint64_t address = peer_host_map(other, 0, 1 << 16);
    peer_load_text(other, 1, harness_ptx, 0);
    occupy();
    struct proto_module_unload unload = {.module = 1};
    struct proto_worker_host_unmap unmap = {.address = address, .count = 1 << 16};
    uint64_t first = harness_send(PROTO_MODULE_UNLOAD, 2, &unload, NULL, 0, NULL, 0);
    uint64_t second = harness_send(PROTO_WORKER_HOST_UNMAP, 2, &unmap, NULL, 0, NULL, 0);
    assert_false(harness_has_message(100));
    /* Requests that wait for nothing are answered meanwhile. */
    uint64_t memory = peer_map(other, 0, FAKE_GRANULE);
    struct proto_worker_unmap give = {.address = memory, .count = FAKE_GRANULE};
    harness_ask(PROTO_WORKER_UNMAP, 2, &give, PROTO_DONE);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(harness.message.header.serial, first);
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(harness.message.header.serial, second);
    peer_detach(busy);
    peer_detach(other);
}

static void a_client_leaves_while_its_load_waits(void **state)
{
    (void)state;
    occupy();
    peer_send_text(other, 1, harness_ptx);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    struct proto_worker_module_load load = {.module = 1};
    harness_send(PROTO_WORKER_MODULE_LOAD, 2, &load, NULL, 0, NULL, 0);
    usleep(20000);
    harness_send(PROTO_WORKER_DETACH, 2, NULL, NULL, 0, NULL, 0);
    assert_false(harness_has_message(100));
    /* Its number is taken until its memory is no longer registered; others come meanwhile. */
    struct peer *third = peer_attach(3);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(harness.message.header.client, 2);
    assert_int_equal(fake_count(FAKE_LOAD), 1);
    peer_free(other);
    peer_detach(third);
    peer_detach(busy);
}

static void set_fair(void)
{
    struct proto_worker_schedule wanted = harness_schedule(PROTO_MODE_FAIR, 5000000);
    wanted.precision = 5000;
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
}

/* The first client's lease is long over when its kernel ends, and the second one waits for the
 * next: the third one's module is loaded before that begins. */
static void a_load_is_made_where_a_lease_ends(void **state)
{
    (void)state;
    struct peer *third = peer_attach(3);
    set_fair();
    peer_load_text(other, 1, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(other, 1, "kernel"));
    /* Each takes longer than is expected of it by then, so that no window is awaited at its end. */
    for (int round = 1; round <= 4; round++) {
        uint64_t value = occupy();
        uint64_t next = peer_push(other, 0, &launch);
        peer_send_text(third, (uint32_t)round, harness_ptx);
        assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
        struct proto_worker_module_load load = {.module = (uint32_t)round};
        harness_send(PROTO_WORKER_MODULE_LOAD, 3, &load, NULL, 0, NULL, 0);
        usleep(60000u << round);
        fake_release();
        assert_int_equal(harness_receive(), PROTO_MODULE_LOADED);
        assert_int_equal(peer_wait(busy, 0, value), 0);
        assert_int_equal(peer_wait(other, 0, next), 0);
        assert_true(last_call(FAKE_LOAD) < last_call(FAKE_LAUNCH));
    }
    const struct proto_worker_usage *used =
        harness_ask(PROTO_WORKER_USAGE_QUERY, 2, NULL, PROTO_WORKER_USAGE);
    assert_true(used->charged < UINT64_C(1000000000));
    peer_detach(busy);
    peer_detach(other);
    peer_detach(third);
}

/* ---- local memory ---- */

static uint32_t function_with_local(struct peer *peer, uint32_t module, uint32_t bytes)
{
    fake.local_bytes = bytes;
    peer_load_text(peer, module, harness_ptx, 0);
    uint32_t with = peer_function(peer, module, "kernel");
    fake.local_bytes = 0;
    return with;
}

static void a_kernel_with_more_local_memory_holds_its_own_ring_alone(void **state)
{
    (void)state;
    uint32_t large = function_with_local(other, 1, 4096),
             small = function_with_local(other, 2, 1024);
    uint32_t second = peer_stream(other, 0);
    occupy();
    struct proto_command_launch launch = peer_launch(large), usual = peer_launch(small);
    uint64_t value = peer_push(other, 0, &launch);
    uint32_t launches = fake_count(FAKE_LAUNCH);
    usleep(200000);
    assert_int_equal(fake_count(FAKE_GROW), 0);
    peer_wait_head(other, second, peer_push(other, second, &usual));
    assert_int_equal(fake_count(FAKE_LAUNCH), launches + 1);
    fake_release();
    assert_int_equal(peer_wait(other, 0, value), 0);
    assert_int_equal(fake_count(FAKE_GROW), 1);
    assert_int_equal(fake_call(FAKE_GROW, 0).a, 4096);
    /* The room stays. */
    assert_int_equal(peer_wait(other, 0, peer_push(other, 0, &launch)), 0);
    assert_int_equal(fake_count(FAKE_GROW), 1);
    peer_detach(busy);
    peer_detach(other);
}

static void a_refusal_fails_the_launch_and_the_next_one_asks_again(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(function_with_local(other, 1, 65536));
    fake.next_grow = CUDA_ERR_OUT_OF_MEMORY;
    uint32_t launches = fake_count(FAKE_LAUNCH);
    peer_wait(other, 0, peer_push(other, 0, &launch));
    assert_int_equal(fake_count(FAKE_LAUNCH), launches);
    assert_int_equal(fake_count(FAKE_GROW), 1);
    fake.next_grow = CUDA_OK;
    peer_wait(other, 0, peer_push(other, 0, &launch));
    assert_int_equal(fake_count(FAKE_GROW), 2);
    assert_int_equal(fake_count(FAKE_LAUNCH), launches + 1);
    peer_detach(busy);
    peer_detach(other);
}

static void a_client_that_leaves_needs_no_room_any_more(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(function_with_local(other, 1, 4096));
    occupy();
    peer_push(other, 0, &launch);
    usleep(20000);
    harness_send(PROTO_WORKER_DETACH, 2, NULL, NULL, 0, NULL, 0);
    assert_false(harness_has_message(100));
    fake_release();
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(fake_count(FAKE_GROW), 0);
    peer_free(other);
    peer_detach(busy);
}

static void an_administrator_has_room_made_beforehand(void **state)
{
    (void)state;
    struct proto_worker_schedule wanted = harness_schedule(PROTO_MODE_CONCURRENT, 5000000);
    wanted.local_memory = 8192;
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
    struct proto_command_launch launch = peer_launch(function_with_local(other, 1, 8192));
    assert_int_equal(peer_wait(other, 0, peer_push(other, 0, &launch)), 0);
    assert_int_equal(fake_count(FAKE_GROW), 1);
    assert_int_equal(fake_call(FAKE_GROW, 0).a, 8192);
    wanted.local_memory = 1024;
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
    assert_int_equal(peer_wait(other, 0, peer_push(other, 0, &launch)), 0);
    assert_int_equal(fake_count(FAKE_GROW), 1);
    peer_detach(busy);
    peer_detach(other);
}

/* Nobody has published whether the limit alone is enough. */
static void room_is_made_on_each_partition(void **state)
{
    (void)state;
    const void *seen[STREAM_POOL_MAX];
    cuda_stream streams[STREAM_POOL_MAX];
    uint32_t partitions = stream_pool_one_of_each(&harness.worker.pool, streams, STREAM_POOL_MAX);
    uint32_t begun = fake_count(FAKE_ROOM);
    /* Those that are made at start have had theirs. */
    assert_true(partitions > 3);
    assert_int_equal(begun, partitions);
    for (uint32_t i = 0; i < begun; i++)
        assert_int_equal(fake_call(FAKE_ROOM, i).a, 1024);
    struct proto_command_launch launch = peer_launch(function_with_local(other, 1, 4096));
    assert_int_equal(peer_wait(other, 0, peer_push(other, 0, &launch)), 0);
    assert_int_equal(fake_count(FAKE_ROOM), begun + partitions);
    for (uint32_t i = 0; i < partitions; i++) {
        struct fake_call call = fake_call(FAKE_ROOM, begun + i);
        assert_int_equal(call.a, 4096);
        seen[i] = ((const struct cuda_stream_object *)call.stream)->green;
        for (uint32_t before = 0; before < i; before++)
            assert_ptr_not_equal(seen[before], seen[i]);
    }
    /* A new partition has as much. */
    struct peer *third = peer_attach_with(3, 3700, 0);
    assert_int_equal(fake_count(FAKE_ROOM), begun + partitions + 1);
    assert_int_equal(fake_call(FAKE_ROOM, begun + partitions).a, 4096);
    peer_detach(busy);
    peer_detach(other);
    peer_detach(third);
}

static void a_partition_without_memory_left_refuses_the_room(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(function_with_local(other, 1, 65536));
    uint32_t launches = fake_count(FAKE_LAUNCH);
    fake.next_room = CUDA_ERR_OUT_OF_MEMORY;
    peer_wait(other, 0, peer_push(other, 0, &launch));
    assert_int_equal(fake_count(FAKE_LAUNCH), launches);
    /* The limit is what it was. */
    assert_int_equal(fake_call(FAKE_GROW, 0).a, 65536);
    assert_int_equal(fake_call(FAKE_GROW, 1).a, 1024);
    fake.next_room = CUDA_OK;
    peer_wait(other, 0, peer_push(other, 0, &launch));
    assert_int_equal(fake_count(FAKE_LAUNCH), launches + 1);
    peer_detach(busy);
    peer_detach(other);
}

/* The worker must not wait for a window that will not come. */
static void a_worker_ends_with_calls_that_wait(void **state)
{
    (void)state;
    peer_load_text(other, 1, harness_ptx, 0);
    occupy();
    struct proto_module_unload unload = {.module = 1};
    harness_send(PROTO_MODULE_UNLOAD, 2, &unload, NULL, 0, NULL, 0);
    peer_send_text(other, 2, harness_ptx);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    struct proto_worker_module_load load = {.module = 2};
    harness_send(PROTO_WORKER_MODULE_LOAD, 2, &load, NULL, 0, NULL, 0);
    usleep(20000);
    peer_free(busy);
    peer_free(other);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, harness_stop)
    const struct CMUnitTest tests[] = {
        T(a_load_waits_for_what_runs),
        cmocka_unit_test_setup_teardown(a_load_waits_for_work_that_has_no_row, setup_without_rows,
                                        stop_without_rows),
        T(others_submit_while_a_kernel_outlives_its_expectation),
        T(each_ring_has_one_kernel_in_flight_while_a_call_waits),
        T(while_a_window_is_awaited_nobody_submits),
        T(kept_buffers_go_from_client_to_client_without_a_window),
        T(a_client_that_leaves_has_no_memory_before_the_window),
        T(a_client_that_leaves_has_no_multiprocessors_before_the_window),
        T(unloads_and_unregistrations_ride_along),
        T(a_client_leaves_while_its_load_waits),
        T(a_load_is_made_where_a_lease_ends),
        T(a_kernel_with_more_local_memory_holds_its_own_ring_alone),
        T(a_refusal_fails_the_launch_and_the_next_one_asks_again),
        T(a_client_that_leaves_needs_no_room_any_more),
        T(an_administrator_has_room_made_beforehand),
        T(room_is_made_on_each_partition),
        T(a_partition_without_memory_left_refuses_the_room),
        T(a_worker_ends_with_calls_that_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
