/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Requests of several threads on one connection: each thread gets its own reply, in whatever order
 * the server answers, and every thread learns when the connection ends.
 */
#include "common/clock.h"
#include "tests/unit/client/fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 40 };

/* One thread and what it asks for. */
struct asker {
    struct fixture *f;
    gpushare_function *kernel, *function;
    unsigned index;
    gpushare_error error;
    char text[400];
    gpushare_address memory;
    void *buffer;
    uint32_t blocks;
    pthread_t thread;
};

static gpushare_error ask(struct asker *a)
{
    switch (a->index % 4) {
    case 0:
        return gpushare_memory_alloc(a->f->gpu, (a->index + 1) * 4096, &a->memory);
    case 1:
        return gpushare_host_alloc(a->f->gpu, (a->index + 1) * 4096, &a->buffer);
    case 2:
        return gpushare_occupancy(a->kernel, 1u << a->index, 0, &a->blocks);
    default: {
        /* A kernel whose parameter has as many bytes. */
        char name[32];
        snprintf(name, sizeof name, "k_%u", a->index);
        return gpushare_module_function(a->f->module, name, &a->function);
    }
    }
}

static void *ask_once(void *context)
{
    struct asker *a = context;
    a->error = ask(a);
    snprintf(a->text, sizeof a->text, "%s", gpushare_error_text());
    return NULL;
}

static const uint16_t asked[] = {PROTO_MEMORY_ALLOC, PROTO_HOST_ALLOC, PROTO_OCCUPANCY_GET,
                                 PROTO_FUNCTION_GET};

static void hold_all(struct fake_server *server, bool hold)
{
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        fake_hold(server, asked[i], hold);
}

static void wait_held(struct fake_server *server, unsigned count)
{
    while (fake_held(server) < count)
        usleep(200);
}

static void start(struct asker *a, unsigned index, struct fixture *f, gpushare_function *kernel)
{
    *a = (struct asker){.f = f, .kernel = kernel, .index = index};
    assert_int_equal(pthread_create(&a->thread, NULL, ask_once, a), 0);
}

/* Threads whose requests the server keeps. Two threads ask for kernels of one module, and the
 * second waits in the library until the first has its answer: so many are kept. */
enum { KEPT = THREADS - 1 };

static void start_all(struct asker askers[THREADS], struct fixture *f)
{
    gpushare_function *kernel = fixture_kernel(f, "k");
    hold_all(f->server, true);
    for (unsigned i = 0; i < THREADS; i++)
        start(&askers[i], i, f, kernel);
    wait_held(f->server, KEPT);
}

static void join_all(struct asker askers[THREADS])
{
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(askers[i].thread, NULL);
}

static void a_request_is_answered_while_another_waits(void **state)
{
    (void)state;
    struct fixture f;
    gpushare_address memory;
    gpushare_stream *stream;
    struct asker loader;
    fixture_start(&f, NULL);
    fake_hold(f.server, PROTO_OCCUPANCY_GET, true);
    start(&loader, 2, &f, fixture_kernel(&f, "k"));
    wait_held(f.server, 1);
    OK(gpushare_memory_alloc(f.gpu, 4096, &memory));
    OK(gpushare_memory_free(f.gpu, memory));
    OK(gpushare_stream_create(f.gpu, 0, 0, &stream));
    OK(gpushare_stream_destroy(stream));
    OK(gpushare_connection_error(f.gpu, NULL));
    assert_int_equal(fake_held(f.server), 1);
    fake_release(f.server, 1, 0);
    pthread_join(loader.thread, NULL);
    OK(loader.error);
    assert_int_equal(loader.blocks, 512);
    fixture_stop(&f);
}

/* The fake gives out memory without gaps, so that replies which went to the wrong threads would
 * overlap. Numbers of blocks and bytes of parameters follow from the question. */
static void replies_in_any_order_reach_their_threads(void **state)
{
    (void)state;
    unsigned seed = (unsigned)clock_now();
    print_message("seed %u\n", seed);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct fixture f;
        struct asker askers[THREADS];
        fixture_start(&f, NULL);
        start_all(askers, &f);
        fake_hold(f.server, PROTO_FUNCTION_GET, false);
        fake_release(f.server, THREADS, seed + round);
        join_all(askers);
        uint64_t owned = 0;
        for (unsigned i = 0; i < THREADS; i++) {
            struct asker *a = &askers[i];
            OK(a->error);
            if (i % 4 == 0) {
                for (unsigned other = 0; other < i; other += 4)
                    assert_true(askers[other].memory + (other + 1) * 4096 <= a->memory ||
                                a->memory + (i + 1) * 4096 <= askers[other].memory);
                owned += (i + 1) * 4096;
            } else if (i % 4 == 1) {
                memset(a->buffer, (int)i, (i + 1) * 4096);
            } else if (i % 4 == 2) {
                assert_int_equal(a->blocks, 2048 >> i);
            } else {
                struct gpushare_function_info info = {.size = sizeof info};
                OK(gpushare_function_info(a->function, &info));
                assert_int_equal(info.parameter_bytes, i);
            }
        }
        for (unsigned i = 1; i < THREADS; i += 4)
            for (unsigned byte = 0; byte < (i + 1) * 4096; byte += 512)
                assert_int_equal(((uint8_t *)askers[i].buffer)[byte], i);
        struct gpushare_memory_info info = {.size = sizeof info};
        OK(gpushare_memory_info(f.gpu, &info));
        assert_int_equal(info.used, owned);
        fixture_stop(&f);
    }
}

