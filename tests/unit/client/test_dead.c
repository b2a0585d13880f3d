/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Every call on a connection that has ended, in every way it can end: an error, at once. */
#include "tests/unit/client/fixture.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

/* Everything that a call may need, made while the connection lived. */
struct things {
    struct fixture f;
    gpushare_function *kernel;
    gpushare_stream *stream;
    gpushare_event *event, *timed;
    gpushare_address memory, spare;
    void *buffer;
};

static void things_start(struct things *t, bool manual)
{
    fixture_start(&t->f, &(struct fake_options){.manual = manual});
    t->kernel = fixture_kernel(&t->f, "k");
    OK(gpushare_stream_create(t->f.gpu, 0, 0, &t->stream));
    OK(gpushare_event_create(t->f.gpu, 0, &t->event));
    OK(gpushare_event_create(t->f.gpu, GPUSHARE_EVENT_TIMING, &t->timed));
    OK(gpushare_memory_alloc(t->f.gpu, 4096, &t->memory));
    OK(gpushare_memory_alloc(t->f.gpu, 4096, &t->spare));
    OK(gpushare_host_alloc(t->f.gpu, 4096, &t->buffer));
}

typedef gpushare_error call(struct things *t);

static gpushare_error c_limits(struct things *t)
{
    struct gpushare_limits limits = {.size = sizeof limits};
    return gpushare_limits(t->f.gpu, &limits);
}
static gpushare_error c_device(struct things *t)
{
    struct gpushare_device device = {.size = sizeof device};
    return gpushare_device(t->f.gpu, &device);
}
static gpushare_error c_alloc(struct things *t)
{
    gpushare_address address;
    return gpushare_memory_alloc(t->f.gpu, 64, &address);
}
static gpushare_error c_free(struct things *t)
{
    return gpushare_memory_free(t->f.gpu, t->spare);
}
static gpushare_error c_info(struct things *t)
{
    struct gpushare_memory_info info = {.size = sizeof info};
    return gpushare_memory_info(t->f.gpu, &info);
}
static gpushare_error c_host_alloc(struct things *t)
{
    void *buffer;
    return gpushare_host_alloc(t->f.gpu, 64, &buffer);
}
static gpushare_error c_load(struct things *t)
{
    gpushare_module *module;
    return gpushare_module_load(t->f.gpu, "ptx text", 0, &module);
}
static gpushare_error c_function(struct things *t)
{
    gpushare_function *function;
    return gpushare_module_function(t->f.module, "k_4", &function);
}
static gpushare_error c_variable(struct things *t)
{
    return gpushare_module_variable(t->f.module, "variable", NULL, NULL);
}
static gpushare_error c_set_shared(struct things *t)
{
    return gpushare_function_set_shared(t->kernel, 64);
}
static gpushare_error c_occupancy(struct things *t)
{
    uint32_t blocks;
    return gpushare_occupancy(t->kernel, 32, 0, &blocks);
}
static gpushare_error c_launch(struct things *t)
{
    return gpushare_launch(t->kernel, one, one, 0, t->stream, NULL);
}
static gpushare_error c_launch_packed(struct things *t)
{
    return gpushare_launch_packed(t->kernel, one, one, 0, NULL, NULL, 0);
}
static gpushare_error c_stream_create(struct things *t)
{
    gpushare_stream *stream;
    return gpushare_stream_create(t->f.gpu, 0, 0, &stream);
}
static gpushare_error c_own_stream(struct things *t)
{
    return gpushare_launch(t->kernel, one, one, 0, GPUSHARE_STREAM_PER_THREAD, NULL);
}
static gpushare_error c_stream_synchronize(struct things *t)
{
    return gpushare_stream_synchronize(t->f.gpu, t->stream);
}
static gpushare_error c_stream_query(struct things *t)
{
    return gpushare_stream_query(t->f.gpu, t->stream);
}
static gpushare_error c_wait_event(struct things *t)
{
    return gpushare_stream_wait_event(t->f.gpu, t->stream, t->event);
}
static gpushare_error c_synchronize(struct things *t)
{
    return gpushare_synchronize(t->f.gpu);
}
static gpushare_error c_copy_in(struct things *t)
{
    return gpushare_copy_to_device(t->f.gpu, t->memory, "ordinary", 8);
}
static gpushare_error c_copy_out(struct things *t)
{
    char ordinary[8];
    return gpushare_copy_from_device(t->f.gpu, ordinary, t->memory, 8);
}
static gpushare_error c_copy_shared(struct things *t)
{
    return gpushare_copy_to_device_async(t->f.gpu, t->memory, t->buffer, 8, NULL);
}
static gpushare_error c_copy(struct things *t)
{
    return gpushare_copy(t->f.gpu, t->memory, t->memory + 64, 8);
}
static gpushare_error c_copy_peer(struct things *t)
{
    return gpushare_copy_peer(t->f.gpu, t->memory, t->f.gpu, t->memory + 64, 8);
}
static gpushare_error c_fill(struct things *t)
{
    return gpushare_fill(t->f.gpu, t->memory, 0, 4, 8);
}
static gpushare_error c_event_create(struct things *t)
{
    gpushare_event *event;
    return gpushare_event_create(t->f.gpu, GPUSHARE_EVENT_TIMING, &event);
}
static gpushare_error c_record(struct things *t)
{
    return gpushare_event_record(t->timed, t->stream);
}
static gpushare_error c_event_query(struct things *t)
{
    return gpushare_event_query(t->event);
}
static gpushare_error c_event_synchronize(struct things *t)
{
    return gpushare_event_synchronize(t->event);
}
static gpushare_error c_elapsed(struct things *t)
{
    double milliseconds;
    return gpushare_event_elapsed(t->timed, t->timed, &milliseconds);
}

