/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/recovery/honest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/recovery/culprit.h"
#include "tests/programs/recovery/honest_private.h"
#include "tests/support/patience.h"

enum { FAILED = 3, CONNECT_SECONDS = 60 };

void honest_fail(const struct honest *honest, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(honest->page->words, PAGE_WORDS, format, arguments);
    va_end(arguments);
    atomic_store(&honest->page->failed, 1);
    _exit(FAILED);
}

void honest_must(const struct honest *honest, gpushare_error error, const char *call)
{
    if (error != GPUSHARE_SUCCESS)
        honest_fail(honest, "%s: %s: %s", call, gpushare_error_name(error), gpushare_error_text());
}

unsigned honest_draw(struct honest *honest, unsigned bound)
{
    return (unsigned)rand_r(&honest->random) % bound;
}

void honest_phase(const struct honest *honest, enum phase phase)
{
    atomic_store(&honest->page->phase, (uint32_t)phase);
}

/* The default stream was interrupted, if the worker was lost while it copied. */
static bool is_over(const struct honest *honest, gpushare_error error, const char *what)
{
    if (error == GPUSHARE_ERROR_INTERRUPTED) {
        MUST(honest, gpushare_stream_recover(honest->gpu, NULL, NULL));
        return false;
    }
    honest_must(honest, error, what);
    return true;
}

void honest_fetch(const struct honest *honest, void *to, gpushare_address from, uint64_t bytes)
{
    while (!is_over(honest, gpushare_copy_from_device(honest->gpu, to, from, bytes), "fetch"))
        ;
}

void honest_store(const struct honest *honest, gpushare_address to, const void *from,
                  uint64_t bytes)
{
    while (!is_over(honest, gpushare_copy_to_device(honest->gpu, to, from, bytes), "store"))
        ;
}

/* ---- how it begins ---- */

/* A worker that follows one that was lost is still starting, or its user has to wait for its
 * faults: the server says so. */
static gpushare_error try_to_connect(struct honest *honest)
{
    char name[32];
    snprintf(name, sizeof name, "client-%d", honest->spec->me);
    struct gpushare_options options = {
        .size = sizeof options, .socket = honest->spec->socket, .name = name};
    struct gpushare_limits limits = {.size = sizeof limits};
    gpushare_error error = gpushare_connect(&options, &honest->gpu);
    if (error == GPUSHARE_ERROR_DEVICE_NOT_READY) {
        usleep(2000);
        return error;
    }
    honest_must(honest, error, "gpushare_connect");
    MUST(honest, gpushare_limits(honest->gpu, &limits));
    atomic_store(&honest->page->client, limits.client);
    return error;
}

static void connect_to_server(struct honest *honest)
{
    gpushare_error error = GPUSHARE_ERROR_DEVICE_NOT_READY;
    honest_phase(honest, PHASE_connecting);
    for (int left = (int)(patience_seconds(CONNECT_SECONDS) * 500);
         left > 0 && error == GPUSHARE_ERROR_DEVICE_NOT_READY; left--)
        error = try_to_connect(honest);
    honest_must(honest, error, "gpushare_connect");
}

static void make_memory(struct honest *honest)
{
    const uint64_t slots = sizeof honest->expected, counts = 4 * STEPS;
    uint32_t zeros[STEPS] = {0};
    void *buffer;
    MUST(honest, gpushare_memory_alloc(honest->gpu, slots + counts + 8, &honest->slots));
    honest->counts = honest->slots + slots;
    honest->stamp = honest->counts + counts;
    honest_store(honest, honest->slots, honest->state, sizeof honest->state);
    honest_store(honest, honest->counts, zeros, sizeof zeros);
    honest_store(honest, honest->stamp, zeros, 8);
    atomic_store(&honest->page->stamp, honest->stamp);
    MUST(honest, gpushare_host_alloc(honest->gpu, sizeof *honest->results * STEPS, &buffer));
    honest->results = buffer;
    MUST(honest, gpushare_host_alloc(honest->gpu, 4 * STILL, &buffer));
    honest->still_host = buffer;
    for (uint32_t i = 0; i < STILL; i++)
        honest->still_host[i] = honest->spec->seed * i;
    MUST(honest, gpushare_memory_alloc(honest->gpu, 4 * STILL, &honest->still));
    honest_store(honest, honest->still, honest->still_host, 4 * STILL);
}

