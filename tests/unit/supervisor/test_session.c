/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A connection's states: the messages allowed in each, and their numbers. Its ends are in
 * test_session_end.c. */
#include "server/supervisor/session/session_state.h"
#include "tests/unit/supervisor/fake.h"

static struct fake fake;
static const struct proto_event_create no_number;

static void an_attached_client_is_told_what_it_was_granted(void **state)
{
    (void)state;
    struct proto_attached got;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_greet(&fake);
    struct proto_attach body = {.allowance = PROTO_ALLOWANCE_UNSET};
    body.allowance.memory.limit = 64 * MIB;
    body.allowance.threads.limit = 2500;
    body.allowance.priority = 1;
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    memcpy(&got, fake_expect(&fake, fd, PROTO_ATTACHED), sizeof got);
    assert_int_equal(fake.message.fd_count, 3);
    assert_int_equal(fcntl(fake.message.fds[1], F_GETFL) & O_ACCMODE, O_RDONLY);
    channel_close_fds(&fake.message);
    const struct proto_allowance *granted = &got.grant.allowance;
    assert_int_equal(granted->memory.limit, 64 * MIB);
    assert_int_equal(granted->host_memory.limit, 16 * MIB);
    assert_int_equal(got.window_bytes, 128 * MIB);
    assert_int_equal(got.device_base % got.window_bytes, 0);
    assert_int_equal(got.device_base - fake.settings.device_base,
                     got.host_base - fake.settings.host_base);
    assert_int_equal(granted->threads.limit, 2500);
    assert_int_equal(got.grant.multiprocessors, 64);
    assert_int_equal(granted->priority, 1);
    assert_int_equal(got.streams, 4);
    close(fd);
    fake_expect_nothing_left(&fake);
    assert_int_equal(fake.worker[0].detached, 1);
    fake_close(&fake);
}

/* Fills a body that passes the schema's checks: the state alone decides then. */
static void fill(const struct proto_message *type, uint8_t *body)
{
    memset(body, 0, type->bytes);
    if (type->opcode == PROTO_ATTACH)
        ((struct proto_attach *)body)->allowance = (struct proto_allowance)PROTO_ALLOWANCE_UNSET;
    for (size_t words = 0; type->check(body); words++) {
        assert_true(words < 3);
        memset(body, 0, type->bytes);
        for (size_t i = 0; i <= words; i++)
            body[4 * i] = 1;
    }
}

static void every_message_too_early_ends_the_connection(void **state)
{
    (void)state;
    unsigned refused = 0;
    fake_open(&fake, 1, 256 * MIB);
    for (uint16_t opcode = 1; opcode < 200; opcode++) {
        const struct proto_message *type = proto_message_find(opcode);
        if (!type || !(type->from & PROTO_PEER_CLIENT))
            continue;
        for (int greeted = 0; greeted < 2; greeted++) {
            bool allowed = greeted ? opcode == PROTO_DEVICE_QUERY || opcode == PROTO_ATTACH ||
                                         opcode == PROTO_KERNEL_HEAP_QUERY
                                   : opcode == PROTO_HELLO;
            if (allowed)
                continue;
            _Alignas(16) uint8_t body[PROTO_MESSAGE_MAX];
            fill(type, body);
            int fd = greeted ? fake_greet(&fake) : fake_connect(&fake);
            int image = memfd_create("x", MFD_CLOEXEC);
            fake_send_fd(&fake, fd, opcode, body, &image, type->fds);
            close(image);
            const struct proto_ended *ended = fake_expect(&fake, fd, PROTO_ENDED);
            assert_int_equal(ended->error, PROTO_ERROR_PROTOCOL_VIOLATION);
            /* One with a descriptor is not read. */
            if (type->fds)
                assert_non_null(strstr(ended->text, "descriptors before it was attached"));
            else
                assert_true(strstr(ended->text, "is not allowed in the state") ||
                            strstr(ended->text, "may not send"));
            close(fd);
            refused++;
        }
    }
    assert_true(refused > 40);
    fake_expect_nothing_left(&fake);
    assert_int_equal(fake.worker[0].attached, 0);
    fake_close(&fake);
}

