/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: kernels of half a millisecond must begin in their order */
/*
 * Modelled time and the multiprocessors: how long kernels of nanosleep take, one
 * behind another and beside each other. Everything is measured in modelled time,
 * so that a busy machine changes nothing.
 */
#include <dirent.h>
#include <stdbool.h>

#include "tests/unit/softgpu/kernels.h"

enum { SMS = 16 };

static int setup(void **state)
{
    (void)state;
    /* Nothing at random: what is measured is the model of time alone. */
    setenv("SOFTGPU_PRIVATE_QUEUES", "1", 1);
    setenv("SOFTGPU_SCATTER", "0", 1);
    setenv("SOFTGPU_ARRIVAL_NS", "0", 1);
    setenv("SOFTGPU_SMS", "16", 1);
    setenv("SOFTGPU_COPY_BYTES_PER_SECOND", "1000000000", 1);
    return kernels_open();
}

static cuda_stream new_stream(int priority)
{
    cuda_stream stream;

    OK(cuStreamCreateWithPriority(&stream, CUDA_STREAM_NON_BLOCKING, priority));
    return stream;
}

static cuda_event events[64];
static size_t event_count;

static cuda_event new_event(void)
{
    assert_true(event_count < sizeof(events) / sizeof(events[0]));
    OK(cuEventCreate(&events[event_count], 0));
    return events[event_count++];
}

static int forget_events(void **state)
{
    (void)state;
    while (event_count > 0)
        OK(cuEventDestroy_v2(events[--event_count]));
    return 0;
}

static float between(cuda_event start, cuda_event end)
{
    float milliseconds = -1;

    OK(cuEventSynchronize(end));
    OK(cuEventElapsedTime(&milliseconds, start, end));
    return milliseconds;
}

/* A thread that is kept from the CPU for long may cost a wave of blocks its place. */
static void assert_takes_turns(float value, float wanted, float wave)
{
    if (value < wanted * 0.95f || value > wanted + 1.1f * wave)
        fail_msg("%g is not %g, nor one wave of %g more", (double)value, (double)wanted,
                 (double)wave);
}

static void assert_near(float value, float wanted, float tolerance)
{
    if (value < wanted * (1 - tolerance) || value > wanted * (1 + tolerance))
        fail_msg("%g is not within %g %% of %g", (double)value, (double)tolerance * 100,
                 (double)wanted);
}

/*
 * Lets everything submitted behind it be there before the first of it begins, so
 * that a caller who is held up in between changes no time that is measured.
 */
static void gate(cuda_stream stream)
{
    OK(launch_sleep(1, 32, 1000000, 20, stream));
}

/* 1024 threads: two blocks fit on a multiprocessor, 16 on eight. */
static void successors_begin_when_predecessors_end(void **state)
{
    cuda_stream stream = kernels_partition_stream(0);
    cuda_event start = new_event(), end = new_event();

    (void)state;
    assert_non_null(stream);
    gate(stream);
    OK(cuEventRecord(start, stream));
    OK(launch_sleep(16000, 1024, 20000, 1, stream));
    OK(cuEventRecord(end, stream));
    /* 1000 waves of 20 us */
    assert_near(between(start, end), 20.0f, 0.05f);
}

static void a_kernel_lasts_as_long_as_it_sleeps(void **state)
{
    cuda_stream stream = new_stream(0);
    cuda_event start = new_event(), end = new_event();

    (void)state;
    gate(stream);
    OK(cuEventRecord(start, stream));
    OK(launch_sleep(1, 32, 500000, 4, stream));
    OK(cuEventRecord(end, stream));
    assert_near(between(start, end), 2.0f, 0.05f);
}

static void kernels_of_one_stream_follow_each_other(void **state)
{
    cuda_stream stream = new_stream(0);
    cuda_event start = new_event(), end = new_event();

    (void)state;
    gate(stream);
    OK(cuEventRecord(start, stream));
    for (int i = 0; i < 50; i++)
        OK(launch_sleep(4, 32, 100000, 1, stream));
    OK(cuEventRecord(end, stream));
    assert_near(between(start, end), 5.0f, 0.05f);
}

static void streams_overlap(void **state)
{
    cuda_stream a = new_stream(0), b = new_stream(0), first = new_stream(0);
    cuda_event start = new_event(), end_a = new_event(), end_b = new_event();

    (void)state;
    gate(first);
    OK(cuEventRecord(start, first));
    OK(cuStreamWaitEvent(a, start, 0));
    OK(cuStreamWaitEvent(b, start, 0));
    for (int i = 0; i < 10; i++) {
        OK(launch_sleep(SMS, 1024, 500000, 1, a));
        OK(launch_sleep(SMS, 1024, 500000, 1, b));
    }
    OK(cuEventRecord(end_a, a));
    OK(cuEventRecord(end_b, b));
    assert_takes_turns(between(start, end_a), 5.0f, 0.5f);
    assert_takes_turns(between(start, end_b), 5.0f, 0.5f);
}

