/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: a small kernel that nothing holds up ends within 100 ms */
/*
 * Hardware queues: who shares one, who waits there, and when one is full. Every case is
 * a process, for settings are read once.
 */
#include "tests/unit/softgpu/kernels.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/softgpu/device/stats.h"

static uint32_t *flag;
static cuda_device_ptr words;

static void open_device(const char *queues)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", queues, 1);
    CHECK(kernels_open() == 0);
    CHECK(cuMemAllocHost_v2((void **)&flag, 4096) == CUDA_OK);
    CHECK(cuMemAlloc_v2(&words, 65536) == CUDA_OK);
}

static cuda_stream new_stream(void)
{
    cuda_stream stream;

    CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    return stream;
}

static cuda_stream new_green_stream(void)
{
    cuda_stream stream = kernels_partition_stream(0);

    CHECK(stream != NULL);
    return stream;
}

static void store(cuda_stream stream)
{
    CHECK(launch_store(words, 1, 1, 1, stream) == CUDA_OK);
}

/* An endless kernel, and one behind it that heads the queue. */
static void block_queue(cuda_stream stream)
{
    *flag = 0;
    CHECK(launch_spin((uintptr_t)flag, stream) == CUDA_OK);
    store(stream);
}

static void release_queue(cuda_stream stream)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    CHECK(cuStreamSynchronize(stream) == CUDA_OK);
}

/* Whether the stream's work is held up by what the other one waits for. */
static bool is_held_up(cuda_stream stream, cuda_stream by)
{
    bool held;

    block_queue(by);
    store(stream);
    for (int i = 0; i < 100 && cuStreamQuery(stream) == CUDA_ERR_NOT_READY; i++)
        usleep(1000);
    held = cuStreamQuery(stream) == CUDA_ERR_NOT_READY;
    release_queue(by);
    CHECK(cuStreamSynchronize(stream) == CUDA_OK);
    return held;
}

/* Four queues. The device's default stream has the first. */
static void body_sharing(void)
{
    cuda_stream second, green, first, again;

    open_device("4");
    second = new_stream();
    green = new_green_stream(); /* the third is its context's default stream's */
    first = new_stream();
    again = new_stream();
    CHECK(!is_held_up(green, second));
    CHECK(!is_held_up(first, second));
    CHECK(is_held_up(again, second));
    CHECK(is_held_up(CUDA_STREAM_LEGACY, first));
    /* Nor does another stream's end give its place free. */
    CHECK(cuStreamDestroy_v2(again) == CUDA_OK);
    CHECK(!is_held_up(new_stream(), second));
    CHECK(is_held_up(new_stream(), green));
}

static void queues_are_given_out_in_turn(void **state)
{
    (void)state;
    in_child(body_sharing);
}

static void body_default_number(void)
{
    cuda_stream streams[33];

    CHECK(unsetenv("CUDA_DEVICE_MAX_CONNECTIONS") == 0);
    CHECK(kernels_open() == 0);
    CHECK(cuMemAllocHost_v2((void **)&flag, 4096) == CUDA_OK);
    CHECK(cuMemAlloc_v2(&words, 65536) == CUDA_OK);
    for (int i = 0; i < 33; i++)
        streams[i] = new_stream();
    CHECK(!is_held_up(streams[31], streams[0]));
    CHECK(is_held_up(streams[32], streams[0]));
}

static void there_are_32_queues(void **state)
{
    (void)state;
    in_child(body_default_number);
}

/* The device has two, however many are asked for. */
static void body_few_queues(void)
{
    cuda_stream streams[3];

    setenv("SOFTGPU_QUEUES", "2", 1);
    open_device("32");
    for (int i = 0; i < 3; i++)
        streams[i] = new_stream();
    CHECK(!is_held_up(streams[1], streams[0]));
    CHECK(is_held_up(streams[2], streams[0]));
}

static void a_device_may_have_fewer_queues_than_are_asked_for(void **state)
{
    (void)state;
    in_child(body_few_queues);
}

static void body_private(void)
{
    cuda_stream first, second;

    setenv("SOFTGPU_PRIVATE_QUEUES", "1", 1);
    open_device("1");
    first = new_stream();
    second = new_stream();
    CHECK(!is_held_up(second, first));
    (void)new_green_stream();
}

static void each_stream_can_be_given_its_own(void **state)
{
    (void)state;
    in_child(body_private);
}

enum { ENTRIES = 8 };

static atomic_uint submitted;

static void *submit_many(void *stream)
{
    CHECK(cuCtxSetCurrent(kernels.context) == CUDA_OK);
    for (unsigned i = 0; i < 3 * ENTRIES; i++) {
        store(stream);
        atomic_fetch_add(&submitted, 1);
    }
    return NULL;
}

static void await_count(unsigned count)
{
    for (int i = 0; i < 10000 && atomic_load(&submitted) < count; i++)
        usleep(1000);
}

