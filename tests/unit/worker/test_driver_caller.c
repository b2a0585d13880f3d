/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: 50 ms without a message */
/* light: it waits for messages that must not come */
/* The control thread waits for no call of the driver: while one of them is stuck, everybody else is
 * answered. */
#include "common/clock.h"
#include "common/util.h"
#include "tests/unit/worker/harness.h"

static struct cuda_driver driver;

/* Calls that are made one by one, when the test says so. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    uint32_t waiting;
    uint32_t fails_after; /* registrations that go well; 0: all */
    useconds_t takes;     /* each registration */
    uint64_t ended;       /* the last registration that took time; 0: none did */
    uint64_t least_rest;  /* from the end of one of these to the begin of the next */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pass(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    pthread_cond_broadcast(&gate.changed);
    while (gate.closed)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.waiting--;
    pthread_mutex_unlock(&gate.lock);
}

static void set_closed(bool closed)
{
    pthread_mutex_lock(&gate.lock);
    gate.closed = closed;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void await_stuck(void)
{
    pthread_mutex_lock(&gate.lock);
    while (!gate.waiting)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static cuda_result slow_map(cuda_device_ptr ptr, size_t size, size_t offset, cuda_mem_handle handle,
                            unsigned long long flags)
{
    pass();
    return fake_cuMemMap(ptr, size, offset, handle, flags);
}

static cuda_result slow_register(void *ptr, size_t size, unsigned flags)
{
    pass();
    pthread_mutex_lock(&gate.lock);
    useconds_t takes = gate.takes;
    if (takes && gate.ended)
        gate.least_rest = min(gate.least_rest, clock_now() - gate.ended);
    pthread_mutex_unlock(&gate.lock);
    usleep(takes);
    pthread_mutex_lock(&gate.lock);
    gate.ended = takes ? clock_now() : 0;
    bool fails = gate.fails_after && --gate.fails_after == 0;
    pthread_mutex_unlock(&gate.lock);
    return fails ? CUDA_ERR_OUT_OF_MEMORY : fake_cuMemHostRegister(ptr, size, flags);
}

static cuda_result slow_occupancy(int *blocks, cuda_function function, int threads, size_t shared)
{
    pass();
    return fake_cuOccupancy(blocks, function, threads, shared);
}

static int setup(void **state)
{
    fake_reset();
    gate.closed = false;
    gate.waiting = gate.fails_after = 0;
    gate.takes = 0;
    gate.ended = 0;
    gate.least_rest = UINT64_MAX;
    driver = fake_driver();
    driver.cuMemMap = slow_map;
    driver.cuMemHostRegister = slow_register;
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = slow_occupancy;
    return harness_start_with(state, &driver);
}

static uint64_t send_map(const struct peer *peer)
{
    struct proto_worker_map map = {.address = peer->device_base, .count = FAKE_GRANULE};
    return harness_send(PROTO_WORKER_MAP, peer->number, &map, NULL, 0, NULL, 0);
}

static uint64_t send_host_map(const struct peer *peer, uint64_t bytes)
{
    struct shm buffer;
    struct proto_worker_host_map map = {.address = peer->host_base, .count = bytes};
    assert_int_equal(shm_create(&buffer, "buffer", bytes), 0);
    uint64_t serial =
        harness_send(PROTO_WORKER_HOST_MAP, peer->number, &map, NULL, 0, &buffer.fd, 1);
    shm_release(&buffer);
    return serial;
}

static void others_are_answered_while_a_call_is_stuck(void **state)
{
    (void)state;
    struct peer *first = peer_attach(1), *second = peer_attach(2);
    set_closed(true);
    uint64_t serial = send_map(first);
    await_stuck();
    harness_ask(PROTO_WORKER_USAGE_QUERY, 2, NULL, PROTO_WORKER_USAGE);
    harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    peer_stream(second, 0);
    assert_int_equal(peer_wait(second, 0, peer_push_nop(second, 0)), 0);
    set_closed(false);
    assert_int_equal(harness_receive(), PROTO_WORKER_MAPPED);
    assert_int_equal(harness.message.header.serial, serial);
    peer_detach(first);
    peer_detach(second);
}

static void a_client_leaves_while_its_call_is_stuck(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    set_closed(true);
    send_map(peer);
    await_stuck();
    uint64_t serial = harness_send(PROTO_WORKER_DETACH, 1, NULL, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    set_closed(false);
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(harness.message.header.serial, serial);
    assert_int_equal(fake.live_maps, 0);
    peer_free(peer);
}

static void a_client_leaves_before_it_is_attached(void **state)
{
    (void)state;
    struct served_rings rings;
    struct shm status, shadows;
    struct proto_worker_attach attach = {.device_base = DEVICE_BASE + WINDOW_BYTES,
                                         .host_base = HOST_BASE + WINDOW_BYTES,
                                         .window_bytes = WINDOW_BYTES,
                                         .streams = STREAMS,
                                         .allowance = granted_whole()};
    assert_int_equal(served_rings_make(&rings, STREAMS), 0);
    assert_int_equal(shm_create(&status, "status", ring_status_bytes(STREAMS)), 0);
    assert_int_equal(shm_create(&shadows, "shadows", journal_shadow_bytes(STREAMS)), 0);
    int doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int fds[4] = {rings.fd, status.fd, shadows.fd, doorbell};
    set_closed(true);
    harness_send(PROTO_WORKER_ATTACH, 1, &attach, NULL, 0, fds, 4);
    await_stuck();
    harness_send(PROTO_WORKER_ATTACH, 1, &attach, NULL, 0, fds, 4);
    assert_int_equal(harness_receive(), PROTO_FAILED);
    uint64_t serial = harness_send(PROTO_WORKER_DETACH, 1, NULL, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    harness_ask(PROTO_WORKER_DETACH, 1, NULL, PROTO_FAILED);
    set_closed(false);
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(harness.message.header.serial, serial);
    assert_int_equal(fake.live_registers, 0);
    served_rings_release(&rings);
    shm_release(&status);
    shm_release(&shadows);
    close(doorbell);
    peer_detach(peer_attach(1));
}

/* Where in the log the first or the last call of a kind stands. */
static uint32_t place_of(enum fake_kind kind, bool last)
{
    uint32_t at = UINT32_MAX;
    pthread_mutex_lock(&fake.lock);
    for (uint32_t i = 0; i < fake.calls && (last || at == UINT32_MAX); i++)
        if (fake.log[i].kind == kind)
            at = i;
    pthread_mutex_unlock(&fake.lock);
    return at;
}

static void a_long_registration_lets_others_go_first(void **state)
{
    (void)state;
    struct peer *first = peer_attach(1), *second = peer_attach(2);
    set_closed(true);
    uint64_t host = send_host_map(first, 3 * PROTO_SLICE_BYTES);
    await_stuck();
    uint64_t map = send_map(second);
    harness_ask(PROTO_WORKER_USAGE_QUERY, 2, NULL, PROTO_WORKER_USAGE);
    set_closed(false);
    for (int i = 0; i < 2; i++) {
        harness_receive();
        assert_true(harness.message.header.serial == host || harness.message.header.serial == map);
    }
    assert_true(place_of(FAKE_MAP, false) < place_of(FAKE_REGISTER, true));
    peer_detach(first);
    peer_detach(second);
}

/* Steps of 30 ms, with rests of a third of that between them. */
static void while_a_kernel_runs_others_have_the_driver_between_steps(void **state)
{
    (void)state;
    struct peer *busy = peer_attach(1), *peer = peer_attach(2);
    peer_load_text(busy, 1, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(busy, 1, "kernel"));
    fake_hold();
    uint64_t value = peer_push(busy, 0, &launch);
    peer_wait_head(busy, 0, value);
    pthread_mutex_lock(&gate.lock);
    gate.takes = 30000;
    pthread_mutex_unlock(&gate.lock);
    send_host_map(peer, 4 * PROTO_REGISTRATION_BYTES);
    assert_int_equal(harness_receive(), PROTO_DONE);
    pthread_mutex_lock(&gate.lock);
    assert_true(gate.least_rest >= UINT64_C(10000000) && gate.least_rest != UINT64_MAX);
    pthread_mutex_unlock(&gate.lock);
    fake_release();
    assert_int_equal(peer_wait(busy, 0, value), 0);
    peer_detach(busy);
    peer_detach(peer);
}

static void a_buffer_that_is_registered_in_part_is_given_back(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    pthread_mutex_lock(&gate.lock);
    gate.fails_after = 3;
    pthread_mutex_unlock(&gate.lock);
    int before = fake.live_registers;
    uint64_t serial = send_host_map(peer, 3 * PROTO_SLICE_BYTES);
    assert_int_equal(harness_receive(), PROTO_FAILED);
    assert_int_equal(harness.message.header.serial, serial);
    assert_int_equal(fake.live_registers, before);
    /* The address is free again when the answer says so. */
    serial = send_host_map(peer, 3 * PROTO_SLICE_BYTES);
    assert_int_equal(harness_receive(), PROTO_DONE);
    peer_detach(peer);
}

/* A module that a call uses is not given up before the call was made. */
static void an_unload_waits_for_a_call_about_its_kernel(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    peer_load_text(peer, 1, harness_ptx, 0);
    uint32_t function = peer_function(peer, 1, "kernel");
    struct proto_occupancy_get get = {.function = function, .block_threads = 32};
    struct proto_module_unload unload = {.module = 1};
    set_closed(true);
    uint64_t first = harness_send(PROTO_OCCUPANCY_GET, 1, &get, NULL, 0, NULL, 0);
    uint64_t second = harness_send(PROTO_MODULE_UNLOAD, 1, &unload, NULL, 0, NULL, 0);
    await_stuck();
    assert_false(harness_has_message(50));
    assert_int_equal(fake.live_modules, 1);
    set_closed(false);
    assert_int_equal(harness_receive(), PROTO_OCCUPANCY_INFO);
    assert_int_equal(harness.message.header.serial, first);
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(harness.message.header.serial, second);
    peer_detach(peer);
}

/* The control thread destroys no event: it would wait for the context's lock. */
static void an_event_whose_number_is_asked_for_twice_is_made_once(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    struct proto_event_create create = {.event = 5};
    uint32_t destroyed = fake_count(FAKE_EVENT_DESTROY);
    set_closed(true);
    uint64_t map = send_map(peer);
    await_stuck();
    uint64_t first = harness_send(PROTO_EVENT_CREATE, 1, &create, NULL, 0, NULL, 0);
    harness_ask(PROTO_EVENT_CREATE, 1, &create, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_VALUE);
    set_closed(false);
    /* The memory is cleared before it is answered. */
    for (int i = 0; i < 2; i++) {
        uint16_t opcode = harness_receive();
        assert_true(opcode == PROTO_WORKER_MAPPED || opcode == PROTO_EVENT_CREATED);
        assert_int_equal(harness.message.header.serial,
                         opcode == PROTO_WORKER_MAPPED ? map : first);
    }
    assert_int_equal(fake_count(FAKE_EVENT_DESTROY), destroyed);
    peer_detach(peer);
}

/* The worker ends while calls are queued: they are made, and nothing is left. */
static void the_worker_ends_with_calls_queued(void **state)
{
    (void)state;
    struct peer *first = peer_attach(1), *second = peer_attach(2);
    set_closed(true);
    send_host_map(first, PROTO_SLICE_BYTES);
    send_map(first);
    send_map(second);
    await_stuck();
    set_closed(false);
    peer_free(first);
    peer_free(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(others_are_answered_while_a_call_is_stuck, setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(a_client_leaves_while_its_call_is_stuck, setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(a_client_leaves_before_it_is_attached, setup, harness_stop),
        cmocka_unit_test_setup_teardown(a_long_registration_lets_others_go_first, setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(while_a_kernel_runs_others_have_the_driver_between_steps,
                                        setup, harness_stop),
        cmocka_unit_test_setup_teardown(a_buffer_that_is_registered_in_part_is_given_back, setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(an_unload_waits_for_a_call_about_its_kernel, setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(an_event_whose_number_is_asked_for_twice_is_made_once,
                                        setup, harness_stop),
        cmocka_unit_test_setup_teardown(the_worker_ends_with_calls_queued, setup, harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