static void a_full_device_makes_streams_take_turns(void **state)
{
    cuda_stream a = new_stream(0), b = new_stream(0), first = new_stream(0);
    cuda_event start = new_event(), end_a = new_event(), end_b = new_event();
    float last;

    (void)state;
    gate(first);
    OK(cuEventRecord(start, first));
    OK(cuStreamWaitEvent(a, start, 0));
    OK(cuStreamWaitEvent(b, start, 0));
    for (int i = 0; i < 5; i++) {
        OK(launch_sleep(2 * SMS, 1024, 500000, 1, a));
        OK(launch_sleep(2 * SMS, 1024, 500000, 1, b));
    }
    OK(cuEventRecord(end_a, a));
    OK(cuEventRecord(end_b, b));
    last = between(start, end_a);
    if (between(start, end_b) > last)
        last = between(start, end_b);
    assert_takes_turns(last, 5.0f, 0.5f);
}

static void the_more_urgent_stream_goes_first(void **state)
{
    cuda_stream low = new_stream(0), high = new_stream(-5), first = new_stream(0);
    cuda_event start = new_event(), end_low = new_event(), end_high = new_event();

    (void)state;
    gate(first);
    OK(cuEventRecord(start, first));
    OK(cuStreamWaitEvent(low, start, 0));
    OK(cuStreamWaitEvent(high, start, 0));
    /* Ten waves of low work; the urgent work arrives with it and needs two. */
    OK(launch_sleep(20 * SMS, 1024, 500000, 1, low));
    OK(launch_sleep(4 * SMS, 1024, 500000, 1, high));
    OK(cuEventRecord(end_low, low));
    OK(cuEventRecord(end_high, high));
    /* One wave of the low stream may have begun before; it is not preempted. */
    assert_true(between(start, end_high) <= 1.6f);
    /* Six, and one wave more where a block that ran late left its last place to another. */
    assert_true(between(start, end_low) >= 5.9f && between(start, end_low) <= 6.7f);
}

/* As above, without a difference of priority: ten waves come first, then the two. */
static void blocks_of_the_earlier_grid_come_first(void **state)
{
    cuda_stream early = new_stream(0), late = new_stream(0), first = new_stream(0);
    cuda_event start = new_event(), end_early = new_event(), end_late = new_event();

    (void)state;
    gate(first);
    OK(cuEventRecord(start, first));
    OK(cuStreamWaitEvent(early, start, 0));
    OK(cuStreamWaitEvent(late, start, 0));
    OK(launch_sleep(20 * SMS, 1024, 500000, 1, early));
    OK(launch_sleep(4 * SMS, 1024, 500000, 1, late));
    OK(cuEventRecord(end_early, early));
    OK(cuEventRecord(end_late, late));
    assert_true(between(start, end_late) >= 5.4f);
    assert_true(between(start, end_early) <= 5.7f);
}

static void an_event_orders_two_streams(void **state)
{
    cuda_stream a = new_stream(0), b = new_stream(0);
    cuda_event start = new_event(), middle = new_event(), end = new_event();

    (void)state;
    /* Never less; more where a thread was kept from the CPU when the one stream handed on. */
    float took = 1000;
    for (int tries = 0; tries < 10 && took > 5.25f; tries++) {
        gate(a);
        OK(cuEventRecord(start, a));
        OK(launch_sleep(1, 32, 1000000, 3, a));
        OK(cuEventRecord(middle, a));
        OK(cuStreamWaitEvent(b, middle, 0));
        OK(launch_sleep(1, 32, 1000000, 2, b));
        OK(cuEventRecord(end, b));
        took = between(start, end);
        assert_true(took >= 4.75f);
    }
    assert_near(took, 5.0f, 0.05f);
}

