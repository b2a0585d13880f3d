/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A worker says why it ends and is gone at once: its clients are told that reason, in whichever
 * order the loop learns of the message, of the socket's end and of the process's. */
#include "tests/unit/supervisor/fake.h"

#include "server/supervisor/device/device.h"
#include "server/supervisor/device/device_request.h"

static struct fake fake;

/* More messages than the link takes in one turn of the loop. */
#define NOTICES 200

static int open_client(void)
{
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_settle(&fake);
    fake.worker[0].automatic = false;
    return fd;
}

static void worker_say_fault(void)
{
    fake_put_in_flight(&fake, fake_first(&fake), 1);
    fake_say_fault(&fake, 0, PROTO_ERROR_ILLEGAL_ADDRESS);
}

static void expect_fault(int fd)
{
    fake_expect_ended(&fake, fd, PROTO_ERROR_ILLEGAL_ADDRESS, "kernel f used 0x0");
    fake_expect_nothing_left(&fake);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_close(&fake);
}

static void a_client_that_asks_a_dead_worker_is_told_the_fault(void **state)
{
    (void)state;
    struct proto_stream_create create = {0};
    int fd = open_client();
    struct session *session = fake_first(&fake);
    worker_say_fault();
    fake_kill_worker(&fake, 0);
    /* The loop comes to the client first, twice: the request is what finds the worker dead. */
    for (int i = 0; i < 2; i++) {
        fake_send(&fake, fd, PROTO_STREAM_CREATE, &create);
        session->ready(&session->poll, 0, UV_READABLE);
    }
    expect_fault(fd);
}

static void a_fault_behind_many_messages_is_found_after_a_reset(void **state)
{
    (void)state;
    struct proto_stream_create create = {0};
    struct proto_worker_event_ended notice = {.event = 1};
    int fd = open_client();
    fake_send(&fake, fd, PROTO_STREAM_CREATE, &create);
    fake_settle(&fake); /* the worker leaves the request unread: its end resets the connection */
    for (int i = 0; i < NOTICES; i++)
        assert_int_equal(channel_send(fake.worker[0].fd,
                                      &(struct channel_packet){.opcode = PROTO_WORKER_EVENT_ENDED,
                                                               .client = 1000,
                                                               .body = &notice}),
                         0);
    worker_say_fault();
    fake_kill_worker(&fake, 0);
    expect_fault(fd);
}

static void a_fault_counts_when_the_process_is_seen_to_end_first(void **state)
{
    (void)state;
    int fd = open_client();
    worker_say_fault();
    fake_kill_worker(&fake, 0);
    device_abandon(&fake.supervisor->server.devices[0]); /* as its end does */
    expect_fault(fd);
}

/* Messages queued for it can't be sent any more, and show its end before its message is read. */
static void a_fault_counts_when_waiting_requests_can_not_be_sent(void **state)
{
    (void)state;
    struct proto_worker_window window = {0};
    struct channel_packet request = {.opcode = PROTO_WORKER_WINDOW, .client = 1, .body = &window};
    int fd = open_client();
    struct device *device = &fake.supervisor->server.devices[0];
    for (int i = 0; i < 3000; i++)
        assert_int_equal(device_request(device, &request, NULL, NULL), 0);
    worker_say_fault();
    fake_kill_worker(&fake, 0);
    expect_fault(fd);
}

static void a_client_that_was_attaching_may_try_again(void **state)
{
    (void)state;
    int other = open_client();
    int fd = fake_greet(&fake);
    struct proto_attach attach = {.allowance = PROTO_ALLOWANCE_UNSET, .name = "late"};
    fake_send(&fake, fd, PROTO_ATTACH, &attach);
    fake_settle(&fake);
    worker_say_fault();
    fake_kill_worker(&fake, 0);
    fake_expect_ended(&fake, fd, PROTO_ERROR_DEVICE_NOT_READY, "connect again");
    expect_fault(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_asks_a_dead_worker_is_told_the_fault),
        cmocka_unit_test(a_fault_behind_many_messages_is_found_after_a_reset),
        cmocka_unit_test(a_fault_counts_when_the_process_is_seen_to_end_first),
        cmocka_unit_test(a_fault_counts_when_waiting_requests_can_not_be_sent),
        cmocka_unit_test(a_client_that_was_attaching_may_try_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
