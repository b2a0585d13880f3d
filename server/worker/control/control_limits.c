/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/calls/activity.h"
#include "server/worker/control/control_limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/control/control_making.h"
#include "server/worker/control/control_quiet.h"
#include "server/worker/control/control_trace.h"
#include "server/worker/control/reply.h"
#include "server/worker/run/overrun.h"
#include "server/worker/sharing/stream_priority.h"
#include "server/worker/sharing/client_partition.h"

/* So long a request waits for the partition that it needs. Where the device drains sooner, its
 * answer says whether the driver made one. */
#define ANSWER_NS (250 * UNITS_MS)

/* A client's part of the multiprocessors, with the limits of the accounts behind its first one. */
static struct proto_share_range threads_of(const struct proto_allowance *allowance,
                                           const struct scheduler_accounts *accounts)
{
    const uint64_t most = account_table_threads_limit(accounts);
    struct proto_share_range threads = allowance->threads;
    threads.request = min(threads.request, most);
    threads.limit = min(threads.limit, most);
    return threads;
}

/* Where multiprocessors can't be divided, a limit of them is enforced as a share of time. */
static uint32_t duty_of(const struct worker *worker, uint64_t threads_limit)
{
    return worker->partitions.supported ? PLAN_WHOLE : (uint32_t)threads_limit;
}

static struct scheduler_limits time_limits(const struct worker *worker,
                                           const struct proto_allowance *allowance)
{
    return (struct scheduler_limits){.request = (uint32_t)allowance->time.request,
                                     .limit = (uint32_t)allowance->time.limit,
                                     .duty = duty_of(worker, allowance->threads.limit),
                                     .level = allowance->priority};
}

/* The accounts that a client counts in now. */
static struct account_choice accounts_of(const struct client *client)
{
    return (struct account_choice){.time = client->gate.scheduled.accounts,
                                   .threads = client->place.allocation.account};
}

/* Moves a client to where it belongs now, if there is room for it. */
static void apply_placement(struct worker *worker, struct client *client)
{
    struct partition *to;
    client_lock(client);
    if (placement_apply(&worker->places, &client->place, &to) == PLACEMENT_MOVE)
        client_partition_move(worker, client, to);
    pthread_mutex_unlock(&client->lock);
}

/* Gives a client its part of the multiprocessors; its request of time counts where they are chosen.
 * Result as below. */
static uint32_t apply_threads(struct worker *worker, struct client *client,
                              const struct proto_allowance *to,
                              const struct account_choice *accounts, struct error *why)
{
    struct sm_allocation_account *before = client->place.allocation.account;
    const struct proto_share_range threads = threads_of(to, &accounts->time);
    struct error unused;
    placement_set_time(&worker->places, &client->place, (uint32_t)to->time.request);
    uint32_t error =
        accounts->threads == before
            ? 0
            : placement_move_account(&worker->places, &client->place, accounts->threads, why);
    if (error)
        return error;
    error = placement_update(&worker->places, &client->place, (uint32_t)threads.request,
                             (uint32_t)threads.limit, why);
    if (error && accounts->threads != before)
        placement_move_account(&worker->places, &client->place, before, &unused);
    return error;
}

/* Tells the gate which SM groups are others', before it checks sums of requests of time: whether a
 * request fits must not depend on loans of the moment. */
static void tell_foreign(struct worker *worker)
{
    struct sm_group_set foreign;
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        if (!client->gate.added)
            continue;
        placement_foreign(&worker->places, &client->place, &foreign);
        gate_set_foreign(&worker->gate, client, &foreign);
    }
}

/* Gives a client that has a share another one. accounts: those that it counts in from now on; NULL:
 * as before. Returns 0, or an error number with a sentence in why; nothing has changed then. */
