/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Ends of connections: each ends in one place, for one client, and leaves nothing. */
#include "tests/unit/supervisor/fake.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"

static struct fake fake;
static const struct proto_event_create no_number;

enum { ANSWERED_TWICE, NEVER_ASKED, ANOTHER_CLIENT };

/* The worker is not to be believed any more: its clients are told that it is lost. */
static void a_wrong_serial_is_the_end_of_its_worker(void **state)
{
    (void)state;
    for (int lie = ANSWERED_TWICE; lie <= ANOTHER_CLIENT; lie++) {
        struct proto_attached attached;
        fake_open(&fake, 1, 256 * MIB);
        int fd = fake_attach(&fake, 0, 0, NULL, &attached);
        fake_doom_clients(&fake);
        fake.worker[0].automatic = false;
        fake_send(&fake, fd, PROTO_MEMORY_QUERY, NULL);
        fake_expect(&fake, fd, PROTO_MEMORY_INFO);
        struct proto_memory_alloc alloc = {.count = MIB};
        fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &alloc);
        struct channel_message *asked = fake_worker_expect(&fake, 0, PROTO_WORKER_MAP);
        uint64_t serial = asked->header.serial;
        if (lie == ANSWERED_TWICE)
            serial--;
        else if (lie == NEVER_ASKED)
            serial++;
        channel_send(fake.worker[0].fd,
                     &(struct channel_packet){.opcode = PROTO_DONE,
                                              .serial = serial,
                                              .client = lie == ANOTHER_CLIENT ? attached.client + 1
                                                                              : attached.client});
        fake_expect_ended(&fake, fd, PROTO_ERROR_WORKER_LOST,
                          "it answered a request that it was not sent");
        fake_expect_nothing_left(&fake);
        fake_close(&fake);
    }
}

