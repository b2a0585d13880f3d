/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Batches that begin when they are submitted: when that is known without an event, and what they
 * are charged. */
#include "tests/unit/worker/meter_actor.h"

#include <unistd.h>

#include "common/clock.h"

#define US UINT64_C(1000)
/* The device's clock is ahead of the host's by this, us. */
#define DEVICE_AHEAD 1000000

static struct actor a;
static int start_events; /* that were recorded since the test said 0 */

static cuda_result count_starts(cuda_event event, cuda_stream stream)
{
    for (uint32_t i = 0; i < METER_SPANS; i++)
        start_events += meter.spans[i].start == event;
    return fake_cuEventRecord(event, stream);
}

/* The fake's clock in microseconds. */
static cuda_result elapsed(float *ms, cuda_event start, cuda_event end)
{
    *ms = (float)(((double)end->at - (double)start->at) / 1000);
    return CUDA_OK;
}

static int open_actor(void **state)
{
    if (setup(state) < 0)
        return -1;
    driver.cuEventRecord = count_starts;
    driver.cuEventElapsedTime = elapsed;
    actor_open(&a, 3);
    return 0;
}

/* The device records its next event so many us from now on. */
static void device_at(uint64_t us)
{
    fake.clock = clock_now() / US + DEVICE_AHEAD + us - 1;
}

static void begin(bool alone, bool timed)
{
    a.client.usage.turns = !timed;
    meter_begin(&meter, &a.streams[0], alone);
}

/* So many us on the device's clock after now. */
static void end(uint64_t us)
{
    device_at(us);
    meter_end(&meter, &a.streams[0], ++a.streams[0].ring.value);
    a.shadows[0] = a.streams[0].ring.value;
    meter_collect(&meter);
}

/* A batch that began so many us after its submission. */
static void one_timed(uint64_t late_us)
{
    device_at(late_us);
    begin(true, true);
    end(late_us + 10);
}

static void lay_clocks(void)
{
    if (!meter.base)
        one_timed(0);
    /* As batches of five seconds would have; this thread may lose its processor, so that turns of
     * 100 ms would be over. */
    double ahead = (double)meter.base->begun - meter.base->from;
    uint64_t now = clock_now(), turn = 2 * UNITS_SECOND;
    meter_clock_open(&meter.begins, turn);
    for (int back = 5; back > 0; back -= 2)
        for (int i = 0; i < 8; i++) {
            uint64_t at = now - (uint64_t)back * turn / 2 + (uint64_t)i;
            meter_clock_lay(&meter.begins, at, (double)at - ahead);
        }
    assert_true(meter_clock_is_sure(&meter.begins, clock_now()));
    start_events = 0;
}

static void expect_start_event(bool alone, bool expected)
{
    start_events = 0;
    device_at(0);
    begin(alone, false);
    end(10);
    assert_int_equal(start_events, expected);
}

/* Charged so many us beyond what has passed on the host meanwhile. */
static void expect_charge(uint64_t before, uint64_t since, double us)
{
    double passed = (double)(clock_now() - since) / (double)US;
    double charged = (double)(a.client.usage.gpu_nanoseconds - before) / (double)US;
    if (charged < us - 5000 || charged > us + 5000 + passed)
        print_message("charged %f us, not %f to %f\n", charged, us, us + passed);
    assert_true(charged >= us - 5000 && charged <= us + 5000 + passed);
}

static void a_batch_alone_in_its_queue_needs_no_start_event(void **state)
{
    (void)state;
    lay_clocks();
    uint64_t before = a.client.usage.gpu_nanoseconds, since = clock_now();
    begin(true, false);
    assert_int_equal(start_events, 0);
    end(400000);
    expect_charge(before, since, 400000);
}

static void a_call_that_waited_is_not_charged(void **state)
{
    (void)state;
    lay_clocks();
    /* A pause behind the first command is charged. */
    uint64_t before = a.client.usage.gpu_nanoseconds;
    begin(true, false);
    meter_hand_over(&a.streams[0]);
    usleep(50000);
    meter_hand_over(&a.streams[0]);
    end(0);
    assert_true(a.client.usage.gpu_nanoseconds - before > 49 * MS);
    before = a.client.usage.gpu_nanoseconds;
    begin(true, false);
    usleep(50000); /* the driver's lock was another thread's */
    uint64_t since = clock_now();
    meter_hand_over(&a.streams[0]);
    end(400000);
    expect_charge(before, since, 400000);
}

/* The device had the work already, and was done before the thread went on. */
static void a_kernel_is_charged_though_the_thread_lost_its_processor(void **state)
{
    (void)state;
    lay_clocks();
    uint64_t before = a.client.usage.gpu_nanoseconds;
    begin(true, false);
    device_at(20000);
    uint64_t done = fake.clock;
    usleep(50000);
    meter_hand_over(&a.streams[0]);
    fake.clock = done;
    meter_end(&meter, &a.streams[0], ++a.streams[0].ring.value);
    a.shadows[0] = a.streams[0].ring.value;
    meter_collect(&meter);
    expect_charge(before, clock_now(), 20000);
}

static void a_start_event_is_recorded_where_the_begin_is_not_known(void **state)
{
    (void)state;
    expect_start_event(true, true); /* nothing is known of the clocks */
    lay_clocks();
    expect_start_event(true, false);
    expect_start_event(false, true); /* something is before it */
    one_timed(0);
    assert_int_equal(start_events, 2); /* the last two */
    struct trace trace;
    trace_open(&trace);
    meter.trace = &trace;
    trace.on = true;
    begin(true, false);
    assert_int_equal(start_events, 3);
    trace.on = false; /* it has no memory to write to */
    meter.trace = NULL;
    end(10);
    expect_start_event(true, false);
    meter.begins.sure_until = clock_now() - 1;
    expect_start_event(true, true); /* the clocks were laid too long ago */
}

static void a_client_that_began_late_has_start_events(void **state)
{
    (void)state;
    lay_clocks();
    one_timed(200000);
    expect_start_event(true, true);
    /* The neighbour may work half of the time. */
    for (int i = 0; i < 62; i++)
        one_timed(0);
    expect_start_event(true, true);
    expect_start_event(true, false);
}

/* Times far from the base are coarse. */
static void an_old_base_lays_no_clock(void **state)
{
    (void)state;
    meter_clock_open(&meter.begins, 1000 * UNITS_SECOND); /* this thread may lose its processor */
    device_at(0);
    a.client.usage.turns = 1;
    meter_begin(&meter, &a.streams[1], false); /* goes on */
    meter_end(&meter, &a.streams[1], ++a.streams[1].ring.value);
    meter_collect(&meter);
    one_timed(0);
    uint32_t batches = meter.begins.batches;
    assert_int_equal(batches, 1);
    one_timed(6000000);
    assert_int_equal(meter.begins.batches, batches);
    one_timed(0);
    assert_int_equal(meter.begins.batches, batches + 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_actor, teardown)
    const struct CMUnitTest tests[] = {
        T(a_batch_alone_in_its_queue_needs_no_start_event),
        T(a_call_that_waited_is_not_charged),
        T(a_kernel_is_charged_though_the_thread_lost_its_processor),
        T(a_start_event_is_recorded_where_the_begin_is_not_known),
        T(a_client_that_began_late_has_start_events),
        T(an_old_base_lays_no_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
