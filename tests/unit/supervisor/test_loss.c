/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Clients, workers and the server that end while requests are under way. */
#include "tests/unit/supervisor/fake.h"

static struct fake fake;

/* Every request of a client that is gone before the worker, or the copy, has answered. */
static void a_client_that_vanishes_at_any_point_leaves_nothing(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    for (unsigned what = 0; what < 5; what++) {
        fake.worker[0].automatic = true;
        int fd = fake_attach(&fake, 0, 64 * MIB, NULL, NULL);
        uint64_t small = fake_alloc(&fake, fd, 4096);
        fake.worker[0].automatic = false;
        struct proto_memory_alloc alloc = {.count = what == 1 ? MIB / 2 : 4 * MIB};
        struct proto_memory_free give = {.address = small};
        struct proto_host_alloc host = {.count = MIB};
        for (unsigned i = 0; what < 2 && i < 5; i++)
            fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &alloc);
        if (what == 2)
            fake_send(&fake, fd, PROTO_MEMORY_FREE, &give);
        if (what == 3)
            fake_send(&fake, fd, PROTO_HOST_ALLOC, &host);
        if (what == 4)
            fake_send_image(&fake, fd, "text", 4);
        fake_settle(&fake);
        close(fd);
        fake_settle(&fake);
        fake.worker[0].automatic = true;
        fake_expect_nothing_left(&fake);
    }
    fake_close(&fake);
}

static void a_fault_takes_its_author_along_by_name(void **state)
{
    (void)state;
    fake_open(&fake, 2, 256 * MIB);
    int fds[3], elsewhere = fake_attach(&fake, 1, 0, NULL, NULL);
    for (unsigned i = 0; i < 3; i++) {
        fds[i] = fake_attach(&fake, 0, 0, NULL, NULL);
        fake_alloc(&fake, fds[i], 3 * MIB);
        fake_alloc(&fake, fds[i], 1000);
        fake_load(&fake, fds[i], "text");
        fake_host_alloc(&fake, fds[i], MIB, NULL);
    }
    fake.worker[0].automatic = false;
    struct proto_memory_alloc alloc = {.count = 4 * MIB};
    fake_send(&fake, fds[0], PROTO_MEMORY_ALLOC, &alloc);
    fake_settle(&fake);
    /* The fault word is what a sleeping client sees. */
    struct session *last = LIST_LAST(&fake.supervisor->server.session_list, struct session, link);
    if (!last) {
        fail_msg("the server has no session");
        return;
    }
    struct proto_status_header *status = last->status.base;
    struct proto_status_header *copy = mmap(NULL, 4096, PROT_READ, MAP_SHARED, last->status.fd, 0);
    assert_ptr_not_equal(copy, MAP_FAILED);
    assert_int_equal(status->fault, 0);
    fake_put_in_flight(&fake, last, 1);
    fake_say_fault(&fake, 0, PROTO_ERROR_ILLEGAL_ADDRESS);
    fake_expect_ended(&fake, fds[2], PROTO_ERROR_ILLEGAL_ADDRESS, "kernel f used 0x0");
    assert_int_equal(copy->fault, PROTO_ERROR_ILLEGAL_ADDRESS);
    munmap(copy, 4096);
    for (unsigned i = 0; i < 2; i++)
        close(fds[i]);
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 1);
    fake_usage(&fake, elsewhere);
    fake_kill_worker(&fake, 0);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_start_worker(&fake, 0, 256 * MIB);
    int next = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, next, MIB);
    fake_kill_worker(&fake, 0); /* without a word, this time */
    fake_expect_ended(&fake, next, PROTO_ERROR_WORKER_LOST, "worker of device 0");
    close(elsewhere);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void start_next_worker(void)
{
    FAKE_WAIT(&fake, !fake.supervisor->server.devices[0].link);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_start_worker(&fake, 0, 256 * MIB);
}