static void a_second_hello_or_attach_ends_the_connection(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    struct proto_hello hello = {.major = PROTO_MAJOR};
    struct proto_attach attach = {.allowance = PROTO_ALLOWANCE_UNSET};
    int fd = fake_greet(&fake);
    fake_send(&fake, fd, PROTO_HELLO, &hello);
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VIOLATION, "'greeted'");
    fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_send(&fake, fd, PROTO_ATTACH, &attach);
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VIOLATION, "'attached'");
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void another_major_version_is_refused_in_words(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_connect(&fake);
    char newer[16], older[16];
    snprintf(newer, sizeof newer, " %d.7", PROTO_MAJOR + 1);
    snprintf(older, sizeof older, " %d.3", PROTO_MAJOR - 1);
    struct proto_hello hello = {.major = PROTO_MAJOR + 1, .minor = 7};
    fake_send(&fake, fd, PROTO_HELLO, &hello);
    fake_expect_failed(&fake, fd, PROTO_ERROR_PROTOCOL_VERSION, newer);
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VERSION, newer);
    fd = fake_connect(&fake);
    hello = (struct proto_hello){.major = PROTO_MAJOR - 1, .minor = 3};
    fake_send(&fake, fd, PROTO_HELLO, &hello);
    fake_expect_failed(&fake, fd, PROTO_ERROR_PROTOCOL_VERSION, older);
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VERSION, older);
    fake_close(&fake);
}