static uint32_t apply_allowance(struct worker *worker, struct client *client,
                                const struct proto_allowance *to,
                                const struct account_choice *accounts, struct error *why)
{
    const struct proto_allowance *from = &client->control.allowance;
    const struct account_choice before = accounts_of(client);
    const struct account_choice *after = accounts ? accounts : &before;
    struct scheduler_limits time = time_limits(worker, to);
    struct error unused;
    uint32_t error = apply_threads(worker, client, to, after, why);
    if (error) {
        placement_set_time(&worker->places, &client->place, (uint32_t)from->time.request);
        return error;
    }
    tell_foreign(worker);
    error = gate_set_limits(&worker->gate, client, &time, accounts ? &accounts->time : NULL, why);
    if (error) {
        apply_threads(worker, client, from, &before, &unused);
        apply_placement(worker, client);
        return error;
    }
    client->control.allowance = *to;
    client_lock(client);
    overrun_set_kernel_time(client, to->kernel_time);
    pthread_mutex_unlock(&client->lock);
    control_limits_assign_priorities(worker);
    return 0;
}

uint32_t control_limits_take(struct worker *worker, struct client *client,
                             const struct proto_worker_attach *wanted, struct error *why)
{
    struct account_choice accounts;
    struct placement_view view;
    struct sm_group_set foreign;
    if (account_table_find_all(&worker->accounts, wanted->accounts, &accounts) < 0)
        return error_set(why, MESSAGE(worker_no_memory));
    struct scheduler_limits time = time_limits(worker, &wanted->allowance);
    const struct proto_share_range threads = threads_of(&wanted->allowance, &accounts.time);
    placement_set_time(&worker->places, &client->place, time.request);
    uint32_t error = placement_add(&worker->places, &client->place, accounts.threads,
                                   (uint32_t)threads.request, (uint32_t)threads.limit, why);
    if (error)
        return error;
    placement_view(&worker->places, &client->place, clock_now(), &view);
    placement_foreign(&worker->places, &client->place, &foreign);
    tell_foreign(worker);
    sm_group_set_cut(&view.sm_groups, &foreign); /* none left: the gate takes that for everywhere */
    error = gate_add(&worker->gate, client, &time, accounts.time.count ? &accounts.time : NULL,
                     &view.sm_groups, why);
    if (error) {
        placement_remove(&worker->places, &client->place);
        return error;
    }
    /* Other clients' work may have moved this one before the gate knew it. */
    placement_notify(&worker->places, &client->place);
    return 0;
}

void control_limits_give_back(struct worker *worker, struct client *client)
{
    gate_remove(&worker->gate, client);
    usage_ledger_forget(&worker->ledger, worker, client);
    placement_remove(&worker->places, &client->place);
    account_table_tidy(&worker->accounts);
    worker_reschedule(worker);
    client_lock(client);
    struct partition *partition = client->shared.partition;
    client->shared.partition = NULL;
    pthread_mutex_unlock(&client->lock);
    if (partition)
        partition_put(&worker->partitions, partition);
}

/* ---- requests that may need a partition ---- */

static int answer_limits(struct worker *worker, struct client *client, uint64_t serial)
{
    struct placement_view view;
    placement_view(&worker->places, &client->place, clock_now(), &view);
    struct proto_worker_attached attached = {
        .multiprocessors = view.max_multiprocessors,
        .partitioned = worker->partitions.supported,
    };
    _Static_assert(sizeof attached.sm_groups == sizeof view.sm_groups.bits, "the same SM groups");
    memcpy(attached.sm_groups, view.sm_groups.bits, sizeof attached.sm_groups);
    return reply_send(worker, PROTO_WORKER_ATTACHED, serial, client->number, &attached);
}

/* The driver makes no partition for it: it leaves, and is told why then. */
static int refuse_client(struct worker *worker, struct client *client, uint32_t error)
{
    client->control.refused = error;
    placement_remove(&worker->places, &client->place);
    submitter_drop(&worker->submitter, client);
    wake_completer(&worker->wake, true);
    return 0;
}

/* Where others have got what the client had before, there is no way back: the change holds, and the
 * client's work waits for its partition. */
static int refuse_change(struct worker *worker, struct client *client, uint32_t error,
                         const struct limits_answer *asked)
{
    struct error why, unused;
    if (apply_allowance(worker, client, &asked->before, NULL, &unused))
        return answer_limits(worker, client, asked->serial);
    apply_placement(worker, client);
    worker_reschedule(worker);
    error_set(&why, error, MESSAGE_TEXT(partition_none), error_sentence(error));
    return reply_refuse(worker, asked->serial, client->number, &why);
}

