/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Streams, launches and events, judged by the descriptors that they leave in the rings. */
#include "tests/unit/client/fixture.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static const struct fake_options by_hand = {.manual = true};

static struct proto_command_wait must_wait(const struct fixture *f, uint32_t stream)
{
    struct ring_descriptor descriptor;
    assert_string_equal(fixture_next(f, stream, &descriptor), "wait");
    struct proto_command_wait wait;
    memcpy(&wait, &descriptor, sizeof wait);
    return wait;
}

static struct proto_command_launch must_launch(const struct fixture *f, uint32_t stream)
{
    struct ring_descriptor descriptor;
    assert_string_equal(fixture_next(f, stream, &descriptor), "launch");
    struct proto_command_launch launch;
    memcpy(&launch, &descriptor, sizeof launch);
    return launch;
}

static void must_be_empty(const struct fixture *f, uint32_t stream)
{
    struct ring_descriptor descriptor;
    assert_string_equal(fixture_next(f, stream, &descriptor), "");
}

/* ---- launches ---- */

static void launch_fills_the_descriptor(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    uint64_t pointer = 0x1122334455667788;
    uint32_t number = 0xaabbccdd;
    uint8_t byte = 0x5a;
    void *parameters[] = {&byte, &pointer, &number};
    struct gpushare_dim grid = {7, 8, 9}, block = {16, 4, 2};
    gpushare_function *kernel = fixture_kernel(&f, "k_1_8_4");
    OK(gpushare_launch(kernel, grid, block, 512, NULL, parameters));
    struct proto_command_launch launch = must_launch(&f, 0);
    uint8_t expected[20] = {0x5a};
    memcpy(expected + 8, &pointer, 8);
    memcpy(expected + 16, &number, 4);
    assert_int_equal(launch.function, 13);
    assert_int_equal(launch.grid[0], 7);
    assert_int_equal(launch.grid[1], 8);
    assert_int_equal(launch.grid[2], 9);
    assert_int_equal(launch.block[0], 16);
    assert_int_equal(launch.block[1], 4);
    assert_int_equal(launch.block[2], 2);
    assert_int_equal(launch.shared_bytes, 512);
    assert_int_equal(launch.parameter_bytes, 20);
    assert_int_equal(launch.parameter_offset, 0);
    assert_memory_equal(launch.inline_parameters, expected, 20);
    assert_int_equal(launch.flags, 0);
    assert_int_equal(launch.pad0, 0);

    /* The same block laid out by the caller is the same descriptor. */
    fake_run(f.server, 0, 0, 1);
    OK(gpushare_launch_packed(kernel, grid, block, 512, NULL, expected, 20));
    struct proto_command_launch packed = must_launch(&f, 0);
    assert_memory_equal(&packed, &launch, sizeof launch);
    assert_int_equal(gpushare_launch_packed(kernel, grid, block, 0, NULL, expected, 19),
                     GPUSHARE_ERROR_INVALID_VALUE);
    fixture_stop(&f);
}

static void function_describes_its_parameters(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    gpushare_function *kernel = fixture_kernel(&f, "k_1_8_4"),
                      *again = fixture_kernel(&f, "k_1_8_4");
    size_t offset, bytes;
    assert_ptr_equal(kernel, again);
    assert_int_equal(fake_count(f.server, PROTO_FUNCTION_GET), 1);
    OK(gpushare_function_parameter(kernel, 2, &offset, &bytes));
    assert_int_equal(offset, 16);
    assert_int_equal(bytes, 4);
    OK(gpushare_function_parameter(kernel, 1, NULL, NULL));
    assert_int_equal(gpushare_function_parameter(kernel, 3, &offset, &bytes),
                     GPUSHARE_ERROR_INVALID_VALUE);
    struct gpushare_function_info info = {.size = sizeof info};
    OK(gpushare_function_info(kernel, &info));
    assert_int_equal(info.parameters, 3);
    assert_int_equal(info.parameter_bytes, 20);
    assert_int_equal(info.block_threads, 512);
    assert_int_equal(info.dynamic_shared, (48 << 10) - 1024);
    OK(gpushare_function_set_shared(kernel, 100 << 10));
    OK(gpushare_function_info(kernel, &info));
    assert_int_equal(info.dynamic_shared, 100 << 10);
    uint32_t blocks;
    OK(gpushare_occupancy(kernel, 256, 0, &blocks));
    assert_int_equal(blocks, 8);
    gpushare_function *none;
    assert_int_equal(gpushare_module_function(f.module, "nothing", &none),
                     GPUSHARE_ERROR_NOT_FOUND);
    gpushare_address address;
    uint64_t size;
    OK(gpushare_module_variable(f.module, "variable", &address, &size));
    assert_int_equal(size, 12);
    fixture_stop(&f);
}