/* Its header is another one; the refusal comes in a packet of its own version. */
static void a_client_of_major_1_is_told_in_its_own_form(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_connect(&fake);
    struct proto_hello_of_major_1 hello = {
        .bytes = sizeof hello, .opcode = PROTO_HELLO, .serial = 1, .major = 1};
    struct proto_failed_of_major_1 failed;
    assert_int_equal(send(fd, &hello, sizeof hello, 0), sizeof hello);
    ssize_t got = -1;
    FAKE_WAIT(&fake, (got = recv(fd, &failed, sizeof failed, 0)) >= 0);
    assert_int_equal(got, sizeof failed);
    assert_int_equal(failed.opcode, PROTO_FAILED);
    assert_int_equal(failed.serial, 1);
    assert_int_equal(failed.error, PROTO_ERROR_PROTOCOL_VERSION);
    assert_non_null(strstr(failed.text, "the client speaks protocol 1.0"));
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VERSION, "protocol 1");
    /* Once greeted, such a packet is only a broken one. */
    fd = fake_greet(&fake);
    assert_int_equal(send(fd, &hello, sizeof hello, 0), sizeof hello);
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VIOLATION, "does not fit its kind");
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_repeated_serial_is_refused_and_not_carried_out(void **state)
{
    (void)state;
    struct proto_memory_alloc alloc = {.count = MIB};
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t large = UINT64_C(1) << 40;
    channel_send(fd, &(struct channel_packet){
                         .opcode = PROTO_MEMORY_ALLOC, .serial = large, .body = &alloc});
    fake_expect(&fake, fd, PROTO_MEMORY_ALLOCATED);
    assert_true(fake.message.header.serial == large);
    uint64_t used = fake_first(&fake)->quotas[RESOURCE_MEMORY].used;
    const uint64_t stale[] = {large, large - 1, 1};
    for (int i = 0; i < 3; i++) {
        channel_send(fd, &(struct channel_packet){
                             .opcode = PROTO_MEMORY_ALLOC, .serial = stale[i], .body = &alloc});
        fake_expect_failed(&fake, fd, PROTO_ERROR_PROTOCOL_VIOLATION,
                           "not greater than 1099511627776");
        assert_true(fake.message.header.serial == stale[i]);
        assert_true(fake_first(&fake)->quotas[RESOURCE_MEMORY].used == used);
    }
    /* The connection goes on. */
    channel_send(fd, &(struct channel_packet){.opcode = PROTO_MEMORY_QUERY, .serial = large + 7});
    fake_expect(&fake, fd, PROTO_MEMORY_INFO);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void headers_are_checked(void **state)
{
    (void)state;
    struct proto_hello hello = {.major = PROTO_MAJOR};
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_connect(&fake);
    channel_send(fd, &(struct channel_packet){
                         .opcode = PROTO_HELLO, .serial = 1, .client = 5, .body = &hello});
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VIOLATION, "client");
    fd = fake_connect(&fake);
    channel_send(fd, &(struct channel_packet){.opcode = PROTO_HELLO, .body = &hello});
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VIOLATION, "serial");
    fd = fake_connect(&fake);
    assert_int_equal(send(fd, "short", 5, 0), 5);
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VIOLATION, "shorter");
    fd = fake_connect(&fake);
    static char large[PROTO_MESSAGE_MAX + 100];
    assert_int_equal(send(fd, large, sizeof large, 0), sizeof large);
    fake_expect_ended(&fake, fd, PROTO_ERROR_PROTOCOL_VIOLATION, "longer");
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_device_that_is_not_there_costs_nothing(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_greet(&fake);
    struct proto_device_query query = {.device = 1};
    struct proto_kernel_heap_query heap_query = {.device = 1};
    struct proto_attach attach = {.device = UINT32_MAX, .allowance = PROTO_ALLOWANCE_UNSET};
    fake_send(&fake, fd, PROTO_KERNEL_HEAP_QUERY, &heap_query);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_DEVICE, "device 1");
    fake_send(&fake, fd, PROTO_DEVICE_QUERY, &query);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_DEVICE, "device 1");
    fake_send(&fake, fd, PROTO_ATTACH, &attach);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_DEVICE, "4294967295");
    query.device = 0;
    fake_send(&fake, fd, PROTO_DEVICE_QUERY, &query);
    const struct proto_device_info *info = fake_expect(&fake, fd, PROTO_DEVICE_INFO);
    assert_int_equal(info->memory, 256 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void silent_clients_go_away(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    fake.settings.hello_timeout_ms = 20;
    int silent = fake_connect(&fake);
    int greeted = fake_greet(&fake);
    fake_expect_ended(&fake, silent, PROTO_ERROR_CONNECTION_LOST, "sent nothing");
    fake_expect_ended(&fake, greeted, PROTO_ERROR_CONNECTION_LOST, "did not attach");
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void one_client_too_many_is_refused_by_name(void **state)
{
    (void)state;
    enum { SESSIONS_MAX = 40 };
    int fds[SESSIONS_MAX];
    struct proto_hello hello = {.major = PROTO_MAJOR};
    fake_open(&fake, 1, 256 * MIB);
    for (unsigned i = 0; i < SESSIONS_MAX; i++)
        fds[i] = fake_greet(&fake);
    int late = fake_connect(&fake);
    fake_send(&fake, late, PROTO_HELLO, &hello);
    fake_expect_failed(&fake, late, PROTO_ERROR_TOO_MANY_CLIENTS, "40");
    close(late);
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == SESSIONS_MAX);
    close(fds[7]);
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == SESSIONS_MAX - 1);
    fds[7] = fake_greet(&fake);
    for (unsigned i = 0; i < SESSIONS_MAX; i++)
        close(fds[i]);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void an_early_client_waits_for_the_device(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    fake_kill_worker(&fake, 0);
    FAKE_WAIT(&fake, fake.supervisor->server.devices[0].state == DEVICE_WAITING);
    int fd = fake_greet(&fake);
    struct proto_attach attach = {.allowance = PROTO_ALLOWANCE_UNSET};
    fake_send(&fake, fd, PROTO_ATTACH, &attach);
    fake_settle(&fake);
    assert_int_equal(fake_take(&fake, fd), CHANNEL_EMPTY);
    int other = fake_greet(&fake); /* vanishes while it waits */
    fake_send(&fake, other, PROTO_ATTACH, &attach);
    fake_settle(&fake);
    close(other);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_start_worker(&fake, 0, 256 * MIB);
    fake_expect(&fake, fd, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    close(fd);
    fake_expect_nothing_left(&fake);
    assert_int_equal(fake.worker[0].attached, 1);
    fake_close(&fake);
}

static void a_client_that_vanishes_while_it_attaches_leaves_nothing(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    fake.worker[0].automatic = false;
    int fd = fake_greet(&fake);
    struct proto_attach attach = {.allowance = PROTO_ALLOWANCE_UNSET};
    fake_send(&fake, fd, PROTO_ATTACH, &attach);
    struct channel_message *message = fake_worker_expect(&fake, 0, PROTO_WORKER_ATTACH);
    channel_close_fds(message);
    static struct channel_message request;
    request = *message;
    close(fd);
    fake_worker_expect(&fake, 0, PROTO_WORKER_DETACH);
    assert_int_equal(fake.supervisor->server.sessions, 1); /* not before the worker says so */
    assert_int_equal(fake.supervisor->server.plan.windows, 1);
    struct proto_worker_attached attached = {.multiprocessors = 8};
    fake_reply(&fake.worker[0], &request, PROTO_WORKER_ATTACHED, &attached, NULL, 0);
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void requests_beyond_the_limit_wait_in_the_socket(void **state)
{
    (void)state;
    enum { SENT = PROTO_REQUESTS_MAX + 20 };
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake.worker[0].automatic = false;
    uint64_t first = fake.next_serial + 1;
    for (unsigned i = 0; i < SENT; i++)
        fake_send(&fake, fd, PROTO_EVENT_CREATE, &no_number);
    fake_settle(&fake);
    assert_int_equal(fake_first(&fake)->requests, PROTO_REQUESTS_MAX);
    for (unsigned i = 0; i < SENT; i++) {
        struct proto_event_created created = {.event = i + 1};
        struct channel_message *message = fake_worker_expect(&fake, 0, PROTO_EVENT_CREATE);
        fake_reply(&fake.worker[0], message, PROTO_EVENT_CREATED, &created, NULL, 0);
        const struct proto_event_created *got = fake_expect(&fake, fd, PROTO_EVENT_CREATED);
        assert_int_equal(got->event, i + 1);
        assert_int_equal(fake.message.header.serial, first + i);
    }
    fake.worker[0].automatic = true;
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void answers_come_back_under_their_own_serials(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake.worker[0].automatic = false;
    static struct channel_message one, two;
    uint64_t first = fake_send(&fake, fd, PROTO_EVENT_CREATE, &no_number);
    uint64_t second = fake_send(&fake, fd, PROTO_EVENT_CREATE, &no_number);
    one = *fake_worker_expect(&fake, 0, PROTO_EVENT_CREATE);
    two = *fake_worker_expect(&fake, 0, PROTO_EVENT_CREATE);
    struct proto_event_created created = {.event = 22};
    fake_reply(&fake.worker[0], &two, PROTO_EVENT_CREATED, &created, NULL, 0);
    fake_expect(&fake, fd, PROTO_EVENT_CREATED);
    assert_int_equal(fake.message.header.serial, second);
    fake_reply(&fake.worker[0], &one, PROTO_EVENT_CREATED, &created, NULL, 0);
    fake_expect(&fake, fd, PROTO_EVENT_CREATED);
    assert_int_equal(fake.message.header.serial, first);
    fake.worker[0].automatic = true;
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void an_answer_of_another_kind_is_a_refusal(void **state)
{
    (void)state;
    struct proto_worker_usage usage = {0};
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake.worker[0].automatic = false;
    fake_send(&fake, fd, PROTO_EVENT_CREATE, &no_number);
    fake_reply(&fake.worker[0], fake_worker_expect(&fake, 0, PROTO_EVENT_CREATE),
               PROTO_WORKER_USAGE, &usage, NULL, 0);
    fake_expect_failed(&fake, fd, PROTO_ERROR_UNKNOWN, "no answer to event_create");
    fake.worker[0].automatic = true;
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static uint32_t create_event(int fd)
{
    fake_send(&fake, fd, PROTO_EVENT_CREATE, &no_number);
    struct channel_message *asked = fake_worker_expect(&fake, 0, PROTO_EVENT_CREATE);
    struct proto_event_created created = {
        .event = ((const struct proto_event_create *)asked->body)->event};
    fake_reply(&fake.worker[0], asked, PROTO_EVENT_CREATED, &created, NULL, 0);
    return ((const struct proto_event_created *)fake_expect(&fake, fd, PROTO_EVENT_CREATED))->event;
}

static void numbers_are_the_servers_to_choose(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake.worker[0].automatic = false;
    struct proto_stream_create stream = {.stream = 2};
    struct proto_event_create event = {.event = 1};
    struct proto_function_get function = {.module = 1, .function = 1};
    fake_send(&fake, fd, PROTO_STREAM_CREATE, &stream);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_VALUE, "a client sends 0");
    fake_send(&fake, fd, PROTO_EVENT_CREATE, &event);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_VALUE, "a client sends 0");
    fake_send(&fake, fd, PROTO_FUNCTION_GET, &function);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_VALUE, "a client sends 0");
    /* Numbers that were never given don't reach the worker. */
    struct proto_stream_destroy no_stream = {.stream = 1};
    struct proto_event_destroy no_event = {.event = UINT32_MAX};
    struct proto_event_elapsed elapsed = {.start = 1, .end = 2};
    struct proto_function_set set = {.function = 77, .attribute = 1};
    struct proto_occupancy_get occupancy = {.function = 1, .block_threads = 32};
    fake_send(&fake, fd, PROTO_STREAM_DESTROY, &no_stream);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "no stream 1");
    fake_send(&fake, fd, PROTO_EVENT_DESTROY, &no_event);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "no event 4294967295");
    fake_send(&fake, fd, PROTO_EVENT_ELAPSED, &elapsed);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "no event 1");
    fake_send(&fake, fd, PROTO_FUNCTION_SET, &set);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "no kernel 77");
    fake_send(&fake, fd, PROTO_OCCUPANCY_GET, &occupancy);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "no kernel 1");
    assert_false(fake_worker_take(&fake.worker[0]));
    fake.worker[0].automatic = true;
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_number_is_given_again_when_the_worker_has_done_with_it(void **state)
{
    (void)state;
    struct proto_attached attached;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, &attached);
    fake.worker[0].automatic = false;
    assert_int_equal(create_event(fd), 1);
    assert_int_equal(create_event(fd), 2);
    struct proto_event_destroy destroy = {.event = 1};
    fake_send(&fake, fd, PROTO_EVENT_DESTROY, &destroy);
    struct channel_message *asked = fake_worker_expect(&fake, 0, PROTO_EVENT_DESTROY);
    fake_reply(&fake.worker[0], asked, PROTO_DONE, NULL, NULL, 0);
    fake_expect(&fake, fd, PROTO_DONE);
    fake_send(&fake, fd, PROTO_EVENT_DESTROY, &destroy);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "no event 1");
    assert_int_equal(create_event(fd), 3);
    struct proto_worker_event_ended ended = {.event = 1};
    channel_send(fake.worker[0].fd, &(struct channel_packet){.opcode = PROTO_WORKER_EVENT_ENDED,
                                                             .client = attached.client,
                                                             .body = &ended});
    /* One that was not destroyed keeps its number, whatever the worker says. */
    ended.event = 2;
    channel_send(fake.worker[0].fd, &(struct channel_packet){.opcode = PROTO_WORKER_EVENT_ENDED,
                                                             .client = attached.client,
                                                             .body = &ended});
    fake_settle(&fake);
    assert_int_equal(create_event(fd), 1);
    assert_int_equal(create_event(fd), 4);
    /* An object that the worker refuses to make has no number; one that it refuses to destroy keeps
     * its. */
    fake_send(&fake, fd, PROTO_EVENT_CREATE, &no_number);
    asked = fake_worker_expect(&fake, 0, PROTO_EVENT_CREATE);
    failed_send(fake.worker[0].fd, asked->header.serial, asked->header.client,
                PROTO_ERROR_OUT_OF_MEMORY, "no more events");
    fake_expect_failed(&fake, fd, PROTO_ERROR_OUT_OF_MEMORY, "no more");
    destroy.event = 3;
    fake_send(&fake, fd, PROTO_EVENT_DESTROY, &destroy);
    asked = fake_worker_expect(&fake, 0, PROTO_EVENT_DESTROY);
    failed_send(fake.worker[0].fd, asked->header.serial, asked->header.client,
                PROTO_ERROR_SERVER_RESOURCES, "no memory");
    fake_expect_failed(&fake, fd, PROTO_ERROR_SERVER_RESOURCES, "no memory");
    assert_int_equal(create_event(fd), 5);
    assert_int_equal(fake_first(&fake)->objects.tables[OBJECT_EVENT].used, 5);
    fake.worker[0].automatic = true;
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void streams_end_at_the_number_granted(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB); /* four streams, the default stream among them */
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake.worker[0].automatic = false;
    struct proto_stream_create create = {.priority = -3};
    for (uint32_t number = 1; number < 4; number++) {
        fake_send(&fake, fd, PROTO_STREAM_CREATE, &create);
        struct channel_message *asked = fake_worker_expect(&fake, 0, PROTO_STREAM_CREATE);
        const struct proto_stream_create *body = asked->body;
        assert_int_equal(body->stream, number);
        assert_int_equal(body->priority, -3);
        struct proto_stream_created created = {.stream = number};
        fake_reply(&fake.worker[0], asked, PROTO_STREAM_CREATED, &created, NULL, 0);
        fake_expect(&fake, fd, PROTO_STREAM_CREATED);
        /* The message that another worker would get. */
        const struct object *stream =
            objects_find(&fake_first(&fake)->objects, OBJECT_STREAM, number);
        assert_int_equal(stream->state, OBJECT_MADE);
        assert_int_equal(stream->priority, -3);
    }
    fake_send(&fake, fd, PROTO_STREAM_CREATE, &create);
    fake_expect_failed(&fake, fd, PROTO_ERROR_TOO_MANY_OBJECTS, "--streams");
    fake.worker[0].automatic = true;
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static bool count_view(void *context, const struct client_view *view)
{
    unsigned *seen = context;
    assert_true(view->attached);
    assert_string_equal(view->name, "test");
    assert_int_equal(view->pid, getpid());
    assert_int_equal(view->granted.memory.limit, 32 * MIB);
    assert_int_equal(view->charged[RESOURCE_MEMORY], 2 * MIB);
    (*seen)++;
    return true;
}

