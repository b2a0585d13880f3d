/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A worker whose process gets no memory any more. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/harness.h"

static atomic_bool dry;

/* A sanitizer allocates before it can be called. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NO_DROUGHT skip()
#else
#define NO_DROUGHT (void)0

void *calloc(size_t count, size_t bytes)
{
    size_t all;
    if (atomic_load(&dry) || __builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    /* The compiler would make a call of calloc out of malloc and memset. */
    void *memory = aligned_alloc(16, all ? all : 1);
    return memory ? memset(memory, 0, all) : NULL;
}
#endif

static void a_client_leaves_without_memory(void **state)
{
    (void)state;
    NO_DROUGHT;
    struct peer *stays = peer_attach(1), *leaves = peer_attach(2);
    peer_load_text(leaves, 1, harness_ptx, 0);
    peer_host_map(leaves, 0, 65536);
    dry = true;
    peer_detach(leaves);
    dry = false;
    assert_int_equal(peer_wait(stays, 0, peer_push_nop(stays, 0)), 0);
    peer_detach(stays);
}

/* An accepted request is carried out when its client's work is done, though there is no memory
 * then.
 */
static void memory_and_events_are_given_back_without_memory(void **state)
{
    (void)state;
    NO_DROUGHT;
    struct peer *peer = peer_attach(1);
    struct proto_command_launch launch = peer_launch(peer_kernel(peer, "kernel"));
    struct proto_worker_unmap unmap = {.address = peer_map(peer, 0, 2 << 20), .count = 2 << 20};
    struct proto_event_destroy destroy = {.event = peer_event(peer)};
    fake_hold();
    uint64_t value = peer_push(peer, 0, &launch);
    peer_wait_head(peer, 0, value);
    harness_ask(PROTO_EVENT_DESTROY, 1, &destroy, PROTO_DONE);
    uint64_t serial = harness_send(PROTO_WORKER_UNMAP, 1, &unmap, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    dry = true;
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(harness.message.header.serial, serial);
    assert_int_equal(harness.events_ended, 1);
    dry = false;
    assert_int_equal(peer_wait(peer, 0, value), 0);
    peer_detach(peer);
}

static void a_schedule_without_memory_changes_nothing(void **state)
{
    (void)state;
    NO_DROUGHT;
    struct peer *peer = peer_attach(1);
    struct proto_worker_schedule wanted = harness_schedule(PROTO_MODE_FAIR, 5000000);
    wanted.local_memory = 8192;
    enum proto_mode before = harness.worker.gate.scheduler.schedule.mode;
    assert_int_not_equal(before, PROTO_MODE_FAIR);
    dry = true;
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_FAILED);
    dry = false;
    assert_int_equal(harness_error(), PROTO_ERROR_SERVER_RESOURCES);
    assert_int_equal(harness.worker.gate.scheduler.schedule.mode, before);
    assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
    assert_int_equal(harness.worker.gate.scheduler.schedule.mode, PROTO_MODE_FAIR);
    peer_detach(peer);
}

static int stop(void **state)
{
    dry = false;
    return harness_stop(state);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_setup, stop)
    const struct CMUnitTest tests[] = {
        T(a_client_leaves_without_memory),
        T(memory_and_events_are_given_back_without_memory),
        T(a_schedule_without_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
