/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A client's life in a worker: attach, memory, a module, work, and the end. */
#include "common/clock.h"
#include "tests/unit/worker/harness.h"

static void launch_reaches_the_driver_and_completes(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    peer_load_text(peer, 1, harness_ptx, 0);
    uint32_t function = peer_function(peer, 1, "kernel");
    struct proto_command_launch launch = peer_launch(function);
    uint64_t value = peer_push(peer, 0, &launch);
    assert_int_equal(value, 1);
    assert_int_equal(peer_wait(peer, 0, value), 0);
    assert_int_equal(fake_count(FAKE_LAUNCH), 1);
    struct fake_call call = fake_call(FAKE_LAUNCH, 0);
    assert_int_equal(call.numbers[0], 3);
    assert_int_equal(call.numbers[1], 2);
    assert_int_equal(call.numbers[3], 32);
    assert_int_equal(call.numbers[4], 2);
    assert_int_equal(call.c, 16);
    assert_memory_equal(call.parameters, launch.inline_parameters, 16);
    peer_detach(peer);
}

/* The text is every client's; the address is this one's. */
static void the_base_of_variables_is_written_into_the_module(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    uint64_t device = peer_map(peer, 0, FAKE_GRANULE);
    peer_load_text(peer, 1,
                   ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 v;\n"
                   ".entry kernel()\n{\n\tst.global.u32 [v], 1;\n\tret;\n}\n",
                   device + 512);
    assert_int_equal(fake.base, device + 512);
    struct proto_global_get get = {.module = 1};
    harness_send(PROTO_GLOBAL_GET, 1, &get, "v", 1, NULL, 0);
    assert_int_equal(harness_receive(), PROTO_GLOBAL_INFO);
    assert_int_equal(((const struct proto_global_info *)harness.message.body)->address,
                     device + 512);
    /* The constant is ours: no client may write it. */
    harness_send(PROTO_GLOBAL_GET, 1, &get, "gpushare0_base", 14, NULL, 0);
    assert_int_equal(harness_receive(), PROTO_FAILED);
    peer_detach(peer);
}

static void copies_and_fills_reach_memory(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    uint64_t device = peer_map(peer, 0, FAKE_GRANULE);
    uint64_t host = peer_host_map(peer, 0, 8192);
    memset((void *)(uintptr_t)host, 0x5a, 8192);
    struct proto_command_copy copy = {
        .opcode = PROTO_COMMAND_COPY, .destination = device + 16, .source = host, .count = 8192};
    peer_push(peer, 0, &copy);
    struct proto_command_fill fill = {.opcode = PROTO_COMMAND_FILL,
                                      .value = 0x11223344,
                                      .destination = device,
                                      .count = 4,
                                      .width = 4};
    uint64_t value = peer_push(peer, 0, &fill);
    assert_int_equal(peer_wait(peer, 0, value), 0);
    /* The lock inside tells ThreadSanitizer what shared memory at two addresses does not. */
    assert_int_equal(fake_count(FAKE_FILL), 1);
    assert_int_equal(*(uint32_t *)(uintptr_t)(device + 12), 0x11223344);
    assert_int_equal(*(uint8_t *)(uintptr_t)(device + 16), 0x5a);
    assert_int_equal(*(uint8_t *)(uintptr_t)(device + 16 + 8191), 0x5a);
    const struct proto_worker_usage *usage =
        harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(usage->copies, 2);
    assert_int_equal(usage->copied_bytes, 8192 + 16);
    assert_int_equal(usage->streams, 1);
    assert_int_equal(usage->multiprocessors, 132);
    peer_detach(peer);
}

static void long_parameters_come_from_the_arena(void **state)
{
    (void)state;
    fake.param_count = 1;
    fake.param_size[0] = 40;
    struct peer *peer = peer_attach(1);
    peer_load_text(peer, 1, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(peer, 1, "kernel"));
    launch.parameter_bytes = 40;
    assert_int_equal(ring_arena_room(&peer->producers[0], 40, &launch.parameter_offset), 0);
    memset(peer->producers[0].ring.arena + launch.parameter_offset, 0x77, 40);
    assert_int_equal(peer_wait(peer, 0, peer_push(peer, 0, &launch)), 0);
    struct fake_call call = fake_call(FAKE_LAUNCH, 0);
    assert_int_equal(call.c, 40);
    for (int i = 0; i < 40; i++)
        assert_int_equal(call.parameters[i], 0x77);
    peer_detach(peer);
}

