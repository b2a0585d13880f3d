/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The state in which a worker finds a stream that an earlier worker had: the words in shared memory
 * say what was begun, what the device has reached, and what is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>

#include "common/ipc/ring.h"
#include "common/ipc/shared_word.h"
#include "server/worker/client/client.h"
#include "server/worker/client/client_stream.h"

enum { STREAMS = 4, AT = 2 };

static struct client *client;

static void *make_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fail_msg("no memory");
    return memory;
}

static int begin(void **state)
{
    (void)state;
    client = calloc(1, sizeof *client);
    if (!client)
        return -1;
    client->stream_count = STREAMS;
    client->streams = client_stream_make_table(STREAMS);
    client->rings.base = make_shared(ring_memory_bytes(STREAMS));
    client->status.base = make_shared(ring_status_bytes(STREAMS));
    client->shadows.base = make_shared(ring_shadow_bytes(STREAMS));
    client->control.restoring = true;
    return client->streams ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    munmap(client->rings.base, ring_memory_bytes(STREAMS));
    munmap(client->status.base, ring_status_bytes(STREAMS));
    munmap(client->shadows.base, ring_shadow_bytes(STREAMS));
    client_stream_free_table(client->streams, STREAMS);
    free(client);
    return 0;
}

/* The words as the lost worker left them. */
static void leave(uint64_t begun, uint64_t reached, uint64_t seen, uint64_t from, uint64_t to)
{
    void *shadow = client->shadows.base;
    shared_word_publish(ring_shadow_begun(shadow, STREAMS, AT), begun);
    shared_word_publish(ring_shadow_reached(shadow, AT), reached);
    shared_word_publish(ring_shadow_lost_from(shadow, STREAMS, AT), from);
    shared_word_publish(ring_shadow_lost_to(shadow, STREAMS, AT), to);
    shared_word_publish(&ring_at(client->rings.base, client->status.base, AT).status->completed,
                        seen);
}

static void is_lost_from(uint64_t from)
{
    const struct client_stream *stream = client_stream_open(client, AT, 0);
    assert_non_null(stream);
    assert_true(client_stream_is_interrupted(stream));
    assert_int_equal(stream->lost_from, from);
    assert_int_equal(client->shared.interrupted_count, 1);
    const struct proto_stream_status *status =
        ring_at(client->rings.base, client->status.base, AT).status;
    assert_int_equal(status->lost_to, RING_INTERRUPTED);
    assert_int_equal(status->completed, 7);
}

static void work_in_flight_is_lost(void **state)
{
    (void)state;
    leave(7, 5, 5, 0, 0);
    is_lost_from(5);
}

/* The device writes the client's word first. */
static void what_its_client_has_seen_is_not_lost(void **state)
{
    (void)state;
    leave(7, 5, 6, 0, 0);
    is_lost_from(6);
}

/* The worker between died while it moved the timeline over what the first one had lost. */
static void a_second_loss_keeps_what_the_first_one_had_lost(void **state)
{
    (void)state;
    leave(7, 5, 5, 3, RING_INTERRUPTED);
    is_lost_from(3);
}

static void a_stream_without_work_in_flight_has_lost_nothing(void **state)
{
    (void)state;
    leave(7, 6, 7, 1, 4);
    const struct client_stream *stream = client_stream_open(client, AT, 0);
    assert_non_null(stream);
    assert_false(client_stream_is_interrupted(stream));
    assert_int_equal(client_stream_reached(stream), 7);
    assert_int_equal(stream->lost_from, 1);
    assert_int_equal(stream->lost_to, 4);
}

/* Sets the ends that the client was shown, and how often it was told of errors. */
static struct proto_stream_status *shown(uint64_t from, uint64_t to, uint32_t errors)
{
    struct proto_stream_status *status =
        ring_at(client->rings.base, client->status.base, AT).status;
    shared_word_publish(&status->lost_from, from);
    shared_word_publish(&status->lost_to, to);
    shared_word_publish(&status->error_count, errors);
    return status;
}

static void is_told(uint64_t shown_to, uint32_t errors)
{
    leave(7, 7, 7, 3, RING_INTERRUPTED);
    const struct proto_stream_status *status = shown(2, shown_to, errors);
    assert_non_null(client_stream_open(client, AT, 0));
    assert_int_equal(status->lost_from, 3);
    assert_int_equal(status->lost_to, RING_INTERRUPTED);
    assert_int_equal(status->error, PROTO_ERROR_INTERRUPTED);
    assert_true(status->error_count > errors);
    assert_int_equal(client->shared.interrupted_count, 1);
}

/* The worker before died between two words of an interruption. */
static void a_client_that_was_not_shown_an_interruption_is_told(void **state)
{
    (void)state;
    is_told(2, 5);
}

static void a_client_that_was_shown_an_interruption_only_is_told(void **state)
{
    (void)state;
    is_told(RING_INTERRUPTED, 0);
}

/* The worker before died while it let the stream go on. */
static void a_client_is_shown_the_end_of_an_interruption(void **state)
{
    (void)state;
    leave(7, 7, 7, 3, 7);
    const struct proto_stream_status *status = shown(3, RING_INTERRUPTED, 1);
    assert_false(client_stream_is_interrupted(client_stream_open(client, AT, 0)));
    assert_int_equal(status->lost_from, 3);
    assert_int_equal(status->lost_to, 7);
    assert_int_equal(status->error_count, 1);
    assert_int_equal(client->shared.interrupted_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_in_flight_is_lost, begin, end),
        cmocka_unit_test_setup_teardown(what_its_client_has_seen_is_not_lost, begin, end),
        cmocka_unit_test_setup_teardown(a_second_loss_keeps_what_the_first_one_had_lost, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_stream_without_work_in_flight_has_lost_nothing, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_client_that_was_not_shown_an_interruption_is_told, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_client_that_was_shown_an_interruption_only_is_told, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_client_is_shown_the_end_of_an_interruption, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
