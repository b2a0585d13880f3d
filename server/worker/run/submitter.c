/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/run/submitter.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/cpu.h"
#include "common/ipc/doorbell.h"
#include "common/messages.h"
#include "server/worker/calls/activity.h"
#include "server/worker/worker.h"

/* How long an idle submitter stays awake, and an idle client in its scan set: longer than the gap
 * between two synchronous launches, and far too short to show as load. */
#define SPIN_NS        50000
#define SPINS_A_LOOK   32 /* between two looks at the clock */
#define EVENTS_A_SLEEP 64 /* what is left over is told by the next epoll_wait */
#define FULL_ROUNDS    16

/* ---- the scan set ---- */

/* Returns false, and the client stays out, if memory is short. */
static bool scan_set_add(struct submitter *submitter, struct client *client)
{
    if (array_reserve(submitter->scanned, submitter->scanned_room,
                      (size_t)submitter->scanned_count + 1) < 0)
        return false;
    client->submit.worked = false;
    client->submit.last_work = submitter->now;
    submitter->scanned[submitter->scanned_count++] = client;
    return true;
}

static void scan_set_remove(struct submitter *submitter, uint32_t at)
{
    submitter->scanned[at] = submitter->scanned[--submitter->scanned_count];
}

/* Puts a served client into the scan set, unless it is in it, and gives it this state. Under its
 * lock. */
static void scan_client(struct submitter *submitter, struct client *client, enum client_state to)
{
    struct proto_client_header *header = ring_client_header(client->rings.base);
    if (!client_state_is_scanned(client_state(client))) {
        /* Memory is short: the client stays asleep, and its doorbell's next ring tries again. */
        if (!scan_set_add(submitter, client)) {
            doorbell_prepare_sleep(header);
            client_state_set(client, CLIENT_ASLEEP);
            return;
        }
        doorbell_cancel_sleep(header);
    }
    client_state_set(client, to);
}

/* The doorbell of a client outside the scan set was rung. The next visit finds what its rings hold;
 * until then the client keeps what its state says of them. */
static void hear_doorbell(struct submitter *submitter, struct client *client)
{
    static const enum client_state heard[CLIENT_STATES] = {
        [CLIENT_ASLEEP] = CLIENT_IDLE,
        [CLIENT_PARKED] = CLIENT_FULL,
        [CLIENT_HELD] = CLIENT_READY,
    };
    pthread_mutex_lock(&client->lock);
    enum client_state to = heard[client_state(client)];
    if (to)
        scan_client(submitter, client, to);
    pthread_mutex_unlock(&client->lock);
}

/* Whether the client has nothing to do and will ring when it has. All clients are marked after each
 * quiet window; to scan those that sleep took a tenth of the time of a recovery. */
static bool sleeps_on(const struct client *client)
{
    return client_state(client) == CLIENT_ASLEEP &&
           doorbell_prepare_sleep(ring_client_header(client->rings.base));
}

/* The reason that kept the client from going on may be gone. */
static void look_again(struct submitter *submitter, struct client *client)
{
    pthread_mutex_lock(&client->lock);
    if (client_state_is_served(client_state(client))) {
        bool ready = submitter_find_ready(submitter, client);
        if (ready || !sleeps_on(client))
            scan_client(submitter, client, ready ? CLIENT_READY : CLIENT_IDLE);
    }
    pthread_mutex_unlock(&client->lock);
}

/* Looks for the end of a lease's last work. Returns whether there is such a lease, so that the
 * submitter does not pause. */
static bool await_lease(struct submitter *submitter)
{
    struct gate *gate = &submitter->worker->gate;
    struct client *client = gate_find_ending(gate);
    if (!client)
        return false;
    pthread_mutex_lock(&client->lock);
    gate_note_done(gate, client);
    pthread_mutex_unlock(&client->lock);
    return true;
}

/* Puts clients that the gate lets go on into the scan set. */
static void look_at_named(struct submitter *submitter)
{
    struct client *client;
    while ((client = gate_next_runnable(&submitter->worker->gate)))
        look_again(submitter, client);
}

/* Drops a client that is being detached: from now on the submitter has no pointer to it. */
static void drop_client(struct submitter *submitter, struct client *client)
{
    for (uint32_t at = submitter->scanned_count; at-- > 0;)
        if (submitter->scanned[at] == client)
            scan_set_remove(submitter, at);
    gate_drop(&submitter->worker->gate, client);
    pthread_mutex_lock(&client->lock);
    client_state_set(client, CLIENT_LEFT);
    pthread_mutex_unlock(&client->lock);
}

