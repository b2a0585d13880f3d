/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* GPU time: each moment belongs to the clients whose kernels have the multiprocessors. */
#include "tests/unit/worker/meter_actor.h"

#include <limits.h>

#include "common/clock.h"

static void alone(void **state)
{
    (void)state;
    struct actor a;
    actor_open(&a, 3);
    begin_at(&a, 0, 10);
    end_at(&a, 0, 25);
    begin_at(&a, 0, 100);
    end_at(&a, 0, 101);
    meter_collect(&meter);
    used(&a, 16);
}

static void two_on_the_same_sm_groups_share_equally(void **state)
{
    (void)state;
    struct actor a, b;
    actor_open(&a, 3);
    actor_open(&b, 3);
    begin_at(&a, 0, 1);
    begin_at(&b, 0, 2);
    end_at(&a, 0, 5);
    end_at(&b, 0, 9);
    meter_collect(&meter);
    used(&a, 2.5);
    used(&b, 5.5);
}

/* One launch, which is a batch by itself and fills so much of its multiprocessors. */
static void launch(struct actor *actor, uint32_t width, uint64_t from, uint64_t to)
{
    begin_at(actor, 0, from);
    actor->client.usage.launches++;
    actor->client.shared.width = width;
    end_at(actor, 0, to);
}

/* All are handed over at once, so all spans begin at once; the device runs one after the other. */
static void kernels_that_fill_the_device_are_charged_by_their_length(void **state)
{
    (void)state;
    struct actor actors[9];
    for (uint64_t i = 0; i < 9; i++) {
        actor_open(&actors[i], 3);
        launch(&actors[i], SCHEDULER_WIDTH, 1, 6 + 5 * i);
    }
    meter_collect(&meter);
    for (int i = 0; i < 9; i++)
        used(&actors[i], 5);
}

static void an_urgent_kernel_is_charged_from_its_begin(void **state)
{
    (void)state;
    struct actor a, urgent;
    actor_open(&a, 3);
    actor_open(&urgent, 3);
    launch(&a, SCHEDULER_WIDTH, 1, 21);
    launch(&urgent, SCHEDULER_WIDTH, 11, 13);
    meter_collect(&meter);
    used(&a, 18);
    used(&urgent, 2);
}

static void kernels_that_leave_room_share_equally(void **state)
{
    (void)state;
    struct actor a, b, c;
    actor_open(&a, 3);
    actor_open(&b, 3);
    actor_open(&c, 3);
    launch(&a, SCHEDULER_WIDTH / 2, 1, 11);
    launch(&b, SCHEDULER_WIDTH / 2, 1, 13);
    launch(&c, SCHEDULER_WIDTH / 2, 1, 15); /* waits for the room of the first */
    meter_collect(&meter);
    used(&a, 5);
    used(&b, 5 + 1);
    used(&c, 1 + 2);
}

/* The kernels of longer batches take turns, whichever of the batches ends first. */
static void batches_share_equally(void **state)
{
    (void)state;
    struct actor a, b;
    actor_open(&a, 3);
    actor_open(&b, 3);
    for (int i = 0; i < 2; i++) {
        struct actor *one = i ? &b : &a;
        begin_at(one, 0, 1);
        one->client.usage.launches += 2;
        one->client.shared.width = SCHEDULER_WIDTH;
        one->streams[0].ring.value++;
        end_at(one, 0, 11);
    }
    meter_collect(&meter);
    used(&a, 5);
    used(&b, 5);
}

static void disjoint_sm_groups_share_nothing(void **state)
{
    (void)state;
    struct actor a, b;
    actor_open(&a, 3);
    actor_open(&b, 12);
    begin_at(&a, 0, 1);
    begin_at(&b, 0, 2);
    end_at(&a, 0, 5);
    end_at(&b, 0, 9);
    meter_collect(&meter);
    used(&a, 4);
    used(&b, 7);
}