static void many_launches_of_many_clients_all_arrive(void **state)
{
    (void)state;
    struct peer *peers[4];
    struct proto_command_launch launches[4];
    uint64_t last[4];
    for (uint32_t i = 0; i < 4; i++) {
        peers[i] = peer_attach(i + 1);
        peer_load_text(peers[i], 1, harness_ptx, 0);
        launches[i] = peer_launch(peer_function(peers[i], 1, "kernel"));
        peer_stream(peers[i], 0);
    }
    for (int n = 0; n < 3000; n++)
        for (uint32_t i = 0; i < 4; i++)
            last[i] = peer_push(peers[i], n & 1, &launches[i]);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(peer_wait(peers[i], 0, 1500), 0);
        assert_int_equal(peer_wait(peers[i], 1, 1500), 0);
        assert_int_equal(last[i], 1500);
    }
    assert_int_equal(fake_count(FAKE_LAUNCH), 12000);
    for (uint32_t i = 0; i < 4; i++)
        peer_detach(peers[i]);
}

static uint32_t fault_word(const struct peer *peer)
{
    return ring_status_header(peer->status.base)->fault;
}

static void *do_nothing(void *unused)
{
    return unused;
}

/* Whether a client ends with its worker is the supervisor's to say, or its successor's. */
static void a_worker_without_a_supervisor_ends_no_client(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    pthread_mutex_lock(&fake.lock);
    fake.hold = true;
    pthread_mutex_unlock(&fake.lock);
    peer_push_nop(peer, 0);
    shutdown(harness.channel, SHUT_RDWR);
    pthread_join(harness.thread, NULL);
    assert_int_equal(harness.result, CONTROL_SUPERVISOR_GONE);
    assert_int_equal(fault_word(peer), 0);
    fake_release();
    /* For harness_stop to join. */
    assert_int_equal(pthread_create(&harness.thread, NULL, do_nothing, NULL), 0);
    peer_free(peer);
}

static void sticky_error_of_a_launch_ends_the_worker(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1), *other = peer_attach(2);
    peer_load_text(peer, 1, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(peer, 1, "kernel"));
    pthread_mutex_lock(&fake.lock);
    fake.next_launch = CUDA_ERR_ILLEGAL_ADDRESS;
    fake.hold = true;
    pthread_mutex_unlock(&fake.lock);
    peer_push(peer, 0, &launch);
    assert_int_equal(harness_receive(), PROTO_WORKER_FAULT);
    const struct proto_worker_fault *fault = harness.message.body;
    assert_int_equal(fault->error, PROTO_ERROR_ILLEGAL_ADDRESS);
    assert_non_null(strstr(fault->text, "a launch"));
    pthread_join(harness.thread, NULL);
    assert_int_equal(harness.result, CONTROL_CONTEXT_LOST);
    assert_int_equal(fault_word(peer), 0);
    assert_int_equal(fault_word(other), 0);
    /* The effects of a process's end. */
    submitter_stop(&harness.worker.submitter);
    harness.worker.failed = 0;
    fake_release();
    assert_int_equal(pthread_create(&harness.thread, NULL, harness_main, NULL), 0);
    assert_int_equal(harness_receive(), PROTO_KERNEL_HEAP);
    assert_int_equal(harness_receive(), PROTO_DEVICE_INFO);
    peer_free(peer);
    peer_free(other);
}

static void *fail_worker(void *unused)
{
    (void)unused;
    worker_fail(&harness.worker, CUDA_ERR_ILLEGAL_ADDRESS, CONTEXT_LOSS_WORK);
    return NULL;
}

/* A worker that ended before would be taken for one that was lost without a reason. */
static void a_worker_ends_after_it_has_told_its_fault(void **state)
{
    (void)state;
    pthread_t failing;
    struct peer *peer = peer_attach(1);
    /* The thread that met the fault gets no further than to a socket that is full. */
    const struct channel_packet filler = {.opcode = PROTO_WORKER_RELEASED, .client = 1};
    int fillers = 0;
    while (channel_send(harness.worker.channel, &filler) == 0)
        fillers++;
    assert_true(fillers > 0);
    assert_int_equal(pthread_create(&failing, NULL, fail_worker, NULL), 0);
    usleep(20000);
    wake_control(&harness.worker.wake);
    usleep(100000);
    assert_int_equal(pthread_tryjoin_np(harness.thread, NULL), EBUSY);
    assert_int_equal(harness_receive(), PROTO_WORKER_FAULT);
    pthread_join(failing, NULL);
    pthread_join(harness.thread, NULL);
    assert_int_equal(harness.result, CONTROL_CONTEXT_LOST);
    submitter_stop(&harness.worker.submitter);
    harness.worker.failed = 0;
    assert_int_equal(pthread_create(&harness.thread, NULL, harness_main, NULL), 0);
    assert_int_equal(harness_receive(), PROTO_KERNEL_HEAP);
    assert_int_equal(harness_receive(), PROTO_DEVICE_INFO);
    peer_free(peer);
}