/* ask: the request that it makes, 0 if it asks the server nothing. */
static const struct {
    const char *name;
    call *call;
    uint16_t ask;
} calls[] = {
    {"limits", c_limits, PROTO_LIMITS_QUERY},
    {"device", c_device, 0},
    {"memory_alloc", c_alloc, PROTO_MEMORY_ALLOC},
    {"memory_free", c_free, PROTO_MEMORY_FREE},
    {"memory_info", c_info, PROTO_MEMORY_QUERY},
    {"host_alloc", c_host_alloc, PROTO_HOST_ALLOC},
    {"module_load", c_load, PROTO_MODULE_LOAD},
    {"module_function", c_function, PROTO_FUNCTION_GET},
    {"module_variable", c_variable, PROTO_GLOBAL_GET},
    {"function_set_shared", c_set_shared, PROTO_FUNCTION_SET},
    {"occupancy", c_occupancy, PROTO_OCCUPANCY_GET},
    {"launch", c_launch, 0},
    {"launch_packed", c_launch_packed, 0},
    {"stream_create", c_stream_create, PROTO_STREAM_CREATE},
    {"launch, own stream", c_own_stream, PROTO_STREAM_CREATE},
    {"stream_synchronize", c_stream_synchronize, 0},
    {"stream_query", c_stream_query, 0},
    {"stream_wait_event", c_wait_event, 0},
    {"synchronize", c_synchronize, 0},
    {"copy_to_device", c_copy_in, PROTO_HOST_ALLOC},
    {"copy_from_device", c_copy_out, PROTO_HOST_ALLOC},
    {"copy_to_device, shared", c_copy_shared, 0},
    {"copy", c_copy, 0},
    {"copy_peer", c_copy_peer, 0},
    {"fill", c_fill, 0},
    {"event_create", c_event_create, PROTO_EVENT_CREATE},
    {"event_record", c_record, 0},
    {"event_query", c_event_query, 0},
    {"event_synchronize", c_event_synchronize, 0},
    {"event_elapsed", c_elapsed, 0},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void all_fail(struct things *t, gpushare_error error, const char *text)
{
    for (int i = 0; i < CALLS; i++) {
        gpushare_error got = calls[i].call(t);
        if (got != error)
            print_error("%s: %s\n", calls[i].name, gpushare_error_name(got));
        assert_int_equal(got, error);
        if (text)
            assert_string_equal(gpushare_error_text(), text);
    }
    const char *why = NULL;
    assert_int_equal(gpushare_connection_error(t->f.gpu, &why), error);
    if (text)
        assert_string_equal(why, text);
}

static void living_connection_has_no_error(void **state)
{
    (void)state;
    struct things t;
    const char *text = NULL;
    things_start(&t, false);
    OK(gpushare_connection_error(t.f.gpu, &text));
    assert_string_equal(text, "");
    for (int i = 0; i < CALLS; i++) {
        gpushare_error got = calls[i].call(&t);
        /* The one that times an event needs a record that is done. */
        if (calls[i].call == c_elapsed)
            continue;
        if (got)
            print_error("%s: %s: %s\n", calls[i].name, gpushare_error_name(got),
                        gpushare_error_text());
        assert_int_equal(got, GPUSHARE_SUCCESS);
    }
    fixture_stop(&t.f);
}

static void fault_word_ends_every_call(void **state)
{
    (void)state;
    struct things t;
    things_start(&t, false);
    fake_fault(t.f.server, 0, PROTO_ERROR_ILLEGAL_ADDRESS, NULL);
    all_fail(&t, GPUSHARE_ERROR_ILLEGAL_ADDRESS, NULL);
    fixture_stop(&t.f);
}

static void words_of_the_server_reach_every_call(void **state)
{
    (void)state;
    struct things t;
    things_start(&t, false);
    fake_fault(t.f.server, 0, PROTO_ERROR_KILLED, "the administrator said so");
    all_fail(&t, GPUSHARE_ERROR_KILLED, "the administrator said so");
    fixture_stop(&t.f);
}

/* The first call that asks meets the end; from then on every one fails, asking or not. */
static void connection_lost_at_each_request(void **state)
{
    (void)state;
    static const struct {
        enum fake_trick trick;
        gpushare_error error;
    } ways[] = {{FAKE_HANG_UP, GPUSHARE_ERROR_CONNECTION_LOST},
                {FAKE_END, GPUSHARE_ERROR_KILLED},
                {FAKE_WRONG_MESSAGE, GPUSHARE_ERROR_PROTOCOL_VIOLATION},
                {FAKE_GARBAGE, GPUSHARE_ERROR_PROTOCOL_VIOLATION}};
    for (int i = 0; i < CALLS; i++) {
        for (size_t w = 0; w < sizeof ways / sizeof ways[0] && calls[i].ask; w++) {
            struct things t;
            things_start(&t, false);
            fake_trick(t.f.server, calls[i].ask, ways[w].trick);
            gpushare_error got = calls[i].call(&t);
            if (got != ways[w].error)
                print_error("%s: %s\n", calls[i].name, gpushare_error_name(got));
            assert_int_equal(got, ways[w].error);
            assert_int_equal(c_launch(&t), ways[w].error);
            assert_int_equal(c_synchronize(&t), ways[w].error);
            fixture_stop(&t.f);
        }
    }
}

static void refused_requests_leave_the_connection_alive(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        if (!calls[i].ask)
            continue;
        struct things t;
        things_start(&t, false);
        fake_refuse(t.f.server, calls[i].ask, PROTO_ERROR_NOT_PERMITTED, "not by you");
        assert_int_equal(calls[i].call(&t), GPUSHARE_ERROR_NOT_PERMITTED);
        assert_non_null(strstr(gpushare_error_text(), "not by you"));
        fake_refuse(t.f.server, calls[i].ask, 0, NULL);
        OK(calls[i].call(&t));
        fixture_stop(&t.f);
    }
}

