/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* draining: without locks, for if mapping waited, nobody could connect beside the endless kernel */
/*
 * Threads that ask the server at the same time, on one connection: a call that waits keeps no
 * other from being answered, and each thread gets what is its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/endless.h"
#include "tests/support/kernels.h"
#include "tests/support/ok.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

static struct server *server;

static int setup(void **state)
{
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100", NULL};
    *state = server = server_start(NULL, env);
    return 0;
}

/* ---- one call that waits ---- */

struct load {
    gpushare_connection *gpu;
    atomic_bool over;
    pthread_t thread;
};

static void *load_module(void *context)
{
    struct load *load = context;
    arrival_load(load->gpu, kernels_ptx, "milliseconds");
    atomic_store(&load->over, true);
    return NULL;
}

/* Starts a load that waits for other clients' kernels. A load that came before they ran is over at
 * once, and another one is started. */
static void start_waiting_load(struct load *load, gpushare_connection *gpu)
{
    struct gpushare_load_wait wait = {.size = sizeof wait};
    *load = (struct load){.gpu = gpu};
    do {
        if (atomic_exchange(&load->over, false))
            pthread_join(load->thread, NULL);
        assert_int_equal(pthread_create(&load->thread, NULL, load_module, load), 0);
        do {
            usleep(1000);
            OK(gpushare_load_wait(gpu, &wait));
        } while (!wait.client && !atomic_load(&load->over));
    } while (atomic_load(&load->over));
}

static void other_threads_are_served_while_a_load_waits(void **state)
{
    (void)state;
    struct endless endless;
    struct load load;
    struct gpushare_dim one = {1, 1, 1};
    uint32_t milliseconds = 1;
    void *parameters[] = {&milliseconds};
    gpushare_address memory;
    void *buffer;
    gpushare_stream *stream;
    gpushare_event *begun, *ended;
    double elapsed;
    uint32_t blocks;
    gpushare_connection *gpu = arrival_connect(server, 0);
    gpushare_function *function = arrival_load(gpu, kernels_ptx, "milliseconds");
    endless_prepare(&endless, arrival_connect(server, 0));
    endless_start(&endless, 1, 1);
    start_waiting_load(&load, gpu);

    OK(gpushare_memory_alloc(gpu, 8 << 20, &memory));
    OK(gpushare_memory_free(gpu, memory));
    OK(gpushare_host_alloc(gpu, 1 << 20, &buffer));
    OK(gpushare_host_free(gpu, buffer));
    OK(gpushare_stream_create(gpu, 0, 0, &stream));
    OK(gpushare_stream_destroy(stream));
    OK(gpushare_event_create(gpu, GPUSHARE_EVENT_TIMING, &begun));
    OK(gpushare_event_create(gpu, GPUSHARE_EVENT_TIMING, &ended));
    OK(gpushare_event_record(begun, NULL));
    OK(gpushare_launch(function, one, one, 0, NULL, parameters));
    OK(gpushare_event_record(ended, NULL));
    OK(gpushare_synchronize(gpu));
    OK(gpushare_event_elapsed(begun, ended, &elapsed));
    OK(gpushare_event_destroy(begun));
    OK(gpushare_event_destroy(ended));
    OK(gpushare_occupancy(function, 32, 0, &blocks));
    OK(gpushare_connection_error(gpu, NULL));
    /* The kernel has not been told to end. */
    assert_false(atomic_load(&load.over));
    endless_end(&endless);
    pthread_join(load.thread, NULL);
    gpushare_close(&gpu);
}

/* ---- one ring that is full ---- */

enum { BLOCKING = 12 };

struct filling {
    struct endless endless; /* its kernel is in the blocking streams */
    gpushare_stream *blocking[BLOCKING];
    atomic_uint pushed;
    pthread_t thread;
};

/* In a round the default stream gets a launch behind four waits, for what is new in the blocking
 * streams. Each of those gets a wait and a launch, so the default stream's ring is full first. */
static void *fill_default_stream(void *context)
{
    struct filling *filling = context;
    struct gpushare_dim one = {1, 1, 1};
    uint64_t word = (uint64_t)(uintptr_t)filling->endless.word;
    void *parameters[] = {&word};
    while (!atomic_load(filling->endless.word)) {
        for (unsigned i = 0; i < BLOCKING; i++)
            OK(gpushare_launch(filling->endless.function, one, one, 0, filling->blocking[i],
                               parameters));
        OK(gpushare_launch(filling->endless.function, one, one, 0, NULL, parameters));
        atomic_fetch_add(&filling->pushed, 1);
    }
    return NULL;
}