static void fault_is_found_while_work_is_in_flight(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    pthread_mutex_lock(&fake.lock);
    fake.hold = true;
    fake.query = CUDA_ERR_MISALIGNED_ADDRESS;
    pthread_mutex_unlock(&fake.lock);
    peer_push_nop(peer, 0);
    assert_int_equal(harness_receive(), PROTO_WORKER_FAULT);
    const struct proto_worker_fault *fault = harness.message.body;
    assert_int_equal(fault->error, PROTO_ERROR_MISALIGNED_ADDRESS);
    pthread_join(harness.thread, NULL);
    harness.worker.failed = 0;
    fake.query = CUDA_OK;
    assert_int_equal(pthread_create(&harness.thread, NULL, harness_main, NULL), 0);
    assert_int_equal(harness_receive(), PROTO_KERNEL_HEAP);
    assert_int_equal(harness_receive(), PROTO_DEVICE_INFO);
    peer_free(peer);
}

static void ordinary_error_stands_in_the_stream_status(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    peer_load_text(peer, 1, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(peer, 1, "kernel"));
    pthread_mutex_lock(&fake.lock);
    fake.next_launch = CUDA_ERR_LAUNCH_OUT_OF_RESOURCES;
    pthread_mutex_unlock(&fake.lock);
    assert_int_equal(peer_wait(peer, 0, peer_push(peer, 0, &launch)), 0);
    struct proto_stream_status *status = peer->producers[0].ring.status;
    assert_int_equal(status->error, PROTO_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_int_equal(status->error_count, 1);
    peer_detach(peer);
}

/* A copy over two registrations is refused, so steps end at the multiples that no command may
 * cross. */
static void host_buffers_are_registered_in_steps(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    const uint64_t step = UINT64_C(4) << 20;
    const uint32_t before = fake_count(FAKE_REGISTER);
    uint64_t address = peer_host_map(peer, 8192, 2 * step);
    const uint64_t expected[][2] = {
        {address, step - 8192}, {address + step - 8192, step}, {address + 2 * step - 8192, 8192}};
    assert_int_equal(fake_count(FAKE_REGISTER), before + 3);
    for (uint32_t i = 0; i < 3; i++) {
        struct fake_call call = fake_call(FAKE_REGISTER, before + i);
        assert_int_equal(call.a, expected[i][0]);
        assert_int_equal(call.b, expected[i][1]);
    }
    const uint32_t gone = fake_count(FAKE_UNREGISTER);
    struct proto_worker_host_unmap unmap = {.address = address, .count = 2 * step};
    harness_ask(PROTO_WORKER_HOST_UNMAP, 1, &unmap, PROTO_DONE);
    assert_int_equal(fake_count(FAKE_UNREGISTER), gone + 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(fake_call(FAKE_UNREGISTER, gone + i).a, expected[i][0]);
    peer_detach(peer);
}

static uint32_t host_map_refused(struct peer *peer, int fd, uint64_t address, uint64_t count)
{
    struct proto_worker_host_map map = {.address = address, .count = count};
    harness_send(PROTO_WORKER_HOST_MAP, peer->number, &map, NULL, 0, &fd, 1);
    harness_receive();
    return harness_error();
}

static void impossible_requests_of_a_supervisor_are_refused(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    const uint64_t grain = FAKE_GRANULE;
    uint64_t taken = peer_map(peer, grain, 2 * grain);
    const uint64_t wrong[][2] = {{peer->device_base - grain, grain},
                                 {peer->device_base + WINDOW_BYTES, grain},
                                 {peer->device_base + WINDOW_BYTES - grain, 2 * grain},
                                 {peer->device_base, UINT64_MAX - grain + 1},
                                 {peer->device_base + grain / 2, grain},
                                 {peer->device_base, grain / 2},
                                 {taken, grain},
                                 {taken - grain, 2 * grain},
                                 {taken + grain, 2 * grain}};
    uint32_t maps = fake_count(FAKE_MAP);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct proto_worker_map map = {.address = wrong[i][0], .count = wrong[i][1]};
        harness_ask(PROTO_WORKER_MAP, 1, &map, PROTO_FAILED);
    }
    assert_int_equal(fake_count(FAKE_MAP), maps);
    struct shm shm;
    assert_int_equal(shm_create(&shm, "host", 8192), 0);
    assert_int_equal(host_map_refused(peer, shm.fd, peer->host_base, 12288),
                     PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(host_map_refused(peer, shm.fd, peer->host_base + 1, 4096),
                     PROTO_ERROR_INVALID_VALUE);
    int open_ended = memfd_create("not sealed", MFD_CLOEXEC);
    assert_int_equal(ftruncate(open_ended, 8192), 0);
    assert_int_equal(host_map_refused(peer, open_ended, peer->host_base, 8192),
                     PROTO_ERROR_INVALID_VALUE);
    close(open_ended);
    shm_release(&shm);
    peer_detach(peer);
}

/* Whoever has nothing to do costs nothing: the client leaves the scan set, the thread sleeps. */
static void an_idle_client_lets_the_submitter_sleep(void **state)
{
    (void)state;
    struct peer *peers[2] = {peer_attach(1), peer_attach(2)};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++)
            assert_int_equal(peer_wait(peers[i], 0, peer_push_nop(peers[i], 0)), 0);
        uint64_t end = clock_now() + 10000000000u;
        while (!wake_submitter_sleeps(&harness.worker.wake)) {
            assert_true(clock_now() < end);
            sched_yield();
        }
        for (int i = 0; i < 2; i++)
            assert_int_equal(__atomic_load_n(&ring_client_header(peers[i]->rings.base)->asleep,
                                             __ATOMIC_SEQ_CST),
                             1);
    }
    peer_detach(peers[0]);
    peer_detach(peers[1]);
}