static void launches_beyond_the_device_are_refused_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_function *kernel = fixture_kernel(&f, "k_8");
    void *parameters[] = {&kernel};
    static const struct {
        struct gpushare_dim grid, block;
        uint32_t shared;
        gpushare_error error;
    } bad[] = {
        {{0, 1, 1}, {1, 1, 1}, 0, GPUSHARE_ERROR_INVALID_VALUE},
        {{1, 65536, 1}, {1, 1, 1}, 0, GPUSHARE_ERROR_INVALID_VALUE},
        {{0x80000000, 1, 1}, {1, 1, 1}, 0, GPUSHARE_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {1, 0, 1}, 0, GPUSHARE_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {1, 1, 65}, 0, GPUSHARE_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {65537, 1, 1}, 0, GPUSHARE_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {1, 1, 1}, (48 << 10) - 1023, GPUSHARE_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {1024, 1024, 64}, 0, GPUSHARE_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {513, 1, 1}, 0, GPUSHARE_ERROR_INVALID_VALUE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            gpushare_launch(kernel, bad[i].grid, bad[i].block, bad[i].shared, NULL, parameters),
            bad[i].error);
    assert_int_equal(gpushare_launch(kernel, one, one, 0, NULL, NULL),
                     GPUSHARE_ERROR_INVALID_VALUE);
    assert_int_equal(gpushare_launch(NULL, one, one, 0, NULL, NULL), GPUSHARE_ERROR_INVALID_HANDLE);
    /* Launch bounds are a wrong argument. Of 128 registers for each thread a block of 512 has all,
     * so a larger one lacks them. */
    gpushare_function *wide = fixture_kernel(&f, "w_8");
    struct gpushare_dim larger = {513, 1, 1}, most = {512, 1, 1};
    assert_int_equal(gpushare_launch(wide, one, larger, 0, NULL, parameters),
                     GPUSHARE_ERROR_LAUNCH_OUT_OF_RESOURCES);
    must_be_empty(&f, 0);
    OK(gpushare_launch(kernel, one, most, (48 << 10) - 1024, NULL, parameters));
    fixture_stop(&f);
}

static void long_parameters_wrap_in_the_arena(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_function *kernel = fixture_kernel(&f, "k_4_30000");
    struct {
        uint32_t number;
        uint8_t bytes[30000 - 4];
    } seen;
    static uint8_t rest[30000];
    /* 131072 bytes hold four such blocks: twelve go round three times. */
    for (uint32_t i = 0; i < 12; i++) {
        memset(rest, (int)i + 1, sizeof rest);
        void *parameters[] = {&i, rest};
        OK(gpushare_launch(kernel, one, one, 0, NULL, parameters));
        struct ring_descriptor descriptor;
        assert_string_equal(fixture_next(&f, 0, &descriptor), "launch");
        uint8_t block[PROTO_PARAMETERS_MAX];
        fake_parameters(f.server, 0, 0, &descriptor, block);
        memcpy(&seen, block, sizeof seen);
        assert_int_equal(seen.number, i);
        assert_int_equal(block[8], i + 1);
        assert_int_equal(block[30007], i + 1);
        assert_int_equal(fake_run(f.server, 0, 0, 1), 1);
    }
    fixture_stop(&f);
}

/* ---- full rings ---- */

struct pusher {
    const struct fixture *f;
    gpushare_function *kernel;
    gpushare_stream *stream;
    unsigned launches, done; /* done: atomic */
    gpushare_error error;
};