/* Looks at clients that other threads have marked, and drops those that leave. */
__attribute__((noinline, cold)) static void look_at_marked(struct submitter *submitter)
{
    struct worker *worker = submitter->worker;
    bool left = false;
    pthread_mutex_lock(&worker->clients_lock);
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        if (client_state(client) == CLIENT_LEAVING) {
            drop_client(submitter, client);
            left = true;
        } else if (atomic_exchange(&client->signals.submitter, 0)) {
            look_again(submitter, client);
        }
    }
    pthread_mutex_unlock(&worker->clients_lock);
    if (left)
        wake_control(&worker->wake);
}

/* Takes a client out of the scan set unless it has something to do. Returns whether it left. */
static bool retire_client(struct submitter *submitter, struct client *client)
{
    pthread_mutex_lock(&client->lock);
    bool full = client_state(client) == CLIENT_FULL;
    /* The doorbell refuses if a ring was rung meanwhile. */
    bool retired = (full || client_state(client) == CLIENT_IDLE) &&
                   doorbell_prepare_sleep(ring_client_header(client->rings.base));
    if (retired)
        client_state_set(client, full ? CLIENT_PARKED : CLIENT_ASLEEP);
    pthread_mutex_unlock(&client->lock);
    if (retired && full)
        wake_completer(&submitter->worker->wake, true);
    return retired;
}

/*
 * Takes clients that have not rung for a while out of the scan set. A client with more to do leaves
 * it only if it has as much in flight as it may have: the completer marks it when it may go on.
 */
static void retire_idle(struct submitter *submitter, uint64_t idle_ns)
{
    for (uint32_t i = submitter->scanned_count; i-- > 0;) {
        struct client *client = submitter->scanned[i];
        if (client->submit.worked) {
            client->submit.worked = false;
            client->submit.last_work = submitter->now;
        }
        if (submitter->now - client->submit.last_work < idle_ns ||
            client_state(client) == CLIENT_READY)
            continue;
        if (retire_client(submitter, client))
            scan_set_remove(submitter, i);
    }
}

/* Sleeps until a descriptor of the set is ready or the time has come. ppoll takes nanoseconds;
 * epoll_wait takes milliseconds, which is too coarse for leases. */
static void wait_until(struct submitter *submitter, uint64_t until)
{
    struct pollfd set = {.fd = submitter->epoll, .events = POLLIN};
    uint64_t now = clock_now();
    uint64_t left = until > now ? until - now : 0;
    struct timespec limit = clock_timespec(left);
    ppoll(&set, 1, until == SCHEDULER_NEVER ? NULL : &limit, NULL);
}

static void sleep_until_rung(struct submitter *submitter)
{
    struct epoll_event events[EVENTS_A_SLEEP];
    struct wake *wake = &submitter->worker->wake;
    uint64_t until = gate_next(&submitter->worker->gate);
    /* Asked again once the other threads can see that the submitter rests; see wake.h. */
    activity_rest(true);
    bool rest = wake_submitter_rests(wake, until) && !atomic_load(&submitter->stop) &&
                gate_next(&submitter->worker->gate) >= until;
    if (rest && until != SCHEDULER_NEVER)
        wait_until(submitter, until);
    bool wait = rest && until == SCHEDULER_NEVER;
    int count = epoll_wait(submitter->epoll, events, EVENTS_A_SLEEP, wait ? -1 : 0);
    activity_rest(false);
    wake_submitter_up(wake);
    submitter->now = clock_now();
    for (int i = 0; i < count; i++)
        if (events[i].data.ptr)
            hear_doorbell(submitter, events[i].data.ptr);
}

static bool visit_all(struct submitter *submitter)
{
    bool moved = false;
    for (uint32_t i = 0; i < submitter->scanned_count;) {
        struct client *client = submitter->scanned[i];
        /* A full client is visited only now and then: the end of its work takes longer than a
         * round. */
        if (client_state(client) == CLIENT_FULL && ++submitter->rounds % FULL_ROUNDS) {
            i++;
            continue;
        }
        bool worked = submitter_visit(submitter, client);
        client->submit.worked |= worked;
        moved |= worked;
        /* A held client leaves the set with its doorbell silent: no ring could let it go on. */
        if (client_state_is_scanned(client_state(client)))
            i++;
        else
            scan_set_remove(submitter, i);
    }
    return moved;
}