/* A supervisor that reads nothing keeps the control thread, which answers it, and nobody else. */
static void a_full_channel_keeps_no_lock(void **state)
{
    (void)state;
    enum { QUERIES = 200 };
    const int small = 1;
    struct peer *peer = peer_attach(1);
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    limits.allowance.kernel_time = 50000000;
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
    peer_load_text(peer, 1, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(peer, 1, "kernel"));
    assert_int_equal(
        setsockopt(harness.worker.channel, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    for (int i = 0; i < QUERIES; i++)
        harness_send(PROTO_WORKER_USAGE_QUERY, 1, NULL, NULL, 0, NULL, 0);
    struct pollfd room = {.fd = harness.worker.channel, .events = POLLOUT};
    while (poll(&room, 1, 0) != 0)
        usleep(1000);
    fake_hold();
    uint64_t value = peer_push(peer, 0, &launch);
    /* The worker has told of the kernel, or tries to. */
    uint64_t looks = clock_now() + 300000000;
    bool had = true;
    while (had && clock_now() < looks) {
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 5;
        had = pthread_mutex_timedlock(&harness.worker.clients_lock, &end) == 0;
        if (had)
            pthread_mutex_unlock(&harness.worker.clients_lock);
        usleep(1000);
    }
    uint32_t usages = 0, overran = 0;
    while (usages < QUERIES || !overran) {
        uint16_t opcode = harness_receive();
        usages += opcode == PROTO_WORKER_USAGE;
        overran += opcode == PROTO_WORKER_OVERRAN;
    }
    assert_int_equal(overran, 1);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, value), 0);
    peer_detach(peer);
    assert_true(had);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_stop)
    const struct CMUnitTest tests[] = {
        T(launch_reaches_the_driver_and_completes),
        T(the_base_of_variables_is_written_into_the_module),
        T(copies_and_fills_reach_memory),
        T(long_parameters_come_from_the_arena),
        T(many_launches_of_many_clients_all_arrive),
        T(a_worker_without_a_supervisor_ends_no_client),
        T(sticky_error_of_a_launch_ends_the_worker),
        T(a_worker_ends_after_it_has_told_its_fault),
        T(fault_is_found_while_work_is_in_flight),
        T(ordinary_error_stands_in_the_stream_status),
        T(host_buffers_are_registered_in_steps),
        T(impossible_requests_of_a_supervisor_are_refused),
        T(an_idle_client_lets_the_submitter_sleep),
        T(a_full_channel_keeps_no_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