static void *push(void *context)
{
    struct pusher *p = context;
    static uint8_t block[PROTO_PARAMETERS_MAX];
    struct gpushare_function_info info = {.size = sizeof info};
    p->error = gpushare_function_info(p->kernel, &info);
    for (unsigned i = 0; i < p->launches && !p->error; i++) {
        p->error =
            gpushare_launch_packed(p->kernel, one, one, 0, p->stream, block, info.parameter_bytes);
        if (!p->error)
            __atomic_fetch_add(&p->done, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static unsigned pushed(struct pusher *p)
{
    return __atomic_load_n(&p->done, __ATOMIC_SEQ_CST);
}

static void await(struct pusher *p, unsigned count)
{
    for (int i = 0; i < 10000 && pushed(p) < count; i++)
        usleep(1000);
    assert_int_equal(pushed(p), count);
}

static void full_ring_waits_for_room(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    struct pusher p = {.f = &f, .kernel = fixture_kernel(&f, "k"), .launches = 1500};
    pthread_t thread;
    pthread_create(&thread, NULL, push, &p);
    await(&p, PROTO_RING_ENTRIES);
    usleep(20000);
    assert_int_equal(pushed(&p), PROTO_RING_ENTRIES);
    assert_int_equal(fake_run(f.server, 0, 0, 10), 10);
    await(&p, PROTO_RING_ENTRIES + 10);
    fake_automatic(f.server, true);
    pthread_join(thread, NULL);
    assert_int_equal(p.error, GPUSHARE_SUCCESS);
    OK(gpushare_synchronize(f.gpu));
    assert_int_equal(fake_launches(f.server, 0), 1500);
    fixture_stop(&f);
}

static void full_arena_waits_for_room(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    struct pusher p = {.f = &f, .kernel = fixture_kernel(&f, "k_30000"), .launches = 9};
    pthread_t thread;
    pthread_create(&thread, NULL, push, &p);
    await(&p, 4);
    usleep(20000);
    assert_int_equal(pushed(&p), 4);
    assert_int_equal(fake_run(f.server, 0, 0, 1), 1);
    await(&p, 5);
    fake_automatic(f.server, true);
    pthread_join(thread, NULL);
    assert_int_equal(p.error, GPUSHARE_SUCCESS);
    fixture_stop(&f);
}

static void two_threads_on_one_stream_lose_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    gpushare_stream *stream;
    OK(gpushare_stream_create(f.gpu, 0, 0, &stream));
    struct pusher p[2] = {
        {.f = &f, .kernel = fixture_kernel(&f, "k"), .stream = stream, .launches = 5000},
        {.f = &f, .kernel = fixture_kernel(&f, "k_100"), .stream = stream, .launches = 5000}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, push, &p[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(p[0].error | p[1].error, GPUSHARE_SUCCESS);
    OK(gpushare_stream_synchronize(f.gpu, stream));
    assert_int_equal(fake_launches(f.server, 0), 10000);
    fixture_stop(&f);
}

/* ---- the default stream's rules ---- */

static void default_stream_waits_for_blocking_streams(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_stream *blocking[4], *free_stream;
    for (int i = 0; i < 4; i++)
        OK(gpushare_stream_create(f.gpu, 0, 0, &blocking[i]));
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &free_stream));
    for (int i = 0; i < 4; i++)
        for (int n = 0; n <= i; n++)
            fixture_launch(&f, blocking[i]);
    fixture_launch(&f, free_stream);
    /* Stream 2 is done already: no need to wait for it. */
    fake_run(f.server, 0, 2, 2);
    fixture_launch(&f, NULL);
    struct proto_command_wait wait = must_wait(&f, 0);
    assert_int_equal(wait.count, 3);
    uint32_t streams[3] = {wait.on[0].stream, wait.on[1].stream, wait.on[2].stream};
    uint64_t values[3] = {wait.on[0].value, wait.on[1].value, wait.on[2].value};
    unsigned seen = 0;
    for (int i = 0; i < 3; i++) {
        assert_true(streams[i] == 1 || streams[i] == 3 || streams[i] == 4);
        assert_int_equal(values[i], streams[i]);
        seen |= 1u << streams[i];
    }
    assert_int_equal(seen, 1u << 1 | 1u << 3 | 1u << 4);
    assert_int_equal(wait.on[0].link | wait.on[1].link | wait.on[2].link, 0);
    /* It does not go on before they are done. */
    assert_int_equal(fake_run(f.server, 0, 0, 2), 0);
    fake_run(f.server, 0, 1, 10);
    fake_run(f.server, 0, 3, 10);
    fake_run(f.server, 0, 4, 10);
    assert_int_equal(fake_run(f.server, 0, 0, 2), 2);
    /* Nothing new: no wait. */
    fixture_launch(&f, NULL);
    must_launch(&f, 0);
    fixture_stop(&f);
}

static void blocking_stream_waits_for_the_default_stream_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_stream *blocking, *free_stream;
    OK(gpushare_stream_create(f.gpu, 0, 0, &blocking));
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &free_stream));
    fixture_launch(&f, NULL);
    fixture_launch(&f, NULL);
    fixture_launch(&f, blocking);
    fixture_launch(&f, blocking);
    fixture_launch(&f, free_stream);
    struct proto_command_wait wait = must_wait(&f, 1);
    assert_int_equal(wait.count, 1);
    assert_int_equal(wait.on[0].stream, 0);
    assert_int_equal(wait.on[0].value, 2);
    must_launch(&f, 2);
    assert_int_equal(fake_run(f.server, 0, 1, 1), 0);
    fake_run(f.server, 0, 0, 2);
    assert_int_equal(fake_run(f.server, 0, 1, 1), 1);
    must_launch(&f, 1);
    assert_int_equal(fake_run(f.server, 0, 1, 1), 1);
    must_launch(&f, 1);
    assert_int_equal(fake_run(f.server, 0, 1, 1), 1);
    /* And the default stream waits for that stream's waits and launches, three in all. */
    must_be_empty(&f, 1);
    fixture_launch(&f, blocking);
    must_launch(&f, 1);
    fixture_launch(&f, NULL);
    wait = must_wait(&f, 0);
    assert_int_equal(wait.on[0].stream, 1);
    assert_int_equal(wait.on[0].value, 4);
    fixture_stop(&f);
}

