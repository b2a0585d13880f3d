/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Work that is lost, and errors of work, between two steps of a client's thread. */
#include <pthread.h>
#include <stdatomic.h>

#include "common/clock.h"
#include "common/units.h"
#include "tests/support/halted.h"
#include "tests/unit/client/fixture.h"

static const struct fake_options by_hand = {.manual = true};

/* The worker has written where the loss ends, and is about to report it. */
static void an_event_that_is_recorded_while_its_work_is_lost_is_lost(void **state)
{
    (void)state;
    struct fixture f;
    gpushare_stream *stream;
    gpushare_event *event;
    fixture_start(&f, &by_hand);
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    OK(gpushare_event_create(f.gpu, 0, &event));
    fixture_launch(&f, stream);
    fake_interrupt(f.server, 0, 1, 0, RING_INTERRUPTED);
    OK(gpushare_event_record(event, stream));
    fake_work_error(f.server, 0, 1, PROTO_ERROR_INTERRUPTED);
    assert_int_equal(fake_run(f.server, 0, 1, 1), 1);
    assert_int_equal(gpushare_event_query(event), GPUSHARE_ERROR_INTERRUPTED);
    assert_int_equal(gpushare_event_synchronize(event), GPUSHARE_ERROR_INTERRUPTED);
    fixture_stop(&f);
}

static void an_event_that_is_recorded_behind_a_loss_that_is_over_is_not_lost(void **state)
{
    (void)state;
    struct fixture f;
    gpushare_stream *stream;
    gpushare_event *event;
    fixture_start(&f, &by_hand);
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    OK(gpushare_event_create(f.gpu, 0, &event));
    fixture_launch(&f, stream);
    assert_int_equal(fake_run(f.server, 0, 1, 1), 1);
    fake_interrupt(f.server, 0, 1, 0, 1);
    OK(gpushare_event_record(event, stream));
    OK(gpushare_event_query(event));
    OK(gpushare_event_synchronize(event));
    fixture_stop(&f);
}

struct asker {
    const struct fixture *fixture;
    gpushare_stream *stream;
    struct gpushare_recovery recovery;
    gpushare_error error;
};

static void *recover(void *argument)
{
    struct asker *asker = argument;
    asker->recovery.size = sizeof asker->recovery;
    asker->error = gpushare_stream_recover(asker->fixture->gpu, asker->stream, &asker->recovery);
    return NULL;
}

/* The worker that is asked to recover a stream is lost, and the next one tells of the interruption
 * again before it is asked. */
static void an_interruption_that_is_told_while_it_is_recovered_is_over(void **state)
{
    (void)state;
    struct fixture f;
    struct asker asker = {.fixture = &f};
    pthread_t thread;
    fixture_start(&f, &by_hand);
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &asker.stream));
    fixture_launch(&f, asker.stream);
    fake_interrupt(f.server, 0, 1, 0, RING_INTERRUPTED);
    fake_work_error(f.server, 0, 1, PROTO_ERROR_INTERRUPTED);
    assert_int_equal(fake_run(f.server, 0, 1, 1), 1);
    assert_int_equal(gpushare_stream_query(f.gpu, asker.stream), GPUSHARE_ERROR_INTERRUPTED);
    fake_hold(f.server, PROTO_STREAM_RECOVER, true);
    assert_int_equal(pthread_create(&thread, NULL, recover, &asker), 0);
    while (!fake_held(f.server))
        sched_yield();
    fake_work_error(f.server, 0, 1, PROTO_ERROR_INTERRUPTED);
    fake_release(f.server, UINT32_MAX, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    OK(asker.error);
    assert_int_equal(asker.recovery.dropped, 1);
    OK(gpushare_stream_query(f.gpu, asker.stream));
    fixture_launch(&f, asker.stream);
    fake_hold(f.server, PROTO_STREAM_RECOVER, false);
    fixture_stop(&f);
}

enum { HALTS = 200000 };

struct failing {
    struct fixture *fixture;
    gpushare_stream *stream;
    uint64_t errors, reported;
};

static bool reports(const struct fixture *f, const gpushare_stream *stream)
{
    return gpushare_stream_query(f->gpu, (gpushare_stream *)stream) ==
           GPUSHARE_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

/* Either thread may be the first to see an error. Behind this thread's look it was seen. */
static void *fail_and_ask(void *argument)
{
    struct failing *failing = argument;
    bool go_on = true;
    while (go_on) {
        fake_work_error(failing->fixture->server, 0, 1, PROTO_ERROR_LAUNCH_OUT_OF_RESOURCES);
        failing->errors++;
        go_on = halted_turn();
        failing->reported += reports(failing->fixture, failing->stream);
    }
    return NULL;
}

static void each_error_is_reported_to_one_of_two_threads(void **state)
{
    (void)state;
    struct fixture f;
    struct failing failing = {.fixture = &f};
    pthread_t writer;
    uint64_t reported = 0;
    fixture_start(&f, NULL);
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &failing.stream));
    fixture_launch(&f, failing.stream);
    OK(gpushare_stream_synchronize(f.gpu, failing.stream));
    halted_begin();
    assert_int_equal(pthread_create(&writer, NULL, fail_and_ask, &failing), 0);
    const uint64_t end = clock_now() + UNITS_SECOND;
    while (!reported || (halted_count() < HALTS && clock_now() < end))
        reported += reports(&f, failing.stream);
    halted_end(writer);
    assert_int_equal(reported + failing.reported, failing.errors);
    assert_false(reports(&f, failing.stream));
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_that_is_recorded_while_its_work_is_lost_is_lost),
        cmocka_unit_test(an_event_that_is_recorded_behind_a_loss_that_is_over_is_not_lost),
        cmocka_unit_test(an_interruption_that_is_told_while_it_is_recovered_is_over),
        cmocka_unit_test(each_error_is_reported_to_one_of_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
