/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_wait.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/base/driver_thread.h"
#include "client/engine/connection.h"
#include "client/engine/copy.h"
#include "client/engine/memory.h"
#include "client/engine/recovery.h"
#include "client/engine/stream.h"
#include "common/clock.h"
#include "common/list.h"
#include "common/units.h"
#include "common/util.h"

/* ns. A wait that is over soon is seen soon, and one that lasts costs a wake-up each millisecond.
 * While streams of the process get on, the value may come at any moment. */
enum { PAUSE_FIRST = 20000, PAUSE_BUSY = 100000, PAUSE_LONGEST = 1000000 };

/* A wait that is the first in its stream has a gate, which is a stream too. */
enum { PROBES_MAX = PROTO_STREAMS_MAX / 2 };

struct wait {
    struct list_link link; /* in its gate */
    struct memory_hold hold;
    struct stream_value wanted;
    enum memory_kind kind;
    uint64_t before; /* the stream's value that its work before the wait reaches */
    bool probed;     /* device memory was looked at, at least once */
    bool met;        /* by the last look at device memory */
};

/* Commands are pushed in the order of the waits, so those of a gate belong to one stream of the
 * program at a time. A stream may have several gates. */
struct gate {
    struct list_link link; /* in its watch */
    struct gpushare_stream *stream;
    uint64_t named; /* value of the latest command that a wait names; it may not be pushed yet */
    unsigned users; /* waits, and threads that are about to add one */
    uint32_t of;    /* while there are users: the program's stream */
    struct list waits;
};

/* The waits on one connection. */
struct watch {
    struct list_link link;
    gpushare_connection *connection;
    struct list gates;
    struct gpushare_stream *probe; /* NULL before device memory is first waited for */
    uint64_t *words;               /* of a host buffer, where the probe's copies arrive */
    struct wait *asked[PROBES_MAX];
    unsigned asked_count; /* copies that are under way; asked[i] is NULL if its wait is over */
    uint64_t asked_value; /* of the last of them */
    uint64_t progress;    /* of all streams before the latest copies */
};

/* Guards all below. A thread that has it takes the registry's and `lists`, and no stream's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* there is a new wait */
static pthread_cond_t rested;  /* `looking` has ended */
static struct list watches = LIST_INIT(watches);
static unsigned pending; /* waits */
static bool fresh;       /* one came since the last look */
static bool looking;     /* the thread is at it, which lets go of the lock meanwhile */
static bool started;

/* ---- progress ---- */

struct progress {
    uint64_t sum; /* of what all streams have reached */
    bool running; /* some stream may have work that runs */
};

static bool is_stuck(const gpushare_connection *connection, uint32_t index, uint64_t reached)
{
    const struct watch *watch;
    const struct gate *gate;
    LIST_FOR_EACH (watch, &watches, link) {
        if (watch->connection != connection)
            continue;
        LIST_FOR_EACH (gate, &watch->gates, link) {
            const struct wait *wait = LIST_FIRST(&gate->waits, struct wait, link);
            if (wait && gate->of == index && wait->before == reached)
                return true;
        }
    }
    return false;
}

static bool is_probe(const struct gpushare_stream *stream)
{
    const struct watch *watch;
    LIST_FOR_EACH (watch, &watches, link)
        if (watch->probe == stream)
            return true;
    return false;
}

static uint64_t reached_by(const struct gpushare_stream *stream)
{
    return shared_word_read(&stream->producer.ring.status->completed);
}

static void add_stream(struct progress *progress, const struct gpushare_stream *stream)
{
    uint64_t last = stream_last(stream), reached = reached_by(stream);
    if (is_probe(stream))
        return;
    progress->sum += reached;
    progress->running |= reached < last && !is_stuck(stream->connection, stream->index, reached);
}

