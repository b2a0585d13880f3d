/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Work that is lost between two steps of a client's thread. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_that_is_recorded_while_its_work_is_lost_is_lost),
        cmocka_unit_test(an_event_that_is_recorded_behind_a_loss_that_is_over_is_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