/* ---- ends ---- */

static void all_end_with(struct asker askers[THREADS], gpushare_error error, const char *text)
{
    join_all(askers);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(askers[i].error, error);
        if (text)
            assert_string_equal(askers[i].text, text);
    }
}

static void a_lost_connection_ends_every_waiting_call(void **state)
{
    (void)state;
    struct fixture f;
    struct asker askers[THREADS];
    fixture_start(&f, NULL);
    start_all(askers, &f);
    fake_drop(f.server, 0);
    all_end_with(askers, GPUSHARE_ERROR_CONNECTION_LOST, NULL);
    fixture_stop(&f);
}

static void the_sentence_reaches_every_waiting_call(void **state)
{
    (void)state;
    struct fixture f;
    struct asker askers[THREADS];
    fixture_start(&f, NULL);
    start_all(askers, &f);
    fake_fault(f.server, 0, PROTO_ERROR_KILLED, "the administrator said so");
    all_end_with(askers, GPUSHARE_ERROR_KILLED, "the administrator said so");
    fixture_stop(&f);
}

/* The server set the fault word, says nothing and keeps the socket open. */
static void a_thread_that_sees_the_fault_wakes_those_that_wait(void **state)
{
    (void)state;
    struct fixture f;
    struct asker askers[THREADS];
    fixture_start(&f, NULL);
    start_all(askers, &f);
    fake_fault(f.server, 0, PROTO_ERROR_WORKER_LOST, NULL);
    assert_int_equal(gpushare_connection_error(f.gpu, NULL), GPUSHARE_ERROR_WORKER_LOST);
    all_end_with(askers, GPUSHARE_ERROR_WORKER_LOST, NULL);
    fixture_stop(&f);
}

/* Plays the trick on one more request while the others wait; that request ends with `own`. */
static void play_before_all(enum fake_trick trick, gpushare_error own)
{
    struct fixture f;
    struct asker askers[THREADS];
    struct gpushare_memory_info info = {.size = sizeof info};
    fixture_start(&f, NULL);
    start_all(askers, &f);
    fake_trick(f.server, PROTO_MEMORY_QUERY, trick);
    assert_int_equal(gpushare_memory_info(f.gpu, &info), own);
    all_end_with(askers, GPUSHARE_ERROR_PROTOCOL_VIOLATION, NULL);
    assert_int_equal(gpushare_memory_info(f.gpu, &info), GPUSHARE_ERROR_PROTOCOL_VIOLATION);
    fixture_stop(&f);
}

/* A server that took over from another sends a reply again that it can't know to have arrived. */
static void a_second_reply_is_dropped(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    struct gpushare_memory_info info = {.size = sizeof info};
    for (int i = 0; i < 3; i++) {
        fake_trick(f.server, PROTO_MEMORY_QUERY, FAKE_TWICE);
        assert_int_equal(gpushare_memory_info(f.gpu, &info), GPUSHARE_SUCCESS);
        assert_int_equal(gpushare_memory_info(f.gpu, &info), GPUSHARE_SUCCESS);
    }
    fixture_stop(&f);
}

static void a_reply_to_no_request_ends_the_connection(void **state)
{
    (void)state;
    play_before_all(FAKE_UNASKED, GPUSHARE_ERROR_PROTOCOL_VIOLATION);
}

static void an_unfit_reply_ends_the_connection(void **state)
{
    (void)state;
    play_before_all(FAKE_WRONG_MESSAGE, GPUSHARE_ERROR_PROTOCOL_VIOLATION);
}

/* ---- bounds and order ---- */