static void add_connection(struct progress *progress, gpushare_connection *connection)
{
    const struct gpushare_stream *stream;
    pthread_mutex_lock(&connection->lists);
    add_stream(progress, connection->default_stream);
    LIST_FOR_EACH (stream, &connection->streams, in_connection)
        add_stream(progress, stream);
    pthread_mutex_unlock(&connection->lists);
}

/* Of all connections: a stream of another device may copy to this one. */
static struct progress find_progress(void)
{
    struct progress progress = {0};
    gpushare_connection *connection;
    uint64_t id = 0;
    while ((connection = connection_hold_next(id))) {
        id = connection->id;
        add_connection(&progress, connection);
        connection_release(connection);
    }
    return progress;
}

/* ---- the end of a wait ---- */

/* A worker that was lost with the gate's latest command in flight has interrupted the gate. Later
 * values are named already, so they have to be reached. */
static gpushare_error begin_recovered(struct gpushare_stream *stream)
{
    gpushare_error error;
    while ((error = stream_begin(stream)) == GPUSHARE_ERROR_INTERRUPTED) {
        struct gpushare_recovery lost = {0};
        if (recovery_ask(stream, &lost))
            break;
    }
    return error;
}

static void open_gate(struct gpushare_stream *stream)
{
    if (begin_recovered(stream))
        return;
    (void)stream_push_nothing(stream);
    stream_end(stream);
}

static void forget_copy(struct watch *watch, const struct wait *wait)
{
    for (unsigned i = 0; i < watch->asked_count; i++)
        if (watch->asked[i] == wait)
            watch->asked[i] = NULL;
}

/* Without the lock while the server may be asked. */
static void end_wait(struct watch *watch, struct gate *gate, struct wait *wait, bool go_on)
{
    list_remove(&wait->link);
    forget_copy(watch, wait);
    pthread_mutex_unlock(&lock);
    if (go_on)
        open_gate(gate->stream);
    memory_let_go(watch->connection, &wait->hold);
    free(wait);
    pthread_mutex_lock(&lock);
    gate->users--;
    pending--;
}

/* Returns whether there was any. */
static bool end_all(struct watch *watch)
{
    struct gate *gate;
    struct wait *wait;
    bool any = false;
    LIST_FOR_EACH (gate, &watch->gates, link)
        LIST_FOR_EACH (wait, &gate->waits, link) {
            end_wait(watch, gate, wait, false);
            any = true;
        }
    return any;
}

/* ---- looking ---- */

static uint64_t read_buffer(const struct stream_value *wanted)
{
    const void *at = (const void *)(uintptr_t)wanted->address;
    return wanted->width == 4 ? shared_word_read((const uint32_t *)at)
                              : shared_word_read((const uint64_t *)at);
}

/* Whether the work before the wait is done, so that the value counts. */
static bool is_due(const struct watch *watch, const struct gate *gate, const struct wait *wait)
{
    return stream_has_reached(watch->connection, gate->of, wait->before);
}

/* A stream whose work was lost drops the command that waits, and is behind it then. */
static bool is_over(const struct watch *watch, const struct gate *gate, const struct wait *wait)
{
    if (stream_has_reached(watch->connection, gate->of, wait->before + 1))
        return true;
    if (!is_due(watch, gate, wait))
        return false;
    return wait->kind == MEMORY_HOST ? stream_value_met(&wait->wanted, read_buffer(&wait->wanted))
                                     : wait->met;
}

/* Without the lock while it waits for the server. */
static void recover_probe(struct watch *watch)
{
    pthread_mutex_unlock(&lock);
    if (!begin_recovered(watch->probe))
        stream_end(watch->probe);
    pthread_mutex_lock(&lock);
}