static void take_usage(void *context, uint32_t client, const struct proto_worker_usage *usage)
{
    (void)client;
    *(int *)context = usage ? (int)usage->launches : -1;
}

static void views_show_the_charges(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct device_view device;
    struct server_view totals;
    unsigned seen = 0;
    int launches = 0;
    fake_open(&fake, 2, 256 * MIB);
    int fd = fake_attach(&fake, 1, 32 * MIB, NULL, &attached);
    fake_alloc(&fake, fd, 1000);
    view_each_client(fake.supervisor, count_view, &seen);
    assert_int_equal(seen, 1);
    view_device(fake.supervisor, 1, &device);
    assert_int_equal(device.clients, 1);
    assert_int_equal(device.partitions, 1);
    assert_int_equal(device.memory_charged, 2 * MIB);
    view_device(fake.supervisor, 0, &device);
    assert_int_equal(device.clients, 0);
    view_server(fake.supervisor, &totals);
    assert_int_equal(totals.clients, 1);
    assert_true(totals.fds >= 6);
    assert_int_equal(view_usage(fake.supervisor, attached.client, take_usage, &launches), 0);
    assert_int_equal(launches, 0);
    FAKE_WAIT(&fake, launches);
    assert_int_equal(launches, 17);
    fake.worker[1].automatic = false;
    assert_int_equal(view_usage(fake.supervisor, attached.client, take_usage, &launches), 0);
    close(fd);
    fake_worker_expect(&fake, 1, PROTO_WORKER_USAGE_QUERY);
    fake_worker_expect(&fake, 1, PROTO_WORKER_DETACH);
    fake_reply(&fake.worker[1], &fake.worker[1].message, PROTO_DONE, NULL, NULL, 0);
    FAKE_WAIT(&fake, launches == -1);
    /* The worker is asked of a client that leaves, for as long as it has something of it. */
    FAKE_WAIT(&fake, !session_find(&fake.supervisor->server, attached.client));
    assert_int_equal(view_usage(fake.supervisor, attached.client, take_usage, &launches), -ENOENT);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void clients_are_found_by_their_numbers(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    struct server *server;
    uint32_t numbers[COUNT];
    int fds[COUNT];
    fake_open(&fake, 1, 256 * MIB);
    server = &fake.supervisor->server;
    /* Three of one chain, and one of another. */
    for (uint32_t i = 0; i < COUNT; i++) {
        numbers[i] = 7 + i * SERVER_BUCKETS + (i == 3);
        fake.supervisor->next_number = numbers[i] - 1;
        fds[i] = fake_greet(&fake);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        assert_ptr_equal(session_find(server, numbers[i]), fake_session(&fake, i));
    assert_null(session_find(server, 7 + 4 * SERVER_BUCKETS));
    /* Numbers of clients that are there are not given again. */
    fake.supervisor->next_number = numbers[0] - 1;
    int next = fake_greet(&fake);
    assert_int_equal(fake_session(&fake, COUNT)->number, numbers[0] + 1);
    close(fds[1]);
    FAKE_WAIT(&fake, server->sessions == COUNT);
    assert_null(session_find(server, numbers[1]));
    assert_ptr_equal(session_find(server, numbers[0]), fake_session(&fake, 0));
    assert_ptr_equal(session_find(server, numbers[2]), fake_session(&fake, 1));
    close(next);
    close(fds[0]);
    close(fds[2]);
    close(fds[3]);
    FAKE_WAIT(&fake, server->sessions == 0);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_null(session_find(server, numbers[i]));
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attached_client_is_told_what_it_was_granted),
        cmocka_unit_test(every_message_too_early_ends_the_connection),
        cmocka_unit_test(a_second_hello_or_attach_ends_the_connection),
        cmocka_unit_test(another_major_version_is_refused_in_words),
        cmocka_unit_test(a_client_of_major_1_is_told_in_its_own_form),
        cmocka_unit_test(a_repeated_serial_is_refused_and_not_carried_out),
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(a_device_that_is_not_there_costs_nothing),
        cmocka_unit_test(silent_clients_go_away),
        cmocka_unit_test(one_client_too_many_is_refused_by_name),
        cmocka_unit_test(an_early_client_waits_for_the_device),
        cmocka_unit_test(a_client_that_vanishes_while_it_attaches_leaves_nothing),
        cmocka_unit_test(requests_beyond_the_limit_wait_in_the_socket),
        cmocka_unit_test(answers_come_back_under_their_own_serials),
        cmocka_unit_test(an_answer_of_another_kind_is_a_refusal),
        cmocka_unit_test(numbers_are_the_servers_to_choose),
        cmocka_unit_test(a_number_is_given_again_when_the_worker_has_done_with_it),
        cmocka_unit_test(streams_end_at_the_number_granted),
        cmocka_unit_test(views_show_the_charges),
        cmocka_unit_test(clients_are_found_by_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