static void some_sm_groups_shared(void **state)
{
    (void)state;
    struct actor a, b;
    actor_open(&a, 3);
    actor_open(&b, 2);
    begin_at(&a, 0, 1);
    begin_at(&b, 0, 2);
    end_at(&b, 0, 6);
    end_at(&a, 0, 7);
    meter_collect(&meter);
    used(&a, 1 + 4 * 0.75 + 1);
    used(&b, 4 * 0.5);
}

/* 8 multiprocessors alone, and with another client 12, or 4. */
static void an_sm_group_counts_for_as_many_multiprocessors_as_it_has(void **state)
{
    (void)state;
    static const uint32_t rests[] = {12, 4};
    for (int i = 0; i < 2; i++) {
        const double rest = rests[i];
        const uint64_t start = 10 * (uint64_t)i;
        struct actor a, b;
        partitions.rest = rests[i];
        actor_open(&a, 12);
        actor_open(&b, 8);
        begin_at(&a, 0, start + 1);
        begin_at(&b, 0, start + 2);
        end_at(&b, 0, start + 6);
        end_at(&a, 0, start + 7);
        meter_collect(&meter);
        used(&a, 1 + 4 * (8 + rest / 2) / (8 + rest) + 1);
        used(&b, 4 * 0.5);
    }
}

static void two_streams_of_one_client_count_once(void **state)
{
    (void)state;
    struct actor a;
    actor_open(&a, 3);
    begin_at(&a, 0, 1);
    begin_at(&a, 1, 3);
    end_at(&a, 0, 6);
    end_at(&a, 1, 8);
    meter_collect(&meter);
    used(&a, 7);
}

static void work_that_goes_on_is_counted_so_far(void **state)
{
    (void)state;
    struct actor a, b;
    actor_open(&a, 3);
    actor_open(&b, 3);
    begin_at(&a, 0, 1);
    fake.clock = 99;
    meter_end(&meter, &a.streams[0], 1); /* ends at 100, and is not over yet */
    begin_at(&b, 0, 11);
    end_at(&b, 0, 21);
    meter_collect(&meter);
    used(&b, 5);
    used(&a, 10 + 5);
    a.shadows[0] = 1;
    meter_collect(&meter);
    used(&a, 10 + 5 + 79);
    used(&b, 5);
}

static void nothing_is_counted_twice(void **state)
{
    (void)state;
    struct actor a;
    actor_open(&a, 3);
    for (uint64_t i = 0; i < 5000; i++) {
        begin_at(&a, 0, 10 * i + 1);
        end_at(&a, 0, 10 * i + 4);
        meter_collect(&meter);
        meter_collect(&meter);
    }
    used(&a, 15000);
}

static void batches_that_found_no_span_are_made_up_for(void **state)
{
    (void)state;
    struct actor a;
    actor_open(&a, 3);
    uint64_t batches = 4 * METER_SPANS;
    for (uint64_t i = 0; i < batches; i++) {
        begin_at(&a, 0, 10 * i + 1);
        if (a.streams[0].span)
            end_at(&a, 0, 10 * i + 4);
        if (i == batches - 2)
            meter_collect(&meter);
    }
    meter_collect(&meter);
    used(&a, 3.0 * (double)batches);
}

/* Else a neighbour's batches would find none, and the one that finds one again would be charged for
 * all of them. */
static void no_client_takes_all_spans(void **state)
{
    (void)state;
    struct actor hog, b;
    actor_open(&hog, 3);
    actor_open(&b, 12);
    for (uint64_t i = 0; i < 2 * METER_SPANS; i++) {
        begin_at(&hog, 0, 1);
        if (hog.streams[0].span)
            meter_end(&meter, &hog.streams[0], ++hog.streams[0].ring.value);
    }
    for (uint64_t i = 0; i < 10; i++) {
        begin_at(&b, 0, 10 * i + 2);
        if (b.streams[0].span)
            end_at(&b, 0, 10 * i + 3);
    }
    hog.shadows[0] = hog.streams[0].ring.value;
    meter_collect(&meter);
    begin_at(&b, 0, 200);
    end_at(&b, 0, 300);
    meter_collect(&meter);
    used(&b, 10 + 100);
    /* All of them came back. */
    assert_int_equal(hog.client.usage.spans, 0);
    assert_int_equal(b.client.usage.spans, 0);
    assert_int_equal(meter.free_count, METER_SPANS - 1);
}