/* Takes what the copies have brought. Those that were lost with a worker are made again. */
static void take_copies(struct watch *watch)
{
    uint32_t index = watch->asked_count ? watch->probe->index : 0;
    if (!watch->asked_count || !stream_has_reached(watch->connection, index, watch->asked_value))
        return;
    unsigned count = watch->asked_count;
    watch->asked_count = 0;
    if (stream_has_lost(watch->connection, index, watch->asked_value)) {
        watch->progress = 0;
        recover_probe(watch);
        return;
    }
    for (unsigned i = 0; i < count; i++)
        if (watch->asked[i])
            watch->asked[i]->met =
                stream_value_met(&watch->asked[i]->wanted, shared_word_read(&watch->words[i]));
}

/* The waits for device memory that are due. Returns whether one is new. */
static bool collect(struct watch *watch)
{
    const struct gate *gate;
    bool any_new = false;
    LIST_FOR_EACH (gate, &watch->gates, link) {
        struct wait *wait = LIST_FIRST(&gate->waits, struct wait, link);
        if (!wait || wait->kind != MEMORY_DEVICE || !is_due(watch, gate, wait) ||
            watch->asked_count == PROBES_MAX)
            continue;
        any_new |= !wait->probed;
        watch->asked[watch->asked_count++] = wait;
    }
    return any_new;
}

/* Without the lock. */
static gpushare_error push_copies(struct watch *watch)
{
    gpushare_error error = begin_recovered(watch->probe);
    if (error)
        return error;
    stream_end(watch->probe);
    for (unsigned i = 0; i < watch->asked_count && !error; i++)
        error = copy_submit_held(watch->probe, (uint64_t)(uintptr_t)&watch->words[i],
                                 watch->asked[i]->wanted.address, watch->asked[i]->wanted.width,
                                 &watch->asked_value);
    return error;
}

/* The progress is found before the copies are pushed: what ends meanwhile has them made again. */
static void ask_copies(struct watch *watch, const struct progress *progress)
{
    if (watch->asked_count)
        return;
    bool any_new = collect(watch);
    bool worth = any_new || progress->running || progress->sum != watch->progress;
    if (!watch->asked_count || !worth) {
        watch->asked_count = 0;
        return;
    }
    watch->progress = progress->sum;
    for (unsigned i = 0; i < watch->asked_count; i++)
        watch->asked[i]->probed = true;
    pthread_mutex_unlock(&lock);
    gpushare_error error = push_copies(watch);
    pthread_mutex_lock(&lock);
    if (!error)
        return;
    watch->asked_count = 0;
    watch->progress = 0;
}

/* Returns whether a wait was over. */
static bool look_at(struct watch *watch, const struct progress *progress)
{
    bool any = false;
    struct gate *gate;
    if (connection_check(watch->connection)) {
        (void)end_all(watch);
        return false;
    }
    take_copies(watch);
    LIST_FOR_EACH (gate, &watch->gates, link) {
        struct wait *wait;
        LIST_FOR_EACH (wait, &gate->waits, link) {
            if (!is_over(watch, gate, wait))
                break;
            end_wait(watch, gate, wait, true);
            any = true;
        }
    }
    ask_copies(watch, progress);
    return any;
}

/* Returns the pause until the next look. */
static uint64_t look(uint64_t pause)
{
    static uint64_t seen;
    const struct progress progress = find_progress();
    bool any = fresh, moved = progress.sum != seen;
    struct watch *watch;
    seen = progress.sum;
    fresh = false;
    looking = true;
    LIST_FOR_EACH (watch, &watches, link)
        any |= look_at(watch, &progress);
    looking = false;
    pthread_cond_broadcast(&rested);
    pause = any ? (uint64_t)PAUSE_FIRST : pause + pause / 4;
    return min(pause, moved ? (uint64_t)PAUSE_BUSY : (uint64_t)PAUSE_LONGEST);
}

/* ---- the thread ---- */

/* With the lock, which it has again when it returns. */
static void sleep_for(uint64_t pause)
{
    uint64_t until = clock_now() + pause;
    const struct timespec at = {.tv_sec = (time_t)(until / UNITS_SECOND),
                                .tv_nsec = (long)(until % UNITS_SECOND)};
    (void)pthread_cond_timedwait(&changed, &lock, &at);
}