static void load_module(struct honest *honest)
{
    uint64_t size;
    honest_phase(honest, PHASE_loading);
    MUST(honest, gpushare_module_load(honest->gpu, recovery_ptx, 0, &honest->module));
    MUST(honest, gpushare_module_function(honest->module, "step", &honest->step));
    MUST(honest, gpushare_module_variable(honest->module, "total", &honest->total, &size));
    honest->sum = 1000;
}

static void begin(struct honest *honest, const struct honest_spec *spec)
{
    *honest = (struct honest){.spec = spec, .page = &spec->pages[spec->me], .random = spec->seed};
    for (uint32_t i = 0; i < WORDS; i++)
        honest->state[i] = spec->seed + i;
    connect_to_server(honest);
    load_module(honest);
    make_memory(honest);
    for (int i = 0; i < 3; i++)
        MUST(honest, gpushare_stream_create(honest->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0,
                                            &honest->streams[i]));
    for (int i = 0; i < STEPS; i++) {
        MUST(honest, gpushare_event_create(honest->gpu, 0, &honest->stepped[i]));
        MUST(honest, gpushare_event_create(honest->gpu, 0, &honest->copied[i]));
    }
}

static _Noreturn void leave(struct honest *honest)
{
    honest_phase(honest, PHASE_leaving);
    gpushare_close(&honest->gpu);
    _exit(0);
}

/* ---- what it does ---- */

static void run_batch(struct honest *honest)
{
    gpushare_error error = batch_push(honest, 1 + (int)honest_draw(honest, STEPS));
    if (error == GPUSHARE_SUCCESS)
        error = batch_wait(honest);
    if (error != GPUSHARE_ERROR_INTERRUPTED)
        honest_must(honest, error, "a batch");
    batch_settle(honest, error != GPUSHARE_SUCCESS);
}

static void check_still(struct honest *honest)
{
    static uint32_t found[STILL];
    honest_phase(honest, PHASE_checking);
    honest_fetch(honest, found, honest->still, sizeof found);
    for (uint32_t i = 0; i < STILL; i++)
        if (found[i] != honest->spec->seed * i || honest->still_host[i] != found[i])
            honest_fail(honest, "word %u of memory that nobody writes is %#x, in a buffer %#x", i,
                        found[i], honest->still_host[i]);
}

static uint32_t count_busy(const struct honest *honest)
{
    uint32_t busy = 0;
    for (int i = 0; i < honest->spec->count; i++)
        if (i != honest->spec->me)
            busy += atomic_load(&honest->spec->pages[i].in_flight);
    return busy;
}

static gpushare_error launch_one(const struct honest *honest, gpushare_module *module,
                                 const char *kernel, void *const parameters[])
{
    static const struct gpushare_dim one = {1, 1, 1};
    gpushare_function *function;
    MUST(honest, gpushare_module_function(module, kernel, &function));
    return gpushare_launch(function, one, one, 0, honest->streams[0], parameters);
}

/* Waits until so many others have work in flight, for a second at most: how many had is counted. */
static void await_company(const struct honest *honest, uint32_t company)
{
    for (int left = 20000; left > 0 && count_busy(honest) < company; left--)
        usleep(50);
}

/* Unloads the module that was lost with a worker, unless *module is NULL, and loads it. */
static void load_faults(const struct honest *honest, gpushare_module **module)
{
    if (*module)
        MUST(honest, gpushare_module_unload(*module));
    MUST(honest, gpushare_module_load(honest->gpu, faults_ptx, 0, module));
}