/* Completions wait for it. */
static void many_clients_are_counted_quickly(void **state)
{
    (void)state;
    enum { CLIENTS = 400 };
    struct actor *actors = calloc(CLIENTS, sizeof *actors), b;
    assert_non_null(actors);
    partitions.count = 64;
    for (int i = 0; i < CLIENTS; i++) {
        actor_open(&actors[i], UINT64_MAX);
        launch(&actors[i], 1, 1, 1000);
    }
    actor_open(&b, UINT64_MAX);
    for (uint64_t i = 0; i < 50; i++) {
        begin_at(&b, 0, 2 + 5 * i);
        end_at(&b, 0, 4 + 5 * i);
    }
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    meter_collect(&meter);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    print_message("%.3f s\n", seconds);
    used(&b, 100.0 / (CLIENTS + 1));
    used(&actors[0], (999.0 - 100.0) / CLIENTS + 100.0 / (CLIENTS + 1));
    /* 400 spans looked at for each of 50 ends take seconds. */
    assert_true(seconds < 0.5);
    free(actors);
}

static void a_client_that_leaves_is_forgotten(void **state)
{
    (void)state;
    struct actor a, b;
    actor_open(&a, 3);
    actor_open(&b, 3);
    begin_at(&a, 0, 1);
    end_at(&a, 0, 5);
    begin_at(&a, 0, 6);
    meter_end(&meter, &a.streams[0], 2); /* and is not over yet */
    meter_forget(&meter, &a.client);
    memset(&a, 0xee, sizeof a);
    begin_at(&b, 0, 7);
    end_at(&b, 0, 8);
    meter_collect(&meter);
    used(&b, 1);
}

/* The device gets to the end events of batches after so many questions. */
static int questions_early, questions;
static struct actor *submits; /* a batch at the first question, which the device gets to never */

static bool is_end(cuda_event event)
{
    for (uint32_t i = 0; i < METER_SPANS; i++)
        if (meter.spans[i].end == event)
            return true;
    return false;
}

static cuda_result elapsed_after_questions(float *ms, cuda_event start, cuda_event end)
{
    return is_end(end) && (questions_early || end->at >= 300)
               ? CUDA_ERR_NOT_READY
               : fake_cuEventElapsedTime(ms, start, end);
}

static cuda_result query_after_questions(cuda_event event)
{
    struct actor *actor = submits;
    if (!is_end(event))
        return CUDA_OK;
    submits = NULL;
    if (actor) {
        begin_at(actor, 1, 200);
        end_at(actor, 1, 300);
    }
    questions++;
    if (event->at >= 300 || (questions_early && questions_early--))
        return CUDA_ERR_NOT_READY;
    return CUDA_OK;
}

/* A batch from 1 to 5 ms, whose end the device gets to after three questions. */
static void batch_with_late_end(struct actor *actor)
{
    actor_open(actor, 3);
    driver.cuEventElapsedTime = elapsed_after_questions;
    driver.cuEventQuery = query_after_questions;
    begin_at(actor, 0, 1);
    end_at(actor, 0, 5);
    questions = 0;
    questions_early = 3;
}

/* A thread of this test may lose its processor. */
#define LONG_ENOUGH (60 * UNITS_SECOND)