/* Answers that cross the end of their client are no lies. */
static void late_answers_for_a_client_that_ended_are_dropped(void **state)
{
    (void)state;
    static struct channel_message late;
    fake_open(&fake, 1, 256 * MIB);
    int other = fake_attach(&fake, 0, 0, NULL, NULL);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_doom_clients(&fake);
    fake.worker[0].automatic = false;
    fake_send(&fake, fd, PROTO_EVENT_CREATE, &no_number);
    late = *fake_worker_expect(&fake, 0, PROTO_EVENT_CREATE);
    close(fd);
    struct channel_message *detach = fake_worker_expect(&fake, 0, PROTO_WORKER_DETACH);
    struct proto_event_created created = {.event = 1};
    struct proto_worker_usage usage = {0};
    fake_reply(&fake.worker[0], &late, PROTO_EVENT_CREATED, &created, NULL, 0);
    fake_reply(&fake.worker[0], detach, PROTO_WORKER_USAGE, &usage, NULL, 0);
    fake.worker[0].automatic = true;
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 1);
    fake_usage(&fake, other);
    /* After its last word about the client there is nothing left to answer. */
    fake_reply(&fake.worker[0], &late, PROTO_EVENT_CREATED, &created, NULL, 0);
    fake_expect_ended(&fake, other, PROTO_ERROR_WORKER_LOST, "it was not sent");
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_client_that_never_reads_its_answers_is_disconnected(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    struct proto_memory_free wrong = {.address = 1};
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 0 ||
                         channel_send(fd, &(struct channel_packet){.opcode = PROTO_MEMORY_FREE,
                                                                   .serial = ++fake.next_serial,
                                                                   .body = &wrong}) == -EPIPE);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void killed_clients_are_told(void **state)
{
    (void)state;
    struct proto_attached attached;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, &attached);
    fake_alloc(&fake, fd, 5 * MIB);
    assert_int_equal(clients_kill(fake.supervisor, attached.client + 1, "uid 0"), -ENOENT);
    assert_int_equal(clients_kill(fake.supervisor, attached.client, "uid 0"), 0);
    assert_int_equal(clients_kill(fake.supervisor, attached.client, "uid 0"), -ENOENT);
    fake_expect_ended(&fake, fd, PROTO_ERROR_KILLED, "uid 0");
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void the_workers_complaint_ends_its_client_alone(void **state)
{
    (void)state;
    struct proto_attached bad;
    fake_open(&fake, 1, 256 * MIB);
    int good = fake_attach(&fake, 0, 0, NULL, NULL);
    int fd = fake_attach(&fake, 0, 0, NULL, &bad);
    struct proto_worker_misbehaved complaint = {.error = PROTO_ERROR_PROTOCOL_VIOLATION,
                                                .text = "the tail of ring 0 lies"};
    channel_send(fake.worker[0].fd, &(struct channel_packet){.opcode = PROTO_WORKER_MISBEHAVED,
                                                             .client = bad.client,
                                                             .body = &complaint});
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VIOLATION, "tail of ring 0");
    /* Once more, about a client that is gone. */
    channel_send(fake.worker[0].fd, &(struct channel_packet){.opcode = PROTO_WORKER_MISBEHAVED,
                                                             .client = bad.client,
                                                             .body = &complaint});
    fake_settle(&fake);
    fake_usage(&fake, good);
    close(good);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_marked_session_stands_until_the_loops_turn(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, fd, 5 * MIB);
    struct session *session = fake_first(&fake);
    struct request *request = request_make(session, 99, PROTO_DONE);
    session_fail(session, PROTO_ERROR_KILLED, "the first reason");
    session_fail(session, PROTO_ERROR_PROTOCOL_VIOLATION, "the second reason");
    assert_int_equal(session->state, PROTO_CONNECTION_STATE_LEAVING);
    assert_true(session->fd >= 0);
    assert_int_equal(session->quotas[RESOURCE_MEMORY].used, 6 * MIB);
    /* Neither is sent, and neither does any harm. */
    session_answer(session, PROTO_DONE, 99, NULL, NULL, 0);
    session_refuse(session, 99, PROTO_ERROR_UNKNOWN, "nobody reads this");
    request_end(request);
    fake_expect_ended(&fake, fd, PROTO_ERROR_KILLED, "the first reason");
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* As a server does that took it over while it was about to end. */
static void a_reason_may_be_the_one_that_the_session_has(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    struct session *session = fake_first(&fake);
    snprintf(session->ended.text, sizeof session->ended.text, "an earlier server's reason");
    session_fail(session, PROTO_ERROR_KILLED, "%s", session->ended.text);
    fake_expect_ended(&fake, fd, PROTO_ERROR_KILLED, "an earlier server's reason");
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void keep_usage(void *context, uint32_t client, const struct proto_worker_usage *usage)
{
    (void)client;
    *(struct proto_worker_usage *)context = *usage;
}

/* Another worker would end its neighbours for nothing. */
static void a_client_that_left_without_work_costs_no_worker(void **state)
{
    (void)state;
    struct proto_attached idle, other;
    struct proto_worker_usage usage = {0};
    struct error why;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, &idle);
    int kept = fake_attach(&fake, 0, 0, NULL, &other);
    struct session *busy = fake_session(&fake, 1);
    snprintf(busy->name, sizeof busy->name, "busy");
    fake.worker[0].automatic = false;
    close(fd);
    struct channel_message detach = *fake_worker_expect(&fake, 0, PROTO_WORKER_DETACH);
    assert_int_equal(view_usage(fake.supervisor, idle.client, keep_usage, &usage), 0);
    const struct channel_message *query = fake_worker_expect(&fake, 0, PROTO_WORKER_USAGE_QUERY);
    assert_int_equal(query->header.client, idle.client);
    struct proto_worker_usage answer = {.waits_for = other.client};
    fake_reply(&fake.worker[0], query, PROTO_WORKER_USAGE, &answer, NULL, 0);
    FAKE_WAIT(&fake, usage.waits_for);
    for (int force = 0; force < 2; force++) {
        assert_int_equal(
            clients_kill_leaving(fake.supervisor, idle.client, &usage, force, "uid 0", &why),
            PROTO_ERROR_NOT_READY);
        assert_non_null(strstr(why.text, "client 1 has left and has no work"));
        assert_non_null(strstr(why.text, "which client 2 'busy' prevents"));
    }
    usage.waits_for = 0;
    assert_int_equal(
        clients_kill_leaving(fake.supervisor, idle.client, &usage, true, "uid 0", &why),
        PROTO_ERROR_NOT_READY);
    assert_non_null(strstr(why.text, "nothing to end"));
    usage.in_flight = 1;
    assert_int_equal(
        clients_kill_leaving(fake.supervisor, idle.client, &usage, false, "uid 0", &why),
        PROTO_ERROR_NOT_READY);
    assert_non_null(strstr(why.text, "interrupts work of other clients (1): 2 'busy'"));
    fake_reply(&fake.worker[0], &detach, PROTO_DONE, NULL, NULL, 0);
    FAKE_WAIT(&fake, fake_first(&fake)->number == other.client);
    fake.worker[0].automatic = true;
    close(kept);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void requests_under_way_end_with_their_client(void **state)
{
    (void)state;
    static struct channel_message map;
    struct proto_memory_alloc want = {.count = 4 * MIB};
    struct proto_attached attached;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, &attached);
    fake.worker[0].automatic = false;
    fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &want);
    map = *fake_worker_expect(&fake, 0, PROTO_WORKER_MAP);
    assert_int_equal(clients_kill(fake.supervisor, attached.client, "uid 0"), 0);
    struct channel_message *detach = fake_worker_expect(&fake, 0, PROTO_WORKER_DETACH);
    assert_int_equal(fake_first(&fake)->requests, 0);
    assert_int_equal(fake_first(&fake)->quotas[RESOURCE_MEMORY].used,
                     4 * MIB); /* the worker has it still */
    /* Its descriptor is closed, which fake_close would find. */
    struct proto_worker_mapped mapped = {.address = attached.device_base};
    int memory = memfd_create("late", MFD_CLOEXEC);
    fake_reply(&fake.worker[0], &map, PROTO_WORKER_MAPPED, &mapped, &memory, 1);
    close(memory);
    struct proto_worker_usage usage = {0};
    fake_reply(&fake.worker[0], detach, PROTO_WORKER_USAGE, &usage, NULL, 0);
    fake.worker[0].automatic = true;
    fake_expect_ended(&fake, fd, PROTO_ERROR_KILLED, "uid 0");
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_serial_is_the_end_of_its_worker),
        cmocka_unit_test(late_answers_for_a_client_that_ended_are_dropped),
        cmocka_unit_test(a_client_that_never_reads_its_answers_is_disconnected),
        cmocka_unit_test(killed_clients_are_told),
        cmocka_unit_test(the_workers_complaint_ends_its_client_alone),
        cmocka_unit_test(a_marked_session_stands_until_the_loops_turn),
        cmocka_unit_test(a_reason_may_be_the_one_that_the_session_has),
        cmocka_unit_test(a_client_that_left_without_work_costs_no_worker),
        cmocka_unit_test(requests_under_way_end_with_their_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