static void an_idle_client_goes_on_with_all_that_it_had(void **state)
{
    (void)state;
    struct proto_memory_alloc alloc = {.count = 4 * MIB};
    struct proto_stream_create create = {0};
    struct proto_memory_allocated allocated;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t first = fake_alloc(&fake, fd, 3 * MIB);
    fake_alloc(&fake, fd, 1000);
    fake_load(&fake, fd, "text");
    fake_host_alloc(&fake, fd, MIB, NULL);
    const struct session *session = fake_first(&fake);
    const uint64_t used = session->accounts[RESOURCE_MEMORY].used,
                   host = session->accounts[RESOURCE_HOST_MEMORY].used,
                   mapped = fake.worker[0].mapped;
    /* One request that the worker never answers, and one that nobody can take. */
    fake.worker[0].automatic = false;
    fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &alloc);
    fake_settle(&fake);
    fake_lose_worker(&fake, 0);
    fake_settle(&fake);
    assert_true(session->held);
    fake_send(&fake, fd, PROTO_STREAM_CREATE, &create);
    fake_settle(&fake);
    start_next_worker();
    fake_expect(&fake, fd, PROTO_MEMORY_ALLOCATED);
    memcpy(&allocated, fake.message.body, sizeof allocated);
    assert_int_equal(allocated.count, 4 * MIB);
    assert_int_not_equal(allocated.address, first);
    fake_expect(&fake, fd, PROTO_STREAM_CREATED);
    const struct fake_worker *next = &fake.worker[0];
    assert_int_equal(next->attached, 1);
    assert_int_equal(next->restored, 1);
    assert_int_equal(next->remaps, 2);
    assert_int_equal(next->mapped, mapped + 4 * MIB);
    assert_int_equal(next->host_maps, 1);
    assert_int_equal(next->inspected, 1);
    assert_int_equal(next->modules_again, 1);
    assert_int_equal(next->resumed, 1);
    assert_int_equal(session->accounts[RESOURCE_MEMORY].used, used + 4 * MIB);
    assert_int_equal(session->accounts[RESOURCE_HOST_MEMORY].used, host);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* At each of the messages that restore it, one after the other. */
static void a_worker_that_dies_while_it_is_told_costs_nothing(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, fd, 3 * MIB);
    fake_load(&fake, fd, "text");
    fake_host_alloc(&fake, fd, MIB, NULL);
    for (unsigned taken = 1; fake.worker[0].restored <= 1 && taken < 20; taken++) {
        fake_lose_worker(&fake, 0);
        start_next_worker();
        fake.worker[0].automatic = false;
        for (unsigned i = 0; i < taken; i++) {
            fake_settle(&fake);
            if (!fake_worker_take(&fake.worker[0]))
                break;
            fake_answer(&fake.worker[0], &fake.worker[0].message);
            channel_close_fds(&fake.worker[0].message);
        }
        if (fake.worker[0].resumed)
            break;
    }
    assert_int_equal(fake.worker[0].resumed, 1);
    fake.worker[0].automatic = true;
    fake_alloc(&fake, fd, 3 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_client_that_leaves_between_two_workers_leaves_nothing(void **state)
{
    (void)state;
    struct proto_memory_alloc alloc = {.count = 4 * MIB};
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, fd, 3 * MIB);
    fake_load(&fake, fd, "text");
    fake_host_alloc(&fake, fd, MIB, NULL);
    fake_lose_worker(&fake, 0);
    fake_settle(&fake);
    fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &alloc);
    fake_settle(&fake);
    close(fd);
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 0);
    start_next_worker();
    fake_settle(&fake);
    assert_int_equal(fake.worker[0].attached, 0);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void variables_that_only_the_lost_worker_had_end_their_client(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    fake.worker[0].resident_bytes = 4096;
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_load(&fake, fd, "text");
    fake_lose_worker(&fake, 0);
    fake_expect_ended(&fake, fd, PROTO_ERROR_WORKER_LOST, "module 1 has variables");
    fake_expect_nothing_left(&fake);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_close(&fake);
}

static void a_server_that_stops_tells_its_clients(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, fd, 3 * MIB);
    fake.worker[0].automatic = false; /* and the worker does not even answer */
    supervisor_stop(fake.supervisor);
    fake_expect_ended(&fake, fd, PROTO_ERROR_CONNECTION_LOST, "stopping");
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_vanishes_at_any_point_leaves_nothing),
        cmocka_unit_test(a_fault_takes_its_author_along_by_name),
        cmocka_unit_test(an_idle_client_goes_on_with_all_that_it_had),
        cmocka_unit_test(a_worker_that_dies_while_it_is_told_costs_nothing),
        cmocka_unit_test(a_client_that_leaves_between_two_workers_leaves_nothing),
        cmocka_unit_test(variables_that_only_the_lost_worker_had_end_their_client),
        cmocka_unit_test(a_server_that_stops_tells_its_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