static void a_batch_that_its_client_saw_the_end_of_is_counted(void **state)
{
    (void)state;
    struct actor a;
    batch_with_late_end(&a);
    meter_collect(&meter);
    used(&a, 0);
    meter_settle(&meter, &a.client, LONG_ENOUGH);
    used(&a, 4);
    /* The other stream's batch goes on, and is not waited for. */
    begin_at(&a, 1, 6);
    meter_end(&meter, &a.streams[1], ++a.streams[1].ring.value);
    begin_at(&a, 0, 8);
    end_at(&a, 0, 10);
    questions_early = 2;
    questions = 0;
    meter_settle(&meter, &a.client, LONG_ENOUGH);
    assert_int_equal(questions, 3);
    used(&a, 8);
    /* An end that never comes is not waited for without end, and one that comes late is counted
     * when the client leaves. */
    begin_at(&a, 0, 20);
    end_at(&a, 0, 23);
    questions_early = INT_MAX;
    meter_settle(&meter, &a.client, METER_SETTLE_NS);
    assert_true(meter_owes(&meter, &a.client));
    questions_early = 2;
    a.shadows[1] = a.streams[1].ring.value;
    meter_forget(&meter, &a.client);
    assert_false(meter_owes(&meter, &a.client));
    used(&a, 8 + 3);
}

static void a_client_that_goes_on_is_not_waited_for(void **state)
{
    (void)state;
    struct actor a;
    batch_with_late_end(&a);
    submits = &a;
    meter_settle(&meter, &a.client, LONG_ENOUGH);
    used(&a, 4);
    assert_int_equal(questions, 4);
    meter_forget(&meter, &a.client);
}

/* Otherwise times would get coarse for all who stay. */
static void the_base_of_times_is_replaced_though_its_client_left(void **state)
{
    (void)state;
    struct actor a, b;
    actor_open(&a, 3);
    actor_open(&b, 3);
    begin_at(&a, 0, 1);
    meter_end(&meter, &a.streams[0], ++a.streams[0].ring.value); /* and is not over yet */
    meter_collect(&meter);
    const struct meter_span *first = meter.base;
    meter_forget(&meter, &a.client);
    assert_ptr_equal(meter.base, first);
    begin_at(&b, 0, 2000);
    end_at(&b, 0, 2001);
    meter_collect(&meter);
    assert_ptr_not_equal(meter.base, first);
    used(&b, 1);
}

static uint64_t timed_as(const struct actor *actor, uint64_t ms)
{
    return actor->client.usage.latencies[latency_bucket(ms * MS)];
}

/* Both are handed over at once, and the first one begins at once. */
static void time_at_the_driver_has_what_ran_before(void **state)
{
    (void)state;
    struct actor a, b;
    actor_open(&a, 3);
    actor_open(&b, 3);
    begin_at(&a, 0, 10);
    end_at(&a, 0, 16);
    begin_at(&b, 0, 50);
    end_at(&b, 0, 60);
    meter_collect(&meter);
    assert_int_equal(timed_as(&a, 6), 1);
    assert_int_equal(timed_as(&b, 50), 1);
}

static void one_of_sixteen_batches_of_a_client_is_timed(void **state)
{
    (void)state;
    struct actor a;
    uint64_t timed = 0;
    actor_open(&a, 3);
    for (uint64_t i = 0; i < 40; i++) {
        begin_at(&a, 0, 10 * i + 1);
        end_at(&a, 0, 10 * i + 4);
        meter_collect(&meter);
    }
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++)
        timed += a.client.usage.latencies[i];
    assert_int_equal(timed, 3);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(alone),
        T(two_on_the_same_sm_groups_share_equally),
        T(kernels_that_fill_the_device_are_charged_by_their_length),
        T(an_urgent_kernel_is_charged_from_its_begin),
        T(kernels_that_leave_room_share_equally),
        T(batches_share_equally),
        T(disjoint_sm_groups_share_nothing),
        T(some_sm_groups_shared),
        T(an_sm_group_counts_for_as_many_multiprocessors_as_it_has),
        T(two_streams_of_one_client_count_once),
        T(work_that_goes_on_is_counted_so_far),
        T(nothing_is_counted_twice),
        T(batches_that_found_no_span_are_made_up_for),
        T(no_client_takes_all_spans),
        T(many_clients_are_counted_quickly),
        T(a_client_that_leaves_is_forgotten),
        T(a_batch_that_its_client_saw_the_end_of_is_counted),
        T(a_client_that_goes_on_is_not_waited_for),
        T(the_base_of_times_is_replaced_though_its_client_left),
        T(time_at_the_driver_has_what_ran_before),
        T(one_of_sixteen_batches_of_a_client_is_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
