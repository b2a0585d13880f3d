/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A trace's life between who asked for it and the worker that writes it. */
#include "tests/unit/supervisor/fake.h"

#include <sys/stat.h>

#include "common/clock.h"
#include "common/error.h"

static struct fake fake;

static struct told {
    unsigned calls;
    uint32_t error;
    char text[300], trouble[200];
    size_t clients;
    struct trace_client who[4];
    uint32_t version; /* in the memory */
    bool writable;
} told[2];

static void take(void *context, uint32_t error, const char *text, const struct trace *trace)
{
    struct told *one = context;
    one->calls++;
    one->error = error;
    snprintf(one->text, sizeof one->text, "%s", text);
    assert_true((error == 0) == (trace != NULL));
    if (!trace)
        return;
    struct stat status;
    assert_int_equal(fstat(trace->memory, &status), 0);
    assert_int_equal(status.st_size, PROTO_TRACE_BYTES);
    const uint32_t *words = mmap(NULL, 4096, PROT_READ, MAP_SHARED, trace->memory, 0);
    assert_true(words != MAP_FAILED);
    one->version = words[0];
    munmap((void *)(uintptr_t)words, 4096);
    one->writable = (fcntl(trace->memory, F_GETFL) & O_ACCMODE) != O_RDONLY;
    snprintf(one->trouble, sizeof one->trouble, "%s", trace->trouble ? trace->trouble : "");
    one->clients = trace->client_count;
    for (size_t i = 0; i < trace->client_count && i < 4; i++)
        one->who[i] = trace->clients[i];
}

static uint32_t ask(uint32_t device, uint64_t milliseconds, struct error *why)
{
    return trace_start(fake.supervisor, device, milliseconds,
                       &(struct trace_asker){"a test", take, &told[device]}, why);
}

static void begin(uint32_t devices)
{
    memset(told, 0, sizeof told);
    fake_open(&fake, devices, 256 * MIB);
}

static void started(uint32_t device, uint64_t milliseconds)
{
    struct error why = {0};
    unsigned calls = told[device].calls;
    assert_int_equal(ask(device, milliseconds, &why), 0);
    assert_int_equal(told[device].calls, calls);
}

/* The worker's side of a start, done by hand. Returns the memory, mapped. */
static uint32_t *take_start(uint32_t device)
{
    struct channel_message *message = fake_worker_expect(&fake, device, PROTO_WORKER_TRACE_START);
    const struct proto_worker_trace_start *body = message->body;
    assert_int_equal(body->count, PROTO_TRACE_BYTES);
    uint32_t *words =
        mmap(NULL, body->count, PROT_READ | PROT_WRITE, MAP_SHARED, message->fds[0], 0);
    assert_true(words != MAP_FAILED);
    channel_close_fds(message);
    return words;
}

static void a_trace_lasts_as_long_as_asked_and_names_all_its_clients(void **state)
{
    (void)state;
    struct proto_attached first, second;
    begin(1);
    int stays = fake_attach(&fake, 0, 0, NULL, &first);
    fake.worker[0].automatic = false;
    uint64_t before = clock_now();
    started(0, 50);
    uint32_t *words = take_start(0);
    words[0] = 17;
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
    fake_settle(&fake);
    fake.worker[0].automatic = true;
    int leaves = fake_attach(&fake, 0, 0, NULL, &second);
    close(leaves);
    FAKE_WAIT(&fake, fake.worker[0].detached == 1);
    FAKE_WAIT(&fake, told[0].calls);
    assert_true(clock_now() - before >= 50000000);
    assert_int_equal(told[0].error, 0);
    assert_string_equal(told[0].trouble, "");
    assert_int_equal(told[0].version, 17);
    assert_false(told[0].writable);
    assert_int_equal(told[0].clients, 2);
    assert_int_equal(told[0].who[0].number, first.client);
    assert_int_equal(told[0].who[0].pid, getpid());
    assert_int_equal(told[0].who[0].uid, getuid());
    assert_string_equal(told[0].who[0].name, "test");
    assert_int_equal(told[0].who[1].number, second.client);
    munmap(words, PROTO_TRACE_BYTES);
    started(0, 1); /* another one can follow */
    FAKE_WAIT(&fake, told[0].calls == 2);
    assert_int_equal(told[0].clients, 1);
    close(stays);
    FAKE_WAIT(&fake, fake.worker[0].detached == 2);
    fake_close(&fake);
}