static void no_more_requests_are_sent_than_the_server_takes(void **state)
{
    (void)state;
    enum { MANY = PROTO_REQUESTS_MAX + 6 };
    static struct asker askers[MANY];
    struct fixture f;
    fixture_start(&f, NULL);
    fake_hold(f.server, PROTO_OCCUPANCY_GET, true);
    gpushare_function *kernel = fixture_kernel(&f, "k");
    for (unsigned i = 0; i < MANY; i++)
        start(&askers[i], 2, &f, kernel);
    wait_held(f.server, PROTO_REQUESTS_MAX);
    for (unsigned i = 0; i < 50; i++) {
        usleep(1000);
        assert_int_equal(fake_held(f.server), PROTO_REQUESTS_MAX);
    }
    /* As many as are answered follow. */
    fake_release(f.server, 6, 1);
    wait_held(f.server, PROTO_REQUESTS_MAX);
    fake_hold(f.server, PROTO_OCCUPANCY_GET, false);
    fake_release(f.server, MANY, 2);
    for (unsigned i = 0; i < MANY; i++) {
        pthread_join(askers[i].thread, NULL);
        OK(askers[i].error);
    }
    fixture_stop(&f);
}

struct notices {
    pthread_mutex_t lock;
    unsigned count;
    char texts[64][16];
};

static void take_notice(void *context, const char *text)
{
    struct notices *notices = context;
    pthread_mutex_lock(&notices->lock);
    assert_true(notices->count < 64);
    snprintf(notices->texts[notices->count++], sizeof notices->texts[0], "%s", text);
    pthread_mutex_unlock(&notices->lock);
}

static void notices_keep_their_order_while_threads_take_turns_at_reading(void **state)
{
    (void)state;
    struct notices notices = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct fixture f = {.server = fake_start(NULL)};
    struct asker askers[THREADS];
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = fake_socket(f.server),
                                       .notice = take_notice,
                                       .notice_context = &notices};
    OK(gpushare_connect(&options, &f.gpu));
    OK(gpushare_module_load(f.gpu, "ptx text", 0, &f.module));
    start_all(askers, &f);
    hold_all(f.server, false);
    for (unsigned i = 0; i < 64; i++) {
        char text[16];
        snprintf(text, sizeof text, "notice %u", i);
        fake_notice(f.server, 0, text);
        /* Then another thread reads. One is left to read the last notices. */
        if (i % 9 == 8 && fake_held(f.server) > 1)
            fake_release(f.server, 1, i);
    }
    fake_release(f.server, THREADS, 3);
    join_all(askers);
    for (unsigned i = 0; i < THREADS; i++)
        OK(askers[i].error);
    assert_int_equal(notices.count, 64);
    for (unsigned i = 0; i < 64; i++) {
        char text[16];
        snprintf(text, sizeof text, "notice %u", i);
        assert_string_equal(notices.texts[i], text);
    }
    fixture_stop(&f);
}

/* ---- fork and cancellation ---- */

static void a_fork_leaves_waiting_threads_to_the_parent(void **state)
{
    (void)state;
    struct fixture f;
    struct asker askers[THREADS];
    struct gpushare_memory_info info = {.size = sizeof info};
    fixture_start(&f, NULL);
    start_all(askers, &f);
    pid_t child = fork();
    if (child == 0) {
        bool refused = gpushare_memory_info(f.gpu, &info) == GPUSHARE_ERROR_NOT_INITIALIZED;
        gpushare_close(&f.gpu);
        _exit(refused ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    hold_all(f.server, false);
    fake_release(f.server, THREADS, 4);
    join_all(askers);
    for (unsigned i = 0; i < THREADS; i++)
        OK(askers[i].error);
    fixture_stop(&f);
}

static void a_cancelled_thread_ends_its_call_first(void **state)
{
    (void)state;
    struct fixture f;
    struct asker first, second;
    fixture_start(&f, NULL);
    fake_hold(f.server, PROTO_OCCUPANCY_GET, true);
    gpushare_function *kernel = fixture_kernel(&f, "k");
    start(&first, 2, &f, kernel);
    wait_held(f.server, 1);
    start(&second, 2, &f, kernel);
    wait_held(f.server, 2);
    /* The first one reads the socket for both. */
    assert_int_equal(pthread_cancel(first.thread), 0);
    fake_release(f.server, 2, 5);
    pthread_join(first.thread, NULL);
    pthread_join(second.thread, NULL);
    OK(second.error);
    assert_int_equal(first.blocks, 512);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_answered_while_another_waits),
        cmocka_unit_test(replies_in_any_order_reach_their_threads),
        cmocka_unit_test(a_lost_connection_ends_every_waiting_call),
        cmocka_unit_test(the_sentence_reaches_every_waiting_call),
        cmocka_unit_test(a_thread_that_sees_the_fault_wakes_those_that_wait),
        cmocka_unit_test(a_second_reply_is_dropped),
        cmocka_unit_test(a_reply_to_no_request_ends_the_connection),
        cmocka_unit_test(an_unfit_reply_ends_the_connection),
        cmocka_unit_test(no_more_requests_are_sent_than_the_server_takes),
        cmocka_unit_test(notices_keep_their_order_while_threads_take_turns_at_reading),
        cmocka_unit_test(a_fork_leaves_waiting_threads_to_the_parent),
        cmocka_unit_test(a_cancelled_thread_ends_its_call_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