/* The only place where the serial changes, since the clients that wait are counted: nobody looks
 * through a thousand clients for none. */
static void set_serial(struct worker *worker, struct client *client, uint64_t serial)
{
    worker->limits_waiting -= client->control.answer.serial != 0;
    worker->limits_waiting += serial != 0;
    client->control.answer.serial = serial;
}

int control_limits_hurry(struct worker *worker, struct client *client)
{
    uint64_t serial = client->control.answer.serial;
    set_serial(worker, client, 0);
    return serial ? answer_limits(worker, client, serial) : 0;
}

/* Answers the request that waits for a partition, which was made or could not be; or enough time
 * has passed. */
static int end_request(struct worker *worker, struct client *client)
{
    struct limits_answer asked = client->control.answer;
    uint32_t error = client->control.making ? 0 : client->control.making_error;
    set_serial(worker, client, 0);
    if (error && asked.attach) {
        client->control.detach_serial = asked.serial;
        return refuse_client(worker, client, error);
    }
    if (error)
        return refuse_change(worker, client, error, &asked);
    apply_placement(worker, client);
    return answer_limits(worker, client, asked.serial);
}

int control_limits_answer(struct request *request, struct client *client,
                          const struct limits_answer *asked)
{
    struct worker *worker = request->worker;
    client->control.making_error = 0;
    struct limits_answer answer = *asked;
    answer.serial = client->control.answer.serial;
    answer.until = clock_now() + ANSWER_NS;
    client->control.answer = answer;
    set_serial(worker, client, request->serial);
    control_making_start(worker);
    return client->control.making ? 0 : end_request(worker, client);
}

int control_limits_change(struct request *request)
{
    struct worker *worker = request->worker;
    struct client *client = request->client;
    const struct proto_worker_limits *wanted = request->body;
    struct limits_answer asked = {.before = client->control.allowance};
    struct error why;
    /* The one before is answered first: what it waits for may not be wanted any more. */
    int sent = control_limits_hurry(worker, client);
    if (sent < 0)
        return sent;
    struct account_choice accounts;
    if (account_table_find_all(&worker->accounts, wanted->accounts, &accounts) < 0)
        return request_refuse(request, MESSAGE(worker_no_memory));
    uint32_t error = apply_allowance(worker, client, &wanted->allowance,
                                     accounts.time.count ? &accounts : NULL, &why);
    account_table_tidy(&worker->accounts);
    worker_reschedule(worker);
    return error ? request_refuse_why(request, &why)
                 : control_limits_answer(request, client, &asked);
}

/* Returns 0, or an error number with a sentence in why; nothing has changed then. */
static uint32_t set_account(struct worker *worker, struct account_entry *entry,
                            const struct proto_worker_account *wanted, struct error *why)
{
    uint32_t request = entry->threads.request;
    uint32_t limit = entry->threads.limit ? entry->threads.limit : PLAN_WHOLE;
    uint32_t time_request = entry->threads.time_request;
    struct error unused;
    entry->threads.time_request = wanted->time_request;
    uint32_t error = placement_account_set(&worker->places, &entry->threads,
                                           wanted->threads_request, wanted->threads_limit, why);
    if (!error) {
        tell_foreign(worker);
        error = gate_set_account(&worker->gate, &entry->time, wanted->time_request,
                                 wanted->time_limit, duty_of(worker, wanted->threads_limit), why);
        if (!error)
            return 0;
    }
    entry->threads.time_request = time_request;
    placement_account_set(&worker->places, &entry->threads, request, limit, &unused);
    return error;
}

/* Gives the clients that count in an account besides their own what its limit leaves them. Result
 * as above, but that some may have changed. */
static uint32_t limit_further_clients(struct worker *worker, const struct account_entry *entry,
                                      struct error *why)
{
    uint32_t error = 0;
    for (uint32_t i = 0; i < worker->client_count && !error; i++) {
        struct client *client = worker->clients[i];
        const struct account_choice accounts = accounts_of(client);
        if (!client->gate.added || !account_table_is_further(&accounts.time, entry))
            continue;
        error = apply_allowance(worker, client, &client->control.allowance, NULL, why);
        if (!error)
            apply_placement(worker, client);
    }
    return error;
}