static void destroyed_stream_still_holds_the_default_stream(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_stream *blocking;
    OK(gpushare_stream_create(f.gpu, 0, 0, &blocking));
    fixture_launch(&f, blocking);
    OK(gpushare_stream_destroy(blocking));
    assert_int_equal(fake_count(f.server, PROTO_STREAM_DESTROY), 0);
    fixture_launch(&f, NULL);
    assert_int_equal(must_wait(&f, 0).on[0].stream, 1);
    fake_run(f.server, 0, 1, 1);
    /* Given back when the next stream is asked for. */
    OK(gpushare_stream_create(f.gpu, 0, 0, &blocking));
    assert_int_equal(fake_count(f.server, PROTO_STREAM_DESTROY), 1);
    fixture_stop(&f);
}

struct own {
    struct fixture *f;
    pthread_barrier_t *barrier;
};

static void *use_own_stream(void *context)
{
    struct own *own = context;
    OK(gpushare_launch(fixture_kernel(own->f, "k"), one, one, 0, GPUSHARE_STREAM_PER_THREAD, NULL));
    OK(gpushare_launch(fixture_kernel(own->f, "k"), one, one, 0, GPUSHARE_STREAM_PER_THREAD, NULL));
    pthread_barrier_wait(own->barrier);
    pthread_barrier_wait(own->barrier);
    OK(gpushare_stream_synchronize(own->f->gpu, GPUSHARE_STREAM_PER_THREAD));
    return NULL;
}

