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

static void a_lost_worker_takes_its_clients_along_by_name(void **state)
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
    struct proto_worker_fault fault = {.error = PROTO_ERROR_ILLEGAL_ADDRESS,
                                       .text = "kernel f used 0x0"};
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
    channel_send(fake.worker[0].fd,
                 &(struct channel_packet){.opcode = PROTO_WORKER_FAULT, .body = &fault});
    for (unsigned i = 0; i < 3; i++)
        fake_expect_ended(&fake, fds[i], PROTO_ERROR_ILLEGAL_ADDRESS, "kernel f used 0x0");
    assert_int_equal(copy->fault, PROTO_ERROR_ILLEGAL_ADDRESS);
    munmap(copy, 4096);
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
        cmocka_unit_test(a_lost_worker_takes_its_clients_along_by_name),
        cmocka_unit_test(a_server_that_stops_tells_its_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
