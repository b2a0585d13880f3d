/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/messages.h"
#include "server/worker/calls/activity.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/code/module_load.h"
#include "server/worker/worker.h"

static const struct {
    const char *name; /* of the threads; the kernel allows 15 letters */
    unsigned threads;
} loaders[] = {
    [LOADER_MODULES] = {"loader", CODE_MEMORY_LOADS},
    [LOADER_MEMORY] = {"clearer", 1},
};

static bool is_working(const struct loader *loader, const struct client *client)
{
    for (unsigned i = 0; i < CODE_MEMORY_LOADS; i++)
        if (loader->working[i] == client)
            return true;
    return false;
}

static bool is_earlier(const struct loader *loader, const struct loader_job *one,
                       const struct loader_job *other)
{
    uint64_t turn = owner_turns_last(&loader->owners, one->caller.owner);
    uint64_t others = owner_turns_last(&loader->owners, other->caller.owner);
    if (turn != others)
        return turn < others;
    return one->client->loader_turns[loader->which] < other->client->loader_turns[loader->which];
}

/* Takes the next job of the client that was served longest ago and has no job at work, of the owner
 * that was served longest ago. Jobs of one client are taken in their order. Under the lock. */
static struct loader_job *take_next(struct loader *loader)
{
    enum loader_which which = loader->which;
    struct loader_job *job, *best = NULL;
    QUEUE_FOR_EACH (job, &loader->queued, link) {
        if (is_working(loader, job->client) ||
            (job->compiles &&
             compiler_works(&loader->worker->compiler, job->caller.owner, &job->text)))
            continue;
        if (!best || is_earlier(loader, job, best))
            best = job;
    }
    if (!best)
        return NULL;
    queue_remove(&loader->queued, &best->link);
    owner_turns_take(&loader->owners, best->caller.owner);
    best->client->loader_turns[which] = ++loader->turn;
    return best;
}

static void run_job(struct worker *worker, struct loader_job *job, const atomic_bool *gone)
{
    struct quiet_calls *calls = &worker->quiet_calls;
    const struct code_seat seat = {.compiler = &worker->compiler,
                                   .known = &worker->known_images,
                                   .gone = gone,
                                   .calls = calls,
                                   .caller = &job->caller,
                                   .awaited = &job->text};
    const struct module_load_target target = {.client = job->client,
                                              .module = job->module,
                                              .seat = &seat,
                                              .global_base = job->global_base,
                                              .again = job->again};
    if (job->kind == LOADER_CLEAR)
        job->error = client_memory_clear(job->client, calls, job->address, job->count, &job->why);
    else if (job->kind == LOADER_INSPECT)
        job->error = module_load_inspect(&target, job->fd, job->count, &job->needs, &job->why);
    else
        job->error = module_load_make(&target, &job->functions, &job->why);
}

/* Before the later jobs of its client. Under the lock. */
static void put_back(struct loader *loader, struct loader_job *job)
{
    job->compiles = true;
    job->error = 0;
    queue_prepend(&loader->queued, &job->link);
}

/* A text is no longer at the compiler, so a job that waited for that may go on. */
static void compiler_ended(void *context)
{
    struct loader *loader = context;
    pthread_mutex_lock(&loader->lock);
    pthread_cond_signal(&loader->more);
    pthread_mutex_unlock(&loader->lock);
}