/* Its memory is charged to the client, which may have none to spare. */
static void a_ring_is_asked_for_when_it_is_needed(void **state)
{
    (void)state;
    struct fixture f;
    gpushare_stream *stream;
    fixture_start(&f, NULL);
    gpushare_function *kernel = fixture_kernel(&f, "k");
    OK(gpushare_stream_synchronize(f.gpu, NULL));
    OK(gpushare_stream_query(f.gpu, NULL));
    OK(gpushare_synchronize(f.gpu));
    assert_int_equal(fake_count(f.server, PROTO_RING_MAKE), 0);
    fake_refuse(f.server, PROTO_RING_MAKE, PROTO_ERROR_OUT_OF_MEMORY, "no room for the ring");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpushare_launch(kernel, one, one, 0, NULL, NULL),
                         GPUSHARE_ERROR_OUT_OF_MEMORY);
        assert_string_equal(gpushare_error_text(), "no room for the ring");
        OK(gpushare_stream_query(f.gpu, NULL));
    }
    assert_int_equal(gpushare_stream_create(f.gpu, 0, 0, &stream), GPUSHARE_ERROR_OUT_OF_MEMORY);
    assert_string_equal(gpushare_error_text(), "no room for the ring");
    assert_int_equal(fake_count(f.server, PROTO_STREAM_CREATE), 1);
    assert_int_equal(fake_count(f.server, PROTO_STREAM_DESTROY), 1);
    fake_refuse(f.server, PROTO_RING_MAKE, 0, NULL);
    unsigned before = fake_count(f.server, PROTO_RING_MAKE);
    for (int i = 0; i < 3; i++)
        OK(gpushare_launch(kernel, one, one, 0, NULL, NULL));
    OK(gpushare_synchronize(f.gpu));
    assert_int_equal(fake_launches(f.server, 0), 3);
    /* The fake's segment has the rings of all streams, so this one has its own already. */
    OK(gpushare_stream_create(f.gpu, 0, 0, &stream));
    OK(gpushare_launch(kernel, one, one, 0, stream, NULL));
    OK(gpushare_synchronize(f.gpu));
    assert_int_equal(fake_launches(f.server, 0), 4);
    assert_int_equal(fake_count(f.server, PROTO_RING_MAKE), before + 1);
    /* An error of work is told once, as with a stream that had its ring from the start. */
    fake_work_error(f.server, 0, 0, PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(gpushare_launch(kernel, one, one, 0, NULL, NULL),
                     GPUSHARE_ERROR_INVALID_VALUE);
    OK(gpushare_launch(kernel, one, one, 0, NULL, NULL));
    fixture_stop(&f);
}

static void each_thread_has_a_stream_of_its_own(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 3);
    struct own own = {&f, &barrier};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, use_own_stream, &own);
    pthread_barrier_wait(&barrier);
    assert_int_equal(fake_count(f.server, PROTO_STREAM_CREATE), 2);
    assert_int_equal(fake_run(f.server, 0, 1, 9), 2);
    /* They are blocking streams: the default stream waits for the one that is not done. */
    fixture_launch(&f, NULL);
    struct proto_command_wait wait = must_wait(&f, 0);
    assert_int_equal(wait.count, 1);
    assert_int_equal(wait.on[0].stream, 2);
    assert_int_equal(fake_run(f.server, 0, 2, 9), 2);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    /* Gone with their threads. */
    assert_int_equal(fake_count(f.server, PROTO_STREAM_DESTROY), 2);
    pthread_barrier_destroy(&barrier);
    fixture_stop(&f);
}

/* A thread may outlive the connection, and meet another one at the same address. */
static void *outlive(void *context)
{
    struct own *own = context;
    gpushare_function *kernel = fixture_kernel(own->f, "k");
    OK(gpushare_launch(kernel, one, one, 0, GPUSHARE_STREAM_PER_THREAD, NULL));
    pthread_barrier_wait(own->barrier);
    pthread_barrier_wait(own->barrier);
    kernel = fixture_kernel(own->f, "k");
    OK(gpushare_launch(kernel, one, one, 0, GPUSHARE_STREAM_PER_THREAD, NULL));
    OK(gpushare_stream_synchronize(own->f->gpu, GPUSHARE_STREAM_PER_THREAD));
    return NULL;
}

static void thread_outlives_its_connection(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    struct own own = {&f, &barrier};
    pthread_t thread;
    pthread_create(&thread, NULL, outlive, &own);
    pthread_barrier_wait(&barrier);
    gpushare_close(&f.gpu);
    f.gpu = fixture_connect(&f, 0);
    OK(gpushare_module_load(f.gpu, "ptx text", 0, &f.module));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    assert_int_equal(fake_count(f.server, PROTO_STREAM_CREATE), 2);
    assert_int_equal(fake_count(f.server, PROTO_STREAM_DESTROY), 1);
    assert_int_equal(fake_launches(f.server, 1), 1);
    pthread_barrier_destroy(&barrier);
    fixture_stop(&f);
}

static void *end_with_a_stream(void *context)
{
    const struct fixture *f = context;
    fixture_launch(f, GPUSHARE_STREAM_PER_THREAD);
    OK(gpushare_stream_synchronize(f->gpu, GPUSHARE_STREAM_PER_THREAD));
    return NULL;
}