/* ---- ends that come while a thread waits ---- */

struct waiter {
    struct things *t;
    call *call;
    gpushare_error error;
};

static void *wait_in_call(void *context)
{
    struct waiter *w = context;
    w->error = w->call(w->t);
    return NULL;
}

static gpushare_error fill_the_ring(struct things *t)
{
    gpushare_error error = GPUSHARE_SUCCESS;
    for (int i = 0; i < 2000 && !error; i++)
        error = c_launch(t);
    return error;
}

static gpushare_error launch_and_wait(struct things *t)
{
    gpushare_error error = c_launch(t);
    return error ? error : c_stream_synchronize(t);
}

static gpushare_error record_and_wait(struct things *t)
{
    gpushare_error error = c_launch(t);
    if (!error)
        error = gpushare_event_record(t->event, t->stream);
    return error ? error : c_event_synchronize(t);
}

static gpushare_error launch_and_wait_for_all(struct things *t)
{
    gpushare_error error = c_launch(t);
    return error ? error : c_synchronize(t);
}

static call *const waits[] = {fill_the_ring,           launch_and_wait, record_and_wait,
                              launch_and_wait_for_all, c_copy_in,       c_copy_out};

/* Nobody takes the ring's work in these: the call waits until the end comes. */
static void wait_for_the_end(void (*end)(struct things *), gpushare_error error)
{
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct things t;
        things_start(&t, true);
        struct waiter w = {&t, waits[i], GPUSHARE_SUCCESS};
        pthread_t thread;
        pthread_create(&thread, NULL, wait_in_call, &w);
        usleep(30000);
        end(&t);
        pthread_join(thread, NULL);
        assert_int_equal(w.error, error);
        fixture_stop(&t.f);
    }
}