static void await_full_ring(struct filling *filling)
{
    enum { LOOKS = 30 };
    for (unsigned same = 0, seen = 0; same < LOOKS; same++) {
        unsigned now = atomic_load(&filling->pushed);
        if (now != seen || !now)
            same = 0;
        seen = now;
        usleep(10000);
    }
}

/* first: commands before the rounds. Of two numbers of them, one has a wait find the ring full. */
static void streams_are_made_beside_a_full_default_stream(unsigned first)
{
    struct filling filling = {.pushed = 0};
    gpushare_stream *other;
    gpushare_connection *gpu = arrival_connect(server, 0);
    endless_prepare(&filling.endless, gpu);
    for (unsigned i = 0; i < BLOCKING; i++)
        OK(gpushare_stream_create(gpu, 0, 0, &filling.blocking[i]));
    for (unsigned i = 0; i < first; i++)
        endless_start(&filling.endless, 1, 1);
    assert_int_equal(pthread_create(&filling.thread, NULL, fill_default_stream, &filling), 0);
    await_full_ring(&filling);
    OK(gpushare_stream_create(gpu, 0, 0, &other));
    OK(gpushare_stream_destroy(other));
    /* The kernels have not been told to end. */
    assert_int_equal(gpushare_stream_query(gpu, filling.blocking[0]), GPUSHARE_ERROR_NOT_READY);
    atomic_store(filling.endless.word, 1);
    pthread_join(filling.thread, NULL);
    endless_end(&filling.endless);
}

static void a_full_default_stream_keeps_no_other_thread(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++)
        streams_are_made_beside_a_full_default_stream(first);
}

/* ---- many calls at a time ---- */

enum { THREADS = 8, ROUNDS = 2, STEPS = 60, OWNED = 8, LOADS = 3, LIVE = THREADS * OWNED };

struct range {
    uint64_t address, bytes;
};

/* The oracle: all memory that the threads have now. */
static struct {
    pthread_mutex_t lock;
    struct range live[LIVE];
    unsigned count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct asker {
    gpushare_connection *gpu;
    unsigned index, seed, loads;
    struct range device[OWNED];
    uint32_t marks[OWNED]; /* the word in each */
    uint8_t *host[OWNED];
    pthread_t thread;
};

static void need(bool holds, const char *what, const struct asker *a)
{
    if (holds)
        return;
    fprintf(stderr, "thread %u: %s; %s\n", a->index, what, gpushare_error_text());
    abort();
}

/* The server gave the range out, and nobody who has it gave it back. */
static void enter_range(struct asker *a, struct range range)
{
    pthread_mutex_lock(&table.lock);
    for (unsigned i = 0; i < table.count; i++)
        need(table.live[i].address + table.live[i].bytes <= range.address ||
                 range.address + range.bytes <= table.live[i].address,
             "memory that another thread has", a);
    table.live[table.count++] = range;
    pthread_mutex_unlock(&table.lock);
}

/* Before the server is asked to take it back: another thread may get it at once. */
static void leave_range(struct range range)
{
    pthread_mutex_lock(&table.lock);
    for (unsigned i = 0; i < table.count; i++)
        if (table.live[i].address == range.address) {
            table.live[i] = table.live[--table.count];
            break;
        }
    pthread_mutex_unlock(&table.lock);
}

static unsigned draw(struct asker *a, unsigned below)
{
    return (unsigned)rand_r(&a->seed) % below;
}

/* Fills or empties one of the thread's places for device memory. */
static void use_device(struct asker *a)
{
    unsigned place = draw(a, OWNED);
    struct range *range = &a->device[place];
    if (!range->bytes) {
        uint64_t bytes = 4 + draw(a, draw(a, 8) ? 64 << 10 : 3 << 20);
        gpushare_address address;
        OK(gpushare_memory_alloc(a->gpu, bytes, &address));
        *range = (struct range){address, bytes};
        enter_range(a, *range);
        a->marks[place] = (uint32_t)rand_r(&a->seed);
        OK(gpushare_copy_to_device(a->gpu, address + bytes - 4, &a->marks[place], 4));
        return;
    }
    uint32_t mark;
    OK(gpushare_copy_from_device(a->gpu, &mark, range->address + range->bytes - 4, 4));
    need(mark == a->marks[place], "another value than was written", a);
    leave_range(*range);
    OK(gpushare_memory_free(a->gpu, range->address));
    range->bytes = 0;
}

static void use_host(struct asker *a)
{
    unsigned place = draw(a, OWNED);
    if (!a->host[place]) {
        void *buffer;
        OK(gpushare_host_alloc(a->gpu, 4096, &buffer));
        a->host[place] = buffer;
        memset(buffer, (int)(a->index * OWNED + place), 4096);
        return;
    }
    for (unsigned i = 0; i < 4096; i += 64)
        need(a->host[place][i] == a->index * OWNED + place, "another thread's buffer", a);
    OK(gpushare_host_free(a->gpu, a->host[place]));
    a->host[place] = NULL;
}

/* A module whose variable has a value of its own, and a kernel that it lacks. */
static void use_module(struct asker *a)
{
    char text[256], name[64];
    uint32_t value = (uint32_t)rand_r(&a->seed), found;
    uint64_t bytes;
    gpushare_address address;
    gpushare_module *module;
    gpushare_function *function;
    if (a->loads++ >= LOADS)
        return;
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_70\n.address_size 64\n"
             ".visible .global .align 4 .u32 value = %u;\n.visible .entry k%u()\n{\n\tret;\n}\n",
             value, value);
    OK(gpushare_module_load(a->gpu, text, 0, &module));
    OK(gpushare_module_variable(module, "value", &address, &bytes));
    OK(gpushare_copy_from_device(a->gpu, &found, address, 4));
    need(bytes == 4 && found == value, "another module's variable", a);
    snprintf(name, sizeof name, "k%u", value);
    OK(gpushare_module_function(module, name, &function));
    snprintf(name, sizeof name, "missing_%u_%u", a->index, value);
    need(gpushare_module_function(module, name, &function) == GPUSHARE_ERROR_NOT_FOUND &&
             strstr(gpushare_error_text(), name),
         "a refusal that is another thread's", a);
    OK(gpushare_module_unload(module));
}