static void *connect_and_close(void *context)
{
    gpushare_connection *gpu = fixture_connect(context, 0);
    gpushare_close(&gpu);
    return NULL;
}

/* The thread gives its stream back, and the server takes its time. */
static void a_thread_that_ends_holds_up_no_other_connection(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t ends, connects;
    fixture_start(&f, NULL);
    fake_hold(f.server, PROTO_STREAM_DESTROY, true);
    pthread_create(&ends, NULL, end_with_a_stream, &f);
    while (fake_held(f.server) == 0)
        usleep(1000);
    pthread_create(&connects, NULL, connect_and_close, &f);
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 10;
    int late = pthread_timedjoin_np(connects, NULL, &end);
    assert_int_equal(fake_held(f.server), 1);
    fake_release(f.server, 1, 0);
    pthread_join(ends, NULL);
    if (late)
        pthread_join(connects, NULL);
    assert_int_equal(late, 0);
    fixture_stop(&f);
}

/* The system call is made for a submitter that sleeps, and only for one. */
static void sleeping_submitter_is_woken_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    assert_int_equal(fake_rings(f.server, 0), 0);
    fixture_launch(&f, NULL);
    assert_int_equal(fake_rings(f.server, 0), 0);
    fake_run(f.server, 0, 0, 9);
    assert_true(fake_sleep(f.server, 0));
    fixture_launch(&f, NULL);
    fixture_launch(&f, NULL);
    assert_int_equal(fake_rings(f.server, 0), 1);
    assert_false(fake_sleep(f.server, 0));
    fixture_stop(&f);
}

static void streams_beyond_the_grant_are_refused_and_come_back(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    gpushare_stream *streams[7], *more;
    for (int i = 0; i < 7; i++)
        OK(gpushare_stream_create(f.gpu, 0, -100, &streams[i]));
    int32_t priority;
    OK(gpushare_stream_priority(f.gpu, streams[0], &priority));
    assert_int_equal(priority, -5);
    assert_int_equal(gpushare_stream_create(f.gpu, 0, 0, &more), GPUSHARE_ERROR_TOO_MANY_OBJECTS);
    /* One that still works when it is destroyed is waited for. */
    fixture_launch(&f, streams[3]);
    OK(gpushare_stream_destroy(streams[3]));
    OK(gpushare_stream_create(f.gpu, 0, 0, &more));
    fixture_launch(&f, more);
    OK(gpushare_stream_synchronize(f.gpu, more));
    assert_int_equal(gpushare_stream_create(f.gpu, 2, 0, &more), GPUSHARE_ERROR_INVALID_VALUE);
    assert_int_equal(gpushare_stream_destroy(GPUSHARE_STREAM_PER_THREAD),
                     GPUSHARE_ERROR_INVALID_HANDLE);
    OK(gpushare_stream_destroy(NULL));
    fixture_stop(&f);
}

/* ---- events ---- */

static void event_orders_two_streams(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_stream *a, *b;
    gpushare_event *event;
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &a));
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &b));
    OK(gpushare_event_create(f.gpu, 0, &event));
    assert_int_equal(fake_count(f.server, PROTO_EVENT_CREATE), 0);
    /* Never recorded: holds up nothing. */
    OK(gpushare_stream_wait_event(f.gpu, b, event));
    OK(gpushare_event_query(event));
    OK(gpushare_event_synchronize(event));
    must_be_empty(&f, 2);
    fixture_launch(&f, a);
    OK(gpushare_event_record(event, a));
    fixture_launch(&f, a);
    assert_int_equal(gpushare_event_query(event), GPUSHARE_ERROR_NOT_READY);
    OK(gpushare_stream_wait_event(f.gpu, a, event));
    OK(gpushare_stream_wait_event(f.gpu, b, event));
    struct proto_command_wait wait = must_wait(&f, 2);
    assert_int_equal(wait.on[0].stream, 1);
    assert_int_equal(wait.on[0].value, 1);
    assert_int_equal(fake_run(f.server, 0, 1, 1), 1);
    OK(gpushare_event_query(event));
    OK(gpushare_event_synchronize(event));
    assert_int_equal(gpushare_stream_query(f.gpu, a), GPUSHARE_ERROR_NOT_READY);
    assert_int_equal(fake_run(f.server, 0, 1, 1), 1);
    OK(gpushare_stream_query(f.gpu, a));
    /* Done: no wait is pushed any more. */
    fake_run(f.server, 0, 2, 1);
    OK(gpushare_stream_wait_event(f.gpu, b, event));
    must_be_empty(&f, 2);
    OK(gpushare_event_destroy(event));
    fixture_stop(&f);
}

