/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Numbers of streams, events, kernels and links that a worker is told to use. */
#include "tests/unit/worker/harness.h"

static struct peer *peer;

static int setup(void **state)
{
    if (harness_setup(state) < 0)
        return -1;
    peer = peer_attach(1);
    return 0;
}

static int teardown(void **state)
{
    fake_release();
    peer_detach(peer);
    return harness_stop(state);
}

static void expect_taken(uint16_t opcode, const void *body)
{
    harness_ask(opcode, 1, body, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_VALUE);
}

/* The last answer names the object that it is about. */
static void expect_words(const char *words)
{
    const struct proto_failed *failed = harness.message.body;
    if (!strstr(failed->text, words))
        fail_msg("said: %s", failed->text);
}

/* The supervisor chooses the numbers; the worker takes none twice, and knows gaps. */
static void numbers_that_are_taken_are_refused(void **state)
{
    (void)state;
    harness.events = 199;
    uint32_t event = peer_event(peer);
    struct proto_event_create create = {.event = event};
    expect_taken(PROTO_EVENT_CREATE, &create);
    expect_words("number 200 is taken");
    create.event = 0;
    expect_taken(PROTO_EVENT_CREATE, &create);
    struct proto_event_destroy between = {.event = event - 1};
    harness_ask(PROTO_EVENT_DESTROY, 1, &between, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_HANDLE);
    expect_words("no event 199");
    struct proto_event_elapsed never = {.start = event, .end = event};
    harness_ask(PROTO_EVENT_ELAPSED, 1, &never, PROTO_FAILED);
    expect_words("event 200 was never recorded");

    peer_load_text(peer, 1, harness_ptx, 0);
    harness.functions = 99;
    uint32_t kernel = peer_function(peer, 1, "kernel");
    assert_int_equal(kernel, 100);
    struct proto_occupancy_get gap = {.function = kernel - 1, .block_threads = 32};
    harness_ask(PROTO_OCCUPANCY_GET, 1, &gap, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_HANDLE);
    expect_words("no kernel 99");

    struct shm shadows;
    assert_int_equal(shm_create(&shadows, "other shadows", 4096), 0);
    struct proto_worker_link link = {.streams = STREAMS, .link = 2};
    harness_send(PROTO_WORKER_LINK, 1, &link, NULL, 0, &shadows.fd, 1);
    assert_int_equal(harness_receive(), PROTO_LINKED);
    harness_send(PROTO_WORKER_LINK, 1, &link, NULL, 0, &shadows.fd, 1);
    assert_int_equal(harness_receive(), PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_VALUE);
    expect_words("link 2");
    struct proto_command_wait wait = {
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0] = {.link = 1}};
    peer_push(peer, 0, &wait);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    shm_release(&shadows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_that_are_taken_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