/* Before the worker has begun, and after. */
static void the_asker_can_end_its_trace_and_gets_the_records(void **state)
{
    (void)state;
    for (int early = 0; early < 2; early++) {
        begin(1);
        fake.worker[0].automatic = false;
        started(0, 600000);
        if (early)
            trace_stop(fake.supervisor, &told[0]);
        uint32_t *words = take_start(0);
        words[0] = 19;
        trace_stop(fake.supervisor, &told[1]); /* who asked nothing ends nothing */
        fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
        fake_settle(&fake);
        if (!early)
            trace_stop(fake.supervisor, &told[0]);
        fake_worker_expect(&fake, 0, PROTO_WORKER_TRACE_STOP);
        assert_int_equal(told[0].calls, 0);
        struct error why = {0};
        assert_int_equal(ask(0, 1, &why), PROTO_ERROR_TOO_MANY_OBJECTS);
        assert_non_null(strstr(why.text, "just ending"));
        fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
        FAKE_WAIT(&fake, told[0].calls);
        assert_int_equal(told[0].error, 0);
        assert_non_null(strstr(told[0].trouble, "it was ended early, after 0.0"));
        assert_non_null(strstr(told[0].trouble, "of 600.000 s"));
        assert_int_equal(told[0].version, 19);
        munmap(words, PROTO_TRACE_BYTES);
        trace_stop(fake.supervisor, &told[0]);
        fake.worker[0].automatic = true;
        fake_close(&fake);
    }
}

static void a_second_trace_of_a_device_is_refused_and_names_the_first(void **state)
{
    (void)state;
    struct error why = {0};
    begin(2);
    started(0, 600000);
    fake_settle(&fake);
    assert_int_equal(ask(0, 1, &why), PROTO_ERROR_TOO_MANY_OBJECTS);
    assert_non_null(strstr(why.text, "a test"));
    started(1, 1); /* another device is another matter */
    FAKE_WAIT(&fake, told[1].calls);
    assert_int_equal(ask(2, 1, &why), PROTO_ERROR_INVALID_DEVICE);
    assert_non_null(strstr(why.text, "no GPU 2"));
    assert_true(trace_abandon(fake.supervisor, &told[0]));
    assert_false(trace_abandon(fake.supervisor, &told[0]));
    started(0, 1);
    FAKE_WAIT(&fake, told[0].calls);
    assert_int_equal(told[0].error, 0);
    fake_close(&fake);
}

/* ---- another worker ---- */

/* The worker has begun to trace, and is lost. It has left a word in the memory. */
static void lose_tracing_worker(uint64_t milliseconds)
{
    fake.worker[0].automatic = false;
    started(0, milliseconds);
    uint32_t *words = take_start(0);
    words[0] = 23;
    munmap(words, PROTO_TRACE_BYTES);
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
    fake_settle(&fake);
    fake_lose_worker(&fake, 0);
    FAKE_WAIT(&fake, !fake.supervisor->server.devices[0].link);
}

/* Starts the next worker, up to the message that it is to go on. Returns that message's lost_at. */
static uint64_t next_worker_told(void)
{
    struct fake_worker *worker = &fake.worker[0];
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_start_worker(&fake, 0, 256 * MIB);
    worker->automatic = false;
    FAKE_WAIT(&fake, fake_worker_take(worker));
    while (worker->message.header.opcode != PROTO_WORKER_TRACE_START) {
        assert_int_not_equal(worker->message.header.opcode, PROTO_WORKER_ATTACH);
        channel_close_fds(&worker->message);
        FAKE_WAIT(&fake, fake_worker_take(worker));
    }
    const struct proto_worker_trace_start *body = worker->message.body;
    uint64_t lost_at = body->lost_at;
    assert_int_equal(body->count, PROTO_TRACE_BYTES);
    uint32_t word = 0;
    assert_int_equal(pread(worker->message.fds[0], &word, sizeof word, 0), sizeof word);
    assert_int_equal(word, 23);
    channel_close_fds(&worker->message);
    return lost_at;
}