static void event_of_the_default_stream_covers_blocking_streams(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_stream *blocking;
    gpushare_event *event;
    OK(gpushare_stream_create(f.gpu, 0, 0, &blocking));
    OK(gpushare_event_create(f.gpu, 0, &event));
    fixture_launch(&f, blocking);
    OK(gpushare_event_record(event, NULL));
    assert_int_equal(must_wait(&f, 0).on[0].stream, 1);
    assert_int_equal(gpushare_event_query(event), GPUSHARE_ERROR_NOT_READY);
    assert_int_equal(gpushare_stream_query(f.gpu, NULL), GPUSHARE_ERROR_NOT_READY);
    fake_run(f.server, 0, 1, 1);
    fake_run(f.server, 0, 0, 1);
    OK(gpushare_event_query(event));
    OK(gpushare_stream_query(f.gpu, NULL));
    fixture_stop(&f);
}

static void query_of_the_default_stream_covers_blocking_streams(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_stream *blocking, *free_stream;
    OK(gpushare_stream_create(f.gpu, 0, 0, &blocking));
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &free_stream));
    fixture_launch(&f, free_stream);
    OK(gpushare_stream_query(f.gpu, NULL));
    fixture_launch(&f, blocking);
    assert_int_equal(gpushare_stream_query(f.gpu, NULL), GPUSHARE_ERROR_NOT_READY);
    fake_run(f.server, 0, 1, 1);
    OK(gpushare_stream_query(f.gpu, NULL));
    assert_int_equal(gpushare_stream_query(f.gpu, free_stream), GPUSHARE_ERROR_NOT_READY);
    fake_run(f.server, 0, 2, 1);
    fixture_stop(&f);
}

static void events_take_times(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_event *start, *end, *plain;
    double milliseconds = 0;
    OK(gpushare_event_create(f.gpu, GPUSHARE_EVENT_TIMING, &start));
    OK(gpushare_event_create(f.gpu, GPUSHARE_EVENT_TIMING, &end));
    OK(gpushare_event_create(f.gpu, 0, &plain));
    assert_int_equal(gpushare_event_elapsed(start, end, &milliseconds),
                     GPUSHARE_ERROR_INVALID_HANDLE);
    OK(gpushare_event_record(start, NULL));
    OK(gpushare_event_record(end, NULL));
    OK(gpushare_event_record(plain, NULL));
    struct ring_descriptor descriptor;
    assert_string_equal(fixture_next(&f, 0, &descriptor), "event_record");
    assert_int_equal(fake_run(f.server, 0, 0, 1), 1);
    assert_int_equal(gpushare_event_elapsed(start, end, &milliseconds), GPUSHARE_ERROR_NOT_READY);
    usleep(2000);
    assert_int_equal(fake_run(f.server, 0, 0, 1), 1);
    OK(gpushare_event_elapsed(start, end, &milliseconds));
    assert_true(milliseconds >= 2.0 && milliseconds < 10000.0);
    double backwards;
    OK(gpushare_event_elapsed(end, start, &backwards));
    assert_true(backwards == -milliseconds);
    assert_int_equal(gpushare_event_elapsed(start, plain, &milliseconds),
                     GPUSHARE_ERROR_INVALID_HANDLE);
    OK(gpushare_event_destroy(start));
    OK(gpushare_event_destroy(NULL));
    fixture_stop(&f);
}

/* ---- errors of work ---- */