/* Ends with the process, as the one for functions does. */
static void *main_of_thread(void *unused)
{
    uint64_t pause = PAUSE_FIRST;
    (void)unused;
    /* The usual slack of 50 us is more than the first pauses. */
    (void)prctl(PR_SET_TIMERSLACK, 1000UL);
    pthread_mutex_lock(&lock);
    for (;;) {
        if (!pending)
            pthread_cond_wait(&changed, &lock);
        else
            sleep_for(pause);
        if (pending)
            pause = look(pause);
    }
    return NULL;
}

/* With the lock. */
static cuda_result start(void)
{
    pthread_condattr_t monotonic;
    if (started)
        return CUDA_OK;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&rested, NULL);
    DRIVER_TRY(driver_thread_start("gpushare-wait", main_of_thread));
    started = true;
    return CUDA_OK;
}

/* ---- the callers ---- */

/* With the lock. NULL: there is none yet, or no memory for one. */
static struct watch *find_watch(gpushare_connection *connection, bool make)
{
    struct watch *watch;
    LIST_FOR_EACH (watch, &watches, link)
        if (watch->connection == connection)
            return watch;
    watch = make ? calloc(1, sizeof *watch) : NULL;
    if (!watch)
        return NULL;
    watch->connection = connection;
    list_init(&watch->gates);
    list_append(&watches, &watch->link);
    return watch;
}

/* Opens a stream of this module's, with its ring: the thread must not have to ask for that, since
 * others may have `lists`. */
static gpushare_error open_stream(gpushare_connection *connection, struct gpushare_stream **stream)
{
    gpushare_error error = stream_open(connection, GPUSHARE_STREAM_NON_BLOCKING, 0, stream);
    if (error)
        return error;
    error = stream_begin(*stream);
    if (error) {
        (void)stream_retire(*stream);
        return error;
    }
    stream_end(*stream);
    return GPUSHARE_SUCCESS;
}

/* The server is asked under `making`, so that two threads make one probe. */
static cuda_result make_probe(struct watch *watch)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    struct gpushare_stream *probe = NULL;
    gpushare_error error = GPUSHARE_SUCCESS;
    pthread_mutex_lock(&making);
    void *words = watch->words;
    if (!words)
        error = memory_buffer_alloc(watch->connection, PROBES_MAX * sizeof *watch->words, &words);
    if (!error && !watch->probe)
        error = open_stream(watch->connection, &probe);
    pthread_mutex_lock(&lock);
    /* The thread reads it once there is a probe. */
    if (words && !watch->words)
        watch->words = words;
    if (!error && probe) {
        /* A copy that is lost with a worker is made again, and is no loss of the program's. */
        atomic_store(&probe->aside, true);
        watch->probe = probe;
    }
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&making);
    return driver_result(error);
}

static cuda_result make_gate(struct watch *watch, uint32_t of, struct gate **out)
{
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        return CUDA_ERR_OUT_OF_MEMORY;
    cuda_result result = driver_result(open_stream(watch->connection, &gate->stream));
    if (result != CUDA_OK) {
        free(gate);
        return result;
    }
    list_init(&gate->waits);
    gate->named = stream_last(gate->stream);
    gate->of = of;
    gate->users = 1;
    pthread_mutex_lock(&lock);
    list_append(&watch->gates, &gate->link);
    pthread_mutex_unlock(&lock);
    *out = gate;
    return CUDA_OK;
}

/* With the lock: makes this thread a user of a gate that the stream has, or that nobody has. */
static struct gate *take_gate(struct watch *watch, uint32_t stream)
{
    struct gate *gate, *taken = NULL;
    LIST_FOR_EACH (gate, &watch->gates, link)
        if (!gate->users || gate->of == stream)
            taken = gate->users || !taken ? gate : taken;
    if (!taken)
        return NULL;
    taken->of = stream;
    taken->users++;
    return taken;
}