/* Has the device count in a file that is gone when the process is. Before the device is opened. */
static const struct stats_file *count_in_file(void)
{
    char path[] = "/tmp/softgpu-queues-XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0 && ftruncate(fd, sizeof(struct stats_file)) == 0);
    setenv("SOFTGPU_STATS", path, 1);
    const struct stats_file *stats = mmap(NULL, sizeof(*stats), PROT_READ, MAP_SHARED, fd, 0);
    CHECK(stats != MAP_FAILED);
    close(fd);
    return stats;
}

/* Two queues; the second stream has the one that the endless kernel's stream has not. */
static void fill_queue(unsigned wanted)
{
    const struct stats_file *stats = count_in_file();
    cuda_stream endless, free_one;
    pthread_t thread;

    open_device("2");
    const char *file = getenv("SOFTGPU_STATS");
    CHECK(file != NULL);
    unlink(file);
    endless = new_stream();
    free_one = new_stream();
    *flag = 0;
    CHECK(launch_spin((uintptr_t)flag, endless) == CUDA_OK);
    usleep(10000); /* the kernel has begun, and stands in no queue any more */
    CHECK(pthread_create(&thread, NULL, submit_many, endless) == 0);
    await_count(wanted);
    usleep(20000);
    CHECK(atomic_load(&submitted) == wanted);
    /* The other queue has room. */
    store(free_one);
    CHECK(cuStreamSynchronize(free_one) == CUDA_OK);
    release_queue(endless);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&submitted) == 3 * ENTRIES);
    CHECK((stats->device[0].full_queues > 0) == (wanted < 3 * ENTRIES));
    CHECK(cuStreamSynchronize(endless) == CUDA_OK);
}

static void body_full(void)
{
    setenv("SOFTGPU_QUEUE_ENTRIES", "8", 1);
    fill_queue(ENTRIES);
}

static void body_no_end(void)
{
    setenv("SOFTGPU_QUEUE_ENTRIES", "0", 1);
    fill_queue(3 * ENTRIES);
}

static void a_full_queue_blocks_whoever_enqueues(void **state)
{
    (void)state;
    in_child(body_full);
    in_child(body_no_end);
}

/* The device has one queue; two green contexts have one each, or share it. */
static bool green_streams_share(int scope)
{
    cuda_dev_resource parts[2], all, queue;
    cuda_stream streams[2];
    unsigned groups = 2;

    setenv("SOFTGPU_WORK_QUEUES", "1", 1);
    open_device("1");
    CHECK(cuDeviceGetDevResource(0, &all, CUDA_RESOURCE_SM) == CUDA_OK);
    CHECK(cuDeviceGetDevResource(0, &queue, CUDA_RESOURCE_WORKQUEUE_CONFIG) == CUDA_OK);
    CHECK(queue.workqueue.concurrency == 1);
    CHECK(cuDevSmResourceSplitByCount(parts, &groups, &all, NULL, 0, 8) == CUDA_OK);
    for (int i = 0; i < 2; i++) {
        cuda_dev_resource both[2] = {parts[i], queue};
        cuda_resource_desc desc;
        cuda_green_ctx green;

        both[1].workqueue.scope = scope;
        CHECK(cuDevResourceGenerateDesc(&desc, both, 2) == CUDA_OK);
        CHECK(cuGreenCtxCreate(&green, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM) == CUDA_OK);
        CHECK(cuGreenCtxStreamCreate(&streams[i], green, CUDA_STREAM_NON_BLOCKING, 0) == CUDA_OK);
    }
    return is_held_up(streams[1], streams[0]);
}

static void body_balanced(void)
{
    CHECK(!green_streams_share(CUDA_WORKQUEUE_SCOPE_GREEN_BALANCED));
}

static void body_unbalanced(void)
{
    CHECK(green_streams_share(CUDA_WORKQUEUE_SCOPE_DEVICE_CONTEXT));
}

static void body_no_work_queues(void)
{
    cuda_dev_resource queue, both[2];
    cuda_resource_desc desc;

    open_device("1");
    CHECK(cuDeviceGetDevResource(0, &queue, CUDA_RESOURCE_WORKQUEUE_CONFIG) ==
          CUDA_ERR_INVALID_RESOURCE_TYPE);
    CHECK(cuDeviceGetDevResource(0, &both[0], CUDA_RESOURCE_SM) == CUDA_OK);
    both[1] = (cuda_dev_resource){.type = CUDA_RESOURCE_WORKQUEUE_CONFIG};
    CHECK(cuDevResourceGenerateDesc(&desc, both, 2) == CUDA_ERR_INVALID_RESOURCE_TYPE);
}

static void green_contexts_may_ask_for_queues_of_their_own(void **state)
{
    (void)state;
    in_child(body_balanced);
    in_child(body_unbalanced);
    in_child(body_no_work_queues);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_are_given_out_in_turn),
        cmocka_unit_test(there_are_32_queues),
        cmocka_unit_test(a_device_may_have_fewer_queues_than_are_asked_for),
        cmocka_unit_test(each_stream_can_be_given_its_own),
        cmocka_unit_test(green_contexts_may_ask_for_queues_of_their_own),
        cmocka_unit_test(a_full_queue_blocks_whoever_enqueues),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