static void error_of_work_is_reported_once_on_its_stream(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    gpushare_stream *a, *b;
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &a));
    OK(gpushare_stream_create(f.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &b));
    fixture_launch(&f, a);
    OK(gpushare_stream_synchronize(f.gpu, a));
    fake_work_error(f.server, 0, 1, PROTO_ERROR_LAUNCH_OUT_OF_RESOURCES);
    fixture_launch(&f, b);
    OK(gpushare_stream_synchronize(f.gpu, b));
    assert_int_equal(gpushare_launch(fixture_kernel(&f, "k"), one, one, 0, a, NULL),
                     GPUSHARE_ERROR_LAUNCH_OUT_OF_RESOURCES);
    fixture_launch(&f, a);
    OK(gpushare_stream_synchronize(f.gpu, a));
    assert_int_equal(fake_launches(f.server, 0), 3);
    fake_work_error(f.server, 0, 1, PROTO_ERROR_INVALID_HANDLE);
    assert_int_equal(gpushare_synchronize(f.gpu), GPUSHARE_ERROR_INVALID_HANDLE);
    OK(gpushare_synchronize(f.gpu));
    fixture_stop(&f);
}

static void streams_of_another_connection_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    gpushare_connection *other = fixture_connect(&f, 0);
    gpushare_stream *foreign;
    OK(gpushare_stream_create(other, 0, 0, &foreign));
    assert_int_equal(gpushare_launch(fixture_kernel(&f, "k"), one, one, 0, foreign, NULL),
                     GPUSHARE_ERROR_INVALID_HANDLE);
    assert_int_equal(gpushare_stream_synchronize(f.gpu, foreign), GPUSHARE_ERROR_INVALID_HANDLE);
    gpushare_close(&other);
    fixture_stop(&f);
}

static void event_of_another_connection_is_waited_for_by_link(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &by_hand);
    gpushare_connection *other = fixture_connect(&f, 0);
    gpushare_event *event;
    gpushare_address memory;
    OK(gpushare_memory_alloc(other, 64, &memory));
    OK(gpushare_fill_async(other, memory, 0, 1, 64, NULL));
    OK(gpushare_event_create(other, 0, &event));
    OK(gpushare_event_record(event, NULL));
    OK(gpushare_stream_wait_event(f.gpu, NULL, event));
    OK(gpushare_stream_wait_event(f.gpu, NULL, event));
    assert_int_equal(fake_count(f.server, PROTO_LINK), 1);
    struct proto_command_wait wait = must_wait(&f, 0);
    assert_int_equal(wait.on[0].stream, 0);
    assert_int_equal(wait.on[0].link, 1);
    assert_int_equal(wait.on[0].value, 1);
    assert_int_equal(fake_run(f.server, 0, 0, 9), 0);
    assert_int_equal(fake_run(f.server, 1, 0, 9), 1);
    assert_int_equal(fake_run(f.server, 0, 0, 9), 2);
    gpushare_close(&other);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launch_fills_the_descriptor),
        cmocka_unit_test(function_describes_its_parameters),
        cmocka_unit_test(launches_beyond_the_device_are_refused_at_once),
        cmocka_unit_test(long_parameters_wrap_in_the_arena),
        cmocka_unit_test(full_ring_waits_for_room),
        cmocka_unit_test(full_arena_waits_for_room),
        cmocka_unit_test(two_threads_on_one_stream_lose_nothing),
        cmocka_unit_test(default_stream_waits_for_blocking_streams),
        cmocka_unit_test(blocking_stream_waits_for_the_default_stream_once),
        cmocka_unit_test(destroyed_stream_still_holds_the_default_stream),
        cmocka_unit_test(a_ring_is_asked_for_when_it_is_needed),
        cmocka_unit_test(each_thread_has_a_stream_of_its_own),
        cmocka_unit_test(thread_outlives_its_connection),
        cmocka_unit_test(a_thread_that_ends_holds_up_no_other_connection),
        cmocka_unit_test(sleeping_submitter_is_woken_once),
        cmocka_unit_test(streams_beyond_the_grant_are_refused_and_come_back),
        cmocka_unit_test(event_orders_two_streams),
        cmocka_unit_test(event_of_the_default_stream_covers_blocking_streams),
        cmocka_unit_test(query_of_the_default_stream_covers_blocking_streams),
        cmocka_unit_test(events_take_times),
        cmocka_unit_test(error_of_work_is_reported_once_on_its_stream),
        cmocka_unit_test(streams_of_another_connection_are_refused),
        cmocka_unit_test(event_of_another_connection_is_waited_for_by_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