/* It is told before it is told of the client, and a worker in between changes nothing. */
static void the_next_worker_goes_on_with_the_trace(void **state)
{
    (void)state;
    for (int between = 0; between < 2; between++) {
        begin(1);
        int idle = fake_attach(&fake, 0, 0, NULL, NULL);
        uint64_t before = clock_now();
        lose_tracing_worker(600000);
        uint64_t after = clock_now();
        uint64_t lost_at = next_worker_told();
        assert_true(before < lost_at && lost_at <= after);
        if (between) {
            fake_lose_worker(&fake, 0);
            FAKE_WAIT(&fake, !fake.supervisor->server.devices[0].link);
            assert_int_equal(next_worker_told(), lost_at);
        }
        fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
        fake.worker[0].automatic = true;
        FAKE_WAIT(&fake, fake.worker[0].resumed == 1);
        assert_int_equal(told[0].calls, 0);
        trace_stop(fake.supervisor, &told[0]);
        FAKE_WAIT(&fake, told[0].calls);
        assert_int_equal(told[0].error, 0);
        assert_int_equal(told[0].version, 23);
        assert_non_null(strstr(told[0].trouble, "it was ended early"));
        assert_int_equal(told[0].clients, 1);
        close(idle);
        FAKE_WAIT(&fake, fake.worker[0].detached == 1);
        fake_close(&fake);
    }
}

static void a_second_loss_is_told_as_one_of_its_own(void **state)
{
    (void)state;
    begin(1);
    lose_tracing_worker(600000);
    uint64_t lost_at = next_worker_told();
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
    fake_settle(&fake);
    fake_lose_worker(&fake, 0);
    FAKE_WAIT(&fake, !fake.supervisor->server.devices[0].link);
    assert_true(next_worker_told() > lost_at);
    assert_true(trace_abandon(fake.supervisor, &told[0]));
    fake.worker[0].automatic = true;
    fake_close(&fake);
}

static void a_worker_that_can_not_go_on_ends_the_trace(void **state)
{
    (void)state;
    begin(1);
    lose_tracing_worker(600000);
    next_worker_told();
    failed_send(fake.worker[0].fd, fake.worker[0].message.header.serial, 0,
                PROTO_ERROR_INVALID_VALUE, "there is no trace");
    fake.worker[0].automatic = true;
    FAKE_WAIT(&fake, told[0].calls);
    assert_int_equal(told[0].error, 0);
    assert_int_equal(told[0].version, 23);
    assert_string_equal(told[0].trouble, "there is no trace");
    fake_close(&fake);
}

/* In its time, and when the asker ends it. */
static void without_another_worker_a_trace_has_what_the_last_one_wrote(void **state)
{
    (void)state;
    struct error why = {0};
    for (int hurried = 0; hurried < 2; hurried++) {
        begin(1);
        lose_tracing_worker(hurried ? 600000 : 500);
        fake_settle(&fake);
        assert_int_equal(told[0].calls, 0);
        assert_int_equal(ask(0, 1, &why), PROTO_ERROR_DEVICE_NOT_READY);
        if (hurried)
            trace_stop(fake.supervisor, &told[0]);
        FAKE_WAIT(&fake, told[0].calls);
        assert_int_equal(told[0].error, 0);
        assert_int_equal(told[0].version, 23);
        assert_non_null(strstr(told[0].trouble, "the worker ended after 0."));
        assert_non_null(strstr(told[0].trouble, "no other served"));
        fake_close(&fake);
    }
}

static void a_server_that_stops_ends_a_trace_that_waits(void **state)
{
    (void)state;
    begin(1);
    lose_tracing_worker(600000);
    fake_close(&fake);
    assert_int_equal(told[0].calls, 1);
    assert_int_equal(told[0].error, 0);
    assert_int_equal(told[0].version, 23);
    assert_non_null(strstr(told[0].trouble, "the worker ended before"));
}

/* ---- what goes wrong ---- */