static void end_by_fault(struct things *t)
{
    fake_fault(t->f.server, 0, PROTO_ERROR_WORKER_LOST, NULL);
}

/* The server dies without a word: no fault word, no wake-up, only the socket's end. */
static void end_by_death(struct things *t)
{
    fake_drop(t->f.server, 0);
}

static void fault_wakes_every_waiting_thread(void **state)
{
    (void)state;
    wait_for_the_end(end_by_fault, GPUSHARE_ERROR_WORKER_LOST);
}

static void waiting_threads_notice_the_death_of_the_server(void **state)
{
    (void)state;
    wait_for_the_end(end_by_death, GPUSHARE_ERROR_CONNECTION_LOST);
}

static void idle_client_sees_the_end_when_it_looks(void **state)
{
    (void)state;
    struct things t;
    things_start(&t, false);
    fake_drop(t.f.server, 0);
    assert_int_equal(gpushare_connection_error(t.f.gpu, NULL), GPUSHARE_ERROR_CONNECTION_LOST);
    assert_int_equal(c_launch(&t), GPUSHARE_ERROR_CONNECTION_LOST);
    fixture_stop(&t.f);
}

static void null_handles_are_refused(void **state)
{
    (void)state;
    const gpushare_error none = GPUSHARE_ERROR_NOT_INITIALIZED;
    const gpushare_error handle = GPUSHARE_ERROR_INVALID_HANDLE;
    gpushare_address address;
    assert_int_equal(gpushare_memory_alloc(NULL, 1, &address), none);
    assert_int_equal(gpushare_memory_free(NULL, 0), none);
    assert_int_equal(gpushare_synchronize(NULL), none);
    assert_int_equal(gpushare_copy(NULL, 0, 0, 0), none);
    assert_int_equal(gpushare_stream_query(NULL, NULL), none);
    assert_int_equal(gpushare_connection_error(NULL, NULL), none);
    assert_int_equal(gpushare_module_variable(NULL, "v", NULL, NULL), handle);
    assert_int_equal(gpushare_occupancy(NULL, 1, 0, NULL), handle);
    assert_int_equal(gpushare_event_query(NULL), handle);
    assert_int_equal(gpushare_event_record(NULL, NULL), handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(living_connection_has_no_error),
        cmocka_unit_test(fault_word_ends_every_call),
        cmocka_unit_test(words_of_the_server_reach_every_call),
        cmocka_unit_test(connection_lost_at_each_request),
        cmocka_unit_test(refused_requests_leave_the_connection_alive),
        cmocka_unit_test(fault_wakes_every_waiting_thread),
        cmocka_unit_test(waiting_threads_notice_the_death_of_the_server),
        cmocka_unit_test(idle_client_sees_the_end_when_it_looks),
        cmocka_unit_test(null_handles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