static void use_stream(struct asker *a)
{
    gpushare_stream *stream;
    gpushare_event *event;
    OK(gpushare_stream_create(a->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    OK(gpushare_event_create(a->gpu, GPUSHARE_EVENT_TIMING, &event));
    OK(gpushare_event_record(event, stream));
    OK(gpushare_event_synchronize(event));
    OK(gpushare_event_destroy(event));
    OK(gpushare_stream_destroy(stream));
}

static void use_questions(struct asker *a)
{
    struct gpushare_memory_info info = {.size = sizeof info};
    uint64_t own = 0;
    OK(gpushare_memory_info(a->gpu, &info));
    for (unsigned i = 0; i < OWNED; i++)
        own += a->device[i].bytes;
    need(info.used >= own && info.used <= info.limit, "less memory in use than this thread has", a);
}

static void *ask_at_random(void *context)
{
    static void (*const uses[])(struct asker *) = {use_device, use_device, use_device,   use_host,
                                                   use_module, use_stream, use_questions};
    struct asker *a = context;
    for (unsigned i = 0; i < STEPS; i++)
        uses[draw(a, sizeof uses / sizeof *uses)](a);
    return NULL;
}

static void threads_that_ask_at_random_get_their_own(void **state)
{
    (void)state;
    static struct asker askers[THREADS];
    unsigned seed = seed_draw();
    for (unsigned round = 0; round < ROUNDS; round++) {
        gpushare_connection *gpu = arrival_connect(server, 0);
        table.count = 0;
        for (unsigned i = 0; i < THREADS; i++) {
            askers[i] = (struct asker){.gpu = gpu, .index = i, .seed = seed + round * THREADS + i};
            assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_at_random, &askers[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(askers[i].thread, NULL);
        OK(gpushare_connection_error(gpu, NULL));
        gpushare_close(&gpu);
    }
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(other_threads_are_served_while_a_load_waits, setup,
                                        server_teardown),
        cmocka_unit_test_setup_teardown(a_full_default_stream_keeps_no_other_thread, setup,
                                        server_teardown),
        cmocka_unit_test_setup_teardown(threads_that_ask_at_random_get_their_own, setup,
                                        server_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