static void blocks_see_the_modelled_clock(void **state)
{
    enum { BLOCKS = 64 };
    uint64_t stamps[2 * BLOCKS];
    cuda_stream stream = kernels_partition_stream(0);
    cuda_device_ptr out;
    uint64_t first = UINT64_MAX, last = 0;

    (void)state;
    OK(cuMemAlloc_v2(&out, sizeof(stamps)));
    OK(launch_stamp(out, BLOCKS, 1024, 250000, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(stamps, out, sizeof(stamps)));
    for (int i = 0; i < BLOCKS; i++) {
        assert_near((float)(stamps[2 * i + 1] - stamps[2 * i]), 250000.0f, 0.05f);
        first = stamps[2 * i] < first ? stamps[2 * i] : first;
        last = stamps[2 * i + 1] > last ? stamps[2 * i + 1] : last;
    }
    /* Four waves of sixteen. */
    assert_takes_turns((float)(last - first), 1000000.0f, 250000.0f);
    OK(cuMemFree_v2(out));
}

static void copies_take_their_modelled_time(void **state)
{
    enum { BYTES = 4 << 20 };
    cuda_stream up = new_stream(0), down = new_stream(0), first = new_stream(0);
    cuda_event start = new_event(), end_up = new_event(), end_down = new_event();
    cuda_device_ptr a, b;
    void *host_a, *host_b;

    (void)state;
    OK(cuMemAlloc_v2(&a, BYTES));
    OK(cuMemAlloc_v2(&b, BYTES));
    OK(cuMemAllocHost_v2(&host_a, BYTES));
    OK(cuMemAllocHost_v2(&host_b, BYTES));
    gate(first);
    OK(cuEventRecord(start, first));
    OK(cuStreamWaitEvent(up, start, 0));
    OK(cuStreamWaitEvent(down, start, 0));
    for (int i = 0; i < 4; i++) {
        OK(cuMemcpyHtoDAsync_v2(a, host_a, BYTES, up));
        OK(cuMemcpyDtoHAsync_v2(host_b, b, BYTES, down));
    }
    OK(cuEventRecord(end_up, up));
    OK(cuEventRecord(end_down, down));
    /* 16 MiB each at 1 GB/s, both directions at once. */
    assert_near(between(start, end_up), 16.777f, 0.05f);
    assert_near(between(start, end_down), 16.777f, 0.05f);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
    OK(cuMemFreeHost(host_a));
    OK(cuMemFreeHost(host_b));
}

static void real_time_is_never_ahead_of_modelled_work(void **state)
{
    struct timespec before, after;
    cuda_stream stream = new_stream(0);

    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &before);
    OK(launch_sleep(1, 32, 1000000, 10, stream));
    assert_int_equal(cuStreamQuery(stream), CUDA_ERR_NOT_READY);
    OK(cuStreamSynchronize(stream));
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec >=
                10000000L);
    OK(cuStreamQuery(stream));
}

/* How often the engine's threads gave up the CPU since they began. */
static unsigned long engine_sleeps(void)
{
    unsigned long sum = 0, one;
    char path[300], line[200];
    struct dirent *task;
    DIR *tasks = opendir("/proc/self/task");

    assert_non_null(tasks);
    while ((task = readdir(tasks))) {
        bool engine = false;
        FILE *status;

        snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
        status = fopen(path, "r");
        while (status && fgets(line, sizeof(line), status)) {
            if (!strncmp(line, "Name:", 5))
                engine = strstr(line, "softgpu") != NULL;
            if (engine && sscanf(line, "voluntary_ctxt_switches: %lu", &one) == 1)
                sum += one;
        }
        if (status)
            fclose(status);
    }
    closedir(tasks);
    return sum;
}

/* A thread that is woken for nothing takes CPU time from the program whose calls feed the device.
 * A lock that is taken now and then costs a few more. */
static void one_thread_wakes_once_for_a_kernel(void **state)
{
    enum { KERNELS = 400 };
    const struct timespec look = {.tv_nsec = 5000000};
    cuda_stream stream = new_stream(0);
    unsigned long before;

    (void)state;
    gate(stream);
    for (int i = 0; i < KERNELS; i++)
        OK(launch_sleep(1, 32, 200000, 1, stream));
    before = engine_sleeps();
    while (cuStreamQuery(stream) == CUDA_ERR_NOT_READY)
        nanosleep(&look, NULL);
    OK(cuStreamQuery(stream));
    assert_in_range(engine_sleeps() - before, 0, KERNELS * 3 / 2);
    OK(cuStreamDestroy_v2(stream));
}

#define CASE(name) cmocka_unit_test_teardown(name, forget_events)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(successors_begin_when_predecessors_end),
        CASE(a_kernel_lasts_as_long_as_it_sleeps),
        CASE(kernels_of_one_stream_follow_each_other),
        CASE(streams_overlap),
        CASE(a_full_device_makes_streams_take_turns),
        CASE(the_more_urgent_stream_goes_first),
        CASE(blocks_of_the_earlier_grid_come_first),
        CASE(an_event_orders_two_streams),
        CASE(blocks_see_the_modelled_clock),
        CASE(copies_take_their_modelled_time),
        CASE(real_time_is_never_ahead_of_modelled_work),
        CASE(one_thread_wakes_once_for_a_kernel),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