static void a_worker_that_refuses_or_dies_at_the_start_leaves_none(void **state)
{
    (void)state;
    begin(2);
    for (uint32_t i = 0; i < 2; i++) {
        fake.worker[i].automatic = false;
        started(i, 600000);
        munmap(take_start(i), PROTO_TRACE_BYTES);
    }
    struct channel_message *message = &fake.worker[0].message;
    failed_send(fake.worker[0].fd, message->header.serial, 0, PROTO_ERROR_SERVER_RESOURCES,
                "no address space");
    fake_kill_worker(&fake, 1);
    FAKE_WAIT(&fake, told[0].calls && told[1].calls);
    assert_int_equal(told[0].error, PROTO_ERROR_SERVER_RESOURCES);
    assert_string_equal(told[0].text, "no address space");
    assert_int_equal(told[1].error, PROTO_ERROR_DEVICE_NOT_READY);
    fake.worker[0].automatic = true;
    fake_close(&fake);
}

static void the_worker_is_told_that_the_asker_is_gone(void **state)
{
    (void)state;
    begin(1);
    fake.worker[0].automatic = false;
    started(0, 600000);
    munmap(take_start(0), PROTO_TRACE_BYTES);
    struct proto_message_header header = fake.worker[0].message.header;
    assert_true(trace_abandon(fake.supervisor, &told[0]));
    fake_worker_expect(&fake, 0, PROTO_WORKER_TRACE_STOP);
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
    /* The answer to the start comes late, to nobody. */
    channel_send(fake.worker[0].fd,
                 &(struct channel_packet){.opcode = PROTO_DONE, .serial = header.serial});
    fake_settle(&fake);
    assert_int_equal(told[0].calls, 0);
    fake.worker[0].automatic = true;
    fake_close(&fake);
}

static void a_server_that_stops_ends_the_trace(void **state)
{
    (void)state;
    begin(2);
    fake.worker[0].automatic = false;
    started(0, 600000);
    munmap(take_start(0), PROTO_TRACE_BYTES);
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
    fake_settle(&fake);
    started(1, 600000); /* its memory is not even filled */
    fake_close(&fake);
    assert_int_equal(told[0].calls, 1);
    assert_int_equal(told[0].error, 0);
    assert_int_equal(told[1].calls, 1);
    assert_int_equal(told[1].error, PROTO_ERROR_DEVICE_NOT_READY);
}

/* Both waits at once: each takes five seconds. */
static void a_worker_that_does_not_answer_is_not_waited_for_long(void **state)
{
    (void)state;
    struct error why = {0};
    begin(2);
    fake.worker[0].automatic = fake.worker[1].automatic = false;
    started(0, 600000);
    munmap(take_start(0), PROTO_TRACE_BYTES);
    started(1, 1);
    munmap(take_start(1), PROTO_TRACE_BYTES);
    fake_reply(&fake.worker[1], &fake.worker[1].message, PROTO_DONE, NULL, NULL, 0);
    FAKE_WAIT(&fake, told[0].calls && told[1].calls);
    assert_int_equal(told[0].error, PROTO_ERROR_DEVICE_NOT_READY);
    assert_int_equal(told[1].error, 0);
    assert_non_null(strstr(told[1].trouble, "not answered"));
    fake_worker_expect(&fake, 0, PROTO_WORKER_TRACE_STOP);
    fake_worker_expect(&fake, 1, PROTO_WORKER_TRACE_STOP);
    assert_int_equal(ask(0, 600000, &why), 0); /* the next one may try */
    assert_true(trace_abandon(fake.supervisor, &told[0]));
    fake.worker[0].automatic = fake.worker[1].automatic = true;
    for (int i = 0; i < 20; i++)
        fake_turn(&fake);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_lasts_as_long_as_asked_and_names_all_its_clients),
        cmocka_unit_test(the_asker_can_end_its_trace_and_gets_the_records),
        cmocka_unit_test(a_second_trace_of_a_device_is_refused_and_names_the_first),
        cmocka_unit_test(the_next_worker_goes_on_with_the_trace),
        cmocka_unit_test(a_second_loss_is_told_as_one_of_its_own),
        cmocka_unit_test(a_worker_that_can_not_go_on_ends_the_trace),
        cmocka_unit_test(without_another_worker_a_trace_has_what_the_last_one_wrote),
        cmocka_unit_test(a_server_that_stops_ends_a_trace_that_waits),
        cmocka_unit_test(a_worker_that_refuses_or_dies_at_the_start_leaves_none),
        cmocka_unit_test(the_worker_is_told_that_the_asker_is_gone),
        cmocka_unit_test(a_server_that_stops_ends_the_trace),
        cmocka_unit_test(a_worker_that_does_not_answer_is_not_waited_for_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