/* Faults until the server says whose kernel it was: at once, or after it was a suspect. */
static _Noreturn void fault(struct honest *honest)
{
    struct page *page = honest->page;
    const char *kernel = culprits[atomic_load(&page->kind)].kernel;
    gpushare_error error = GPUSHARE_ERROR_INTERRUPTED;
    gpushare_module *module = NULL;
    while (error == GPUSHARE_ERROR_INTERRUPTED && atomic_load(&page->faults) < 3) {
        load_faults(honest, &module);
        if (atomic_load(&page->faults) == 0)
            await_company(honest, atomic_load(&page->company));
        error = batch_push(honest, (int)honest_draw(honest, 3));
        if (atomic_load(&page->faults) == 0) {
            /* Others' batches can have ended while this one was pushed. */
            await_company(honest, atomic_load(&page->company));
            atomic_store(&page->beside, count_busy(honest));
        }
        if (error == GPUSHARE_SUCCESS)
            error = launch_one(honest, module, kernel, NULL);
        if (error == GPUSHARE_SUCCESS)
            error = batch_wait(honest);
        atomic_fetch_add(&page->faults, 1);
        if (error == GPUSHARE_ERROR_INTERRUPTED)
            batch_settle(honest, true);
    }
    snprintf(page->words, PAGE_WORDS, "%s", gpushare_error_text());
    atomic_store(&page->verdict, (uint32_t)error);
    leave(honest);
}

void honest_run(const struct honest_spec *spec)
{
    struct honest honest;
    begin(&honest, spec);
    for (uint64_t round = 1;; round++) {
        switch (atomic_load(&honest.page->order)) {
        case ORDER_LEAVE:
            check_still(&honest);
            leave(&honest);
        case ORDER_FAULT:
            fault(&honest);
        case ORDER_REST:
            honest_phase(&honest, PHASE_resting);
            usleep(200);
            continue;
        default:
            break;
        }
        run_batch(&honest);
        if (round % 4 == 0)
            errand_run(&honest);
        if (round % 16 == 0)
            check_still(&honest);
    }
}

void honest_storm(const struct honest_spec *spec)
{
    struct honest honest = {.spec = spec, .page = &spec->pages[spec->me], .random = spec->seed};
    while (atomic_load(&honest.page->order) != ORDER_LEAVE) {
        /* Its user's wait doubles with each fault, beyond any patience. */
        if (try_to_connect(&honest) != GPUSHARE_SUCCESS)
            continue;
        MUST(&honest, gpushare_stream_create(honest.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0,
                                             &honest.streams[0]));
        gpushare_error error = GPUSHARE_ERROR_INTERRUPTED;
        gpushare_module *module = NULL;
        while (error == GPUSHARE_ERROR_INTERRUPTED) {
            MUST(&honest, gpushare_stream_recover(honest.gpu, honest.streams[0], NULL));
            const char *kernel = culprits[honest_draw(&honest, CULPRITS)].kernel;
            atomic_fetch_add(&honest.page->batches, 1);
            load_faults(&honest, &module);
            error = launch_one(&honest, module, kernel, NULL);
            if (error == GPUSHARE_SUCCESS)
                error = gpushare_synchronize(honest.gpu);
        }
        if (error == GPUSHARE_SUCCESS)
            honest_fail(&honest, "a kernel that faults was finished");
        atomic_fetch_add(&honest.page->faults, 1);
        gpushare_close(&honest.gpu);
    }
    _exit(0);
}

/* The addresses at which the others' kernels count down to their end. */
static uint32_t find_stamps(const struct honest *honest, gpushare_address *stamps)
{
    uint32_t count = 0;
    for (int i = 0; i < honest->spec->count; i++)
        if (i != honest->spec->me && atomic_load(&honest->spec->pages[i].stamp))
            stamps[count++] = atomic_load(&honest->spec->pages[i].stamp);
    return count;
}

void honest_company(const struct honest_spec *spec)
{
    struct honest honest;
    gpushare_address stamps[PAGES_MAX];
    begin(&honest, spec);
    uint32_t count = find_stamps(&honest, stamps), times = 100;
    gpushare_address list = honest.still;
    void *parameters[] = {&list, &count, &times};
    honest_store(&honest, list, stamps, sizeof stamps);
    while (atomic_load(&honest.page->order) != ORDER_LEAVE) {
        gpushare_error error = launch_one(&honest, honest.module, "company", parameters);
        if (error == GPUSHARE_SUCCESS)
            error = gpushare_synchronize(honest.gpu);
        if (error == GPUSHARE_ERROR_INTERRUPTED) {
            atomic_fetch_add(&honest.page->faults, 1);
            error = gpushare_stream_recover(honest.gpu, honest.streams[0], NULL);
        }
        honest_must(&honest, error, "a kernel that faults in company only");
        atomic_fetch_add(&honest.page->batches, 1);
    }
    leave(&honest);
}