static void serve_clients(struct submitter *submitter)
{
    const struct gate *gate = &submitter->worker->gate;
    struct wake *wake = &submitter->worker->wake;
    bool awaits = false;
    uint32_t spins = 0;
    uint64_t last_work = submitter->now = clock_now();
    /* Relaxed: submitter_stop wakes this thread, which looks in full order before it sleeps. */
    while (!atomic_load_explicit(&submitter->stop, memory_order_relaxed)) {
        if (wake_submitter_taken(wake))
            look_at_marked(submitter);
        if (gate_next(gate) <= submitter->now)
            look_at_named(submitter);
        awaits = submitter->spin_ns && gate_has_ending(gate) && await_lease(submitter);
        bool moved = visit_all(submitter);
        if (moved)
            last_work = submitter->now;
        else
            cpu_pause();
        if (++spins % SPINS_A_LOOK && (moved || submitter->spin_ns))
            continue;
        submitter->now = clock_now();
        activity_beat();
        if (moved)
            last_work = submitter->now;
        retire_idle(submitter, moved ? SPIN_NS : submitter->spin_ns);
        /* Clients outside the scan set write to a descriptor, for which nobody need stay awake. */
        if (moved || (submitter->scanned_count && submitter->now - last_work < submitter->spin_ns))
            continue;
        if (submitter->scanned_count == 0 && !awaits)
            sleep_until_rung(submitter);
        last_work = submitter->now;
    }
}

static void *submitter_main(void *argument)
{
    struct submitter *submitter = argument;
    activity_begin(ACTIVITY_SUBMITTER);
    /* Leases end to the microsecond; the default timer slack is 50 us. */
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    cuda_result result = gpu_enter(&submitter->worker->gpu);
    if (result != CUDA_OK)
        worker_fail(submitter->worker, result, CONTEXT_LOSS_ENTERING);
    else
        serve_clients(submitter);
    return NULL;
}

/* ---- for the other threads ---- */

/* Without a second processor, spinning would take the only one from the client that it waits
 * for. */
static uint64_t spin_allowed(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS : 0;
}

uint32_t submitter_start(struct submitter *submitter, struct worker *worker, struct error *why)
{
    memset(submitter, 0, offsetof(struct submitter, command));
    submitter->worker = worker;
    submitter->spin_ns = spin_allowed();
    submitter->epoll = epoll_create1(EPOLL_CLOEXEC);
    /* Edge-triggered, so that no eventfd has to be read: each write to one is an edge. */
    struct epoll_event own = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (submitter->epoll < 0 || wake_submitter_open(&worker->wake) < 0 ||
        epoll_ctl(submitter->epoll, EPOLL_CTL_ADD, worker->wake.submitter_event, &own) < 0) {
        return error_set(why, MESSAGE(submitter_doorbell), strerror(errno));
    }
    cuda_result result =
        command_open(&submitter->command, &worker->gpu, &worker->meter, &worker->pool);
    if (result != CUDA_OK) {
        return error_set(why, MESSAGE(submitter_events), cuda_driver_error_sentence(result));
    }
    submitter->command.ends = &worker->ends;
    int error = thread_start(&submitter->thread, "submitter", submitter_main, submitter);
    if (error)
        return error_set(why, MESSAGE(submitter_thread), strerror(error));
    return 0;
}

void submitter_stop(struct submitter *submitter)
{
    if (submitter->thread.running) {
        atomic_store(&submitter->stop, 1);
        wake_submitter(&submitter->worker->wake);
        thread_join(&submitter->thread);
    }
    if (submitter->command.cuda)
        command_close(&submitter->command);
    if (submitter->epoll >= 0)
        close(submitter->epoll);
    submitter->epoll = -1;
    free(submitter->scanned);
    submitter->scanned = NULL;
}

int submitter_add(struct submitter *submitter, struct client *client)
{
    /* The client is asleep from the start, so its first ring of the doorbell is heard. */
    doorbell_prepare_sleep(ring_client_header(client->rings.base));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = client};
    if (epoll_ctl(submitter->epoll, EPOLL_CTL_ADD, client->doorbell, &event) < 0)
        return -errno;
    pthread_mutex_lock(&client->lock);
    client_state_set(client, CLIENT_ASLEEP);
    pthread_mutex_unlock(&client->lock);
    /* The client may have rung before its doorbell was in the epoll set. */
    client_signal_submitter(client);
    wake_submitter(&submitter->worker->wake);
    return 0;
}

void submitter_drop(struct submitter *submitter, struct client *client)
{
    epoll_ctl(submitter->epoll, EPOLL_CTL_DEL, client->doorbell, NULL);
    /* The doorbell is out of the epoll set by now. So no event of the client is left when the
     * submitter has dropped it and it is freed. */
    pthread_mutex_lock(&client->lock);
    client_state_set(client, CLIENT_LEAVING);
    client_signal_completer(client);
    pthread_mutex_unlock(&client->lock);
    wake_submitter(&submitter->worker->wake);
}