/* Sets an account's shares, for all clients that count in it. Result as above. */
static uint32_t change_account(struct worker *worker, struct account_entry *entry,
                               const struct proto_worker_account *wanted, struct error *why)
{
    const struct proto_worker_account before = {
        .time_request = entry->time.time_request,
        .time_limit = entry->time.time_limit,
        .threads_request = entry->threads.request,
        .threads_limit = entry->threads.limit ? entry->threads.limit : PLAN_WHOLE};
    struct error unused;
    uint32_t error = set_account(worker, entry, wanted, why);
    if (error)
        return error;
    error = limit_further_clients(worker, entry, why);
    if (error) {
        set_account(worker, entry, &before, &unused);
        limit_further_clients(worker, entry, &unused);
    }
    return error;
}

int control_limits_account(struct request *request)
{
    struct worker *worker = request->worker;
    const struct proto_worker_account *wanted = request->body;
    struct account_entry *entry = account_table_find(&worker->accounts, wanted->account);
    struct error why;
    if (!entry)
        return request_refuse(request, MESSAGE(worker_no_memory));
    memcpy(entry->name, wanted->name, sizeof entry->name);
    entry->name[sizeof entry->name - 1] = 0;
    uint32_t error = change_account(worker, entry, wanted, &why);
    entry->expected |= !error && entry->time.members == 0;
    account_table_tidy(&worker->accounts);
    worker_reschedule(worker);
    return error ? request_refuse_why(request, &why) : request_done(request);
}

int control_limits_schedule(struct request *request)
{
    struct worker *worker = request->worker;
    const struct proto_worker_schedule *wanted = request->body;
    struct scheduler_schedule schedule;
    struct growth *growth;
    struct error why;
    /* Nothing can fail once the gate has the schedule, so that it applies whole or not at all. */
    if (!control_quiet_grow_reserve(worker, wanted->local_memory, &growth))
        return request_refuse(request, MESSAGE(worker_no_memory));
    scheduler_defaults(&schedule);
    schedule.mode = (enum proto_mode)wanted->mode;
    schedule.precision = wanted->precision;
    schedule.lease_ns = wanted->lease;
    schedule.quantum_ns = wanted->quantum;
    placement_bind_time(&worker->places,
                        wanted->mode == PROTO_MODE_STRICT || wanted->mode == PROTO_MODE_FAIR);
    tell_foreign(worker);
    uint32_t refused = gate_set_schedule(&worker->gate, &schedule, &why);
    if (refused)
        placement_bind_time(&worker->places, scheduler_time_enforced(&worker->gate.scheduler));
    worker_reschedule(worker);
    if (refused) {
        control_quiet_grow_drop(growth);
        return request_refuse_why(request, &why);
    }
    gate_set_singly(&worker->gate, wanted->singly);
    quiet_window_set_limit(&worker->quiet_window, wanted->window_limit);
    control_quiet_grow_commit(worker, growth);
    control_making_sizes(worker, wanted->partition_sizes);
    overrun_set_departed(&worker->overrun, worker, wanted->departed_limit);
    control_trace_mode(worker, wanted->mode);
    return request_done(request);
}

/* ---- partitions and CUstreams ---- */

void control_limits_assign_priorities(struct worker *worker)
{
    stream_priority_assign(worker);
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        client_lock(client);
        struct partition *partition = client->shared.partition;
        int32_t priority = client->streams[0].priority;
        pthread_mutex_unlock(&client->lock);
        /* Without one of its priority a stream runs at another's, until there is one. */
        if (partition)
            control_making_stream(worker, partition, priority);
    }
}

bool control_limits_finish(struct worker *worker, int *error)
{
    bool waits = control_making_start(worker);
    control_making_tidy(worker);
    *error = 0;
    /* Backwards: a client that is gone gives its place to the last one, which was looked at. */
    for (uint32_t i = worker->limits_waiting ? worker->client_count : 0; i-- > 0 && *error >= 0;) {
        struct client *client = worker->clients[i];
        activity_beat();
        bool due = !client->control.making || clock_now() >= client->control.answer.until;
        if (client->control.answer.serial && due)
            *error = end_request(worker, client);
        waits |= client->control.answer.serial != 0;
    }
    return waits;
}