static void *loader_main(void *argument)
{
    struct loader *loader = argument;
    pthread_mutex_lock(&loader->lock);
    unsigned self = loader->started++;
    pthread_mutex_unlock(&loader->lock);
    activity_begin(loader->which == LOADER_MEMORY ? ACTIVITY_CLEARER
                   : self == 0                    ? ACTIVITY_LOADER
                                                  : ACTIVITY_LOADER_SECOND);
    cuda_result entered = gpu_enter(&loader->worker->gpu);
    if (entered != CUDA_OK)
        worker_fail(loader->worker, entered, CONTEXT_LOSS_ENTERING);
    pthread_mutex_lock(&loader->lock);
    while (!loader->stop) {
        struct loader_job *job = take_next(loader);
        if (!job) {
            pthread_cond_wait(&loader->more, &loader->lock);
            continue;
        }
        loader->working[self] = job->client;
        atomic_store(&loader->gone[self], false);
        pthread_mutex_unlock(&loader->lock);
        run_job(loader->worker, job, &loader->gone[self]);
        pthread_mutex_lock(&loader->lock);
        loader->working[self] = NULL;
        /* Perhaps by this client, which no thread could serve until now. */
        if (!queue_is_empty(&loader->queued))
            pthread_cond_signal(&loader->more);
        if (job->error == MODULE_LOAD_LATER) {
            put_back(loader, job);
            continue;
        }
        queue_append(&loader->done, &job->link);
        wake_control(&loader->worker->wake);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

uint32_t loader_start(struct loader *loader, struct worker *worker, enum loader_which which,
                      struct error *why)
{
    *loader = (struct loader){.worker = worker, .which = which};
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->more, NULL);
    if (which == LOADER_MODULES) {
        worker->compiler.ended = compiler_ended;
        worker->compiler.context = loader;
    }
    for (unsigned i = 0; i < loaders[which].threads; i++) {
        int error = thread_start(&loader->threads[i], loaders[which].name, loader_main, loader);
        if (error) {
            loader_stop(loader);
            return error_set(why, MESSAGE(loader_thread), loaders[which].name, strerror(error));
        }
    }
    return 0;
}

static void drop_job(struct loader_job *job)
{
    if (job->module)
        client_module_set_busy(job->module, false);
    job->client->control.loading--;
    if (job->fd >= 0)
        close(job->fd);
    free(job);
}

static void drop_jobs(struct queue *jobs)
{
    struct loader_job *job;
    while ((job = QUEUE_TAKE(jobs, struct loader_job, link)))
        drop_job(job);
}

void loader_stop(struct loader *loader)
{
    if (!loader->worker)
        return;
    if (loader->which == LOADER_MODULES)
        compiler_stop(&loader->worker->compiler);
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    for (unsigned i = 0; i < CODE_MEMORY_LOADS; i++)
        atomic_store(&loader->gone[i], true);
    pthread_cond_broadcast(&loader->more);
    pthread_mutex_unlock(&loader->lock);
    for (unsigned i = 0; i < CODE_MEMORY_LOADS; i++)
        thread_join(&loader->threads[i]);
    loader->worker = NULL;
    drop_jobs(&loader->queued);
    drop_jobs(&loader->done);
}

void loader_close(struct loader *loader)
{
    pthread_cond_destroy(&loader->more);
    pthread_mutex_destroy(&loader->lock);
}

void loader_submit(struct loader *loader, struct loader_job *job)
{
    job->client->control.loading++;
    if (job->module)
        client_module_set_busy(job->module, true);
    pthread_mutex_lock(&loader->lock);
    bool stopped = loader->stop;
    if (!stopped)
        queue_append(&loader->queued, &job->link);
    pthread_cond_signal(&loader->more);
    pthread_mutex_unlock(&loader->lock);
    if (stopped)
        drop_job(job);
}

struct loader_job *loader_collect(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    struct loader_job *job = QUEUE_TAKE(&loader->done, struct loader_job, link);
    pthread_mutex_unlock(&loader->lock);
    if (!job)
        return NULL;
    if (job->module)
        client_module_set_busy(job->module, false);
    job->client->control.loading--;
    return job;
}

/* Whether a job of another client waits for this text. Under the lock. */
static bool is_awaited(const struct loader *loader, const struct code_name *text)
{
    const struct loader_job *job;
    QUEUE_FOR_EACH (job, &loader->queued, link)
        if (job->compiles && code_name_equal(&job->text, text))
            return true;
    return false;
}

void loader_forget(struct loader *loader, struct client *client)
{
    struct code_name text;
    struct compiler *compiler = &loader->worker->compiler;
    pthread_mutex_lock(&loader->lock);
    for (unsigned i = 0; i < CODE_MEMORY_LOADS; i++)
        if (loader->working[i] == client)
            atomic_store(&loader->gone[i], true);
    struct loader_job *job;
    struct queue all = loader->queued, gone = {.first = NULL};
    loader->queued = gone;
    while ((job = QUEUE_TAKE(&all, struct loader_job, link)))
        queue_append(job->client == client ? &gone : &loader->queued, &job->link);
    if (loader->which == LOADER_MODULES && compiler_text_of(compiler, client->number, &text) &&
        !is_awaited(loader, &text))
        compiler_abandon(compiler, client->number);
    pthread_mutex_unlock(&loader->lock);
    drop_jobs(&gone);
}