/* Makes what the server has to be asked for. On success this thread is a user of *gate. */
static cuda_result prepare(struct watch **watch, struct gate **gate,
                           const struct gpushare_stream *stream, enum memory_kind kind)
{
    pthread_mutex_lock(&lock);
    *watch = find_watch(stream->connection, true);
    cuda_result result = *watch ? start() : CUDA_ERR_OUT_OF_MEMORY;
    *gate = result == CUDA_OK ? take_gate(*watch, stream->index) : NULL;
    pthread_mutex_unlock(&lock);
    if (result == CUDA_OK && !*gate)
        result = make_gate(*watch, stream->index, gate);
    DRIVER_TRY(result);
    if (kind == MEMORY_DEVICE)
        result = make_probe(*watch);
    return result;
}

/* With the lock, and the stream's. Returns the gate's value that the stream waits for. */
static uint64_t add(struct gate *gate, struct wait *wait, const struct gpushare_stream *stream)
{
    wait->before = stream_last(stream);
    list_append(&gate->waits, &wait->link);
    gate->users++;
    pending++;
    fresh = true;
    pthread_cond_signal(&changed);
    return ++gate->named;
}

/* Whether the stream has nothing to do and need not wait: the thread would find the same. */
static bool goes_on_at_once(const struct gpushare_stream *stream, const struct wait *wait)
{
    return wait->kind == MEMORY_HOST && reached_by(stream) >= stream_last(stream) &&
           stream_value_met(&wait->wanted, read_buffer(&wait->wanted));
}

/* Takes the wait over on success, unless *over. */
static cuda_result push(struct gate *gate, struct gpushare_stream *stream, struct wait *wait,
                        bool *over)
{
    /* It makes the stream wait for the work of others that it must follow. */
    DRIVER_TRY(driver_result(stream_begin(stream)));
    *over = goes_on_at_once(stream, wait);
    gpushare_error error = GPUSHARE_SUCCESS;
    if (!*over) {
        pthread_mutex_lock(&lock);
        const struct proto_dependency opened = {.stream = gate->stream->index,
                                                .value = add(gate, wait, stream)};
        pthread_mutex_unlock(&lock);
        /* It fails only where the connection has ended, and the wait with it. */
        error = stream_push_wait(stream, opened);
    }
    stream_end(stream);
    return driver_result(error);
}

cuda_result driver_wait_push(struct gpushare_stream *stream, const struct stream_value *wanted)
{
    gpushare_connection *connection = stream->connection;
    struct watch *watch;
    struct gate *gate = NULL;
    bool over = true;
    struct wait *wait = calloc(1, sizeof *wait);
    if (!wait)
        return CUDA_ERR_OUT_OF_MEMORY;
    wait->wanted = *wanted;
    cuda_result result = driver_result(
        memory_hold(connection, wanted->address, wanted->width, &wait->hold, &wait->kind));
    if (result != CUDA_OK) {
        free(wait);
        return result;
    }
    result = prepare(&watch, &gate, stream, wait->kind);
    if (result == CUDA_OK)
        result = push(gate, stream, wait, &over);
    if (gate) {
        pthread_mutex_lock(&lock);
        gate->users--;
        pthread_mutex_unlock(&lock);
    }
    if (over) {
        memory_let_go(connection, &wait->hold);
        free(wait);
    }
    return result;
}

bool driver_wait_forget(gpushare_connection *connection)
{
    struct gate *gate;
    pthread_mutex_lock(&lock);
    while (looking)
        pthread_cond_wait(&rested, &lock);
    struct watch *watch = find_watch(connection, false);
    bool any = false;
    if (watch) {
        list_remove(&watch->link);
        any = end_all(watch);
        LIST_FOR_EACH (gate, &watch->gates, link)
            free(gate);
    }
    pthread_mutex_unlock(&lock);
    free(watch);
    return any;
}
