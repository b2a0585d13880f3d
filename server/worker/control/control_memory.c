/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/control/control_call.h"
#include "server/worker/control/control_quiet.h"
#include "server/worker/control/control_retire.h"
#include "server/worker/control/reply.h"
#include "common/cuda/driver_error.h"

/* ---- device memory ---- */

struct map_call {
    struct control_call control;
    uint64_t address, count;
    int fd;
    uint32_t error;
    struct error why;
};

static bool make_map(struct driver_call *driver_call)
{
    struct map_call *call = container_of(driver_call, struct map_call, control.call);
    call->error = client_memory_map(call->control.request.client->gpu, call->address, call->count,
                                    &call->fd, &call->why);
    return false;
}

/* The memory is not to be had after all: unmapped before the answer says so, since the supervisor
 * gives the address away then. */
static bool make_undo(struct driver_call *driver_call)
{
    struct map_call *call = container_of(driver_call, struct map_call, control.call);
    struct error unused;
    call->error =
        client_memory_unmap(call->control.request.client->gpu, call->address, call->count, &unused);
    return false;
}

/* A range that the driver does not give back stays closed. */
static int end_undo(struct control_call *control)
{
    struct map_call *call = container_of(control, struct map_call, control);
    if (!call->error)
        client_memory_forget(control->request.client, call->address, call->count, RANGE_DEVICE);
    return request_refuse_why(&control->request, &call->why);
}

static int undo_map(const struct request *request, uint64_t address, uint64_t count,
                    const struct error *why)
{
    struct map_call *call = control_call_new(request, sizeof *call, make_undo, end_undo);
    /* The range stays closed, and goes with the client. */
    if (!call)
        return request_refuse_why(request, why);
    call->address = address;
    call->count = count;
    call->why = *why;
    control_call_leave(&call->control);
    return 0;
}

static int end_map(struct control_call *control)
{
    struct map_call *call = container_of(control, struct map_call, control);
    struct client *client = control->request.client;
    struct loader_job job = {
        .kind = LOADER_CLEAR, .fd = call->fd, .address = call->address, .count = call->count};
    if (call->error) {
        client_memory_forget(client, call->address, call->count, RANGE_DEVICE);
        return request_refuse_why(&control->request, &call->why);
    }
    if (client_state_is_leaving(client_state(client))) {
        close(call->fd);
        return 0;
    }
    if (request_submit(&control->request, &control->request.worker->clearer, &job))
        return 0;
    close(job.fd);
    error_set(&call->why, MESSAGE(worker_no_memory));
    return undo_map(&control->request, call->address, call->count, &call->why);
}

/* The call has the message's descriptor, if there is one. */
static int reserve_and_call(struct request *request, uint64_t address, uint64_t count,
                            bool (*make)(struct driver_call *call),
                            int (*end)(struct control_call *call))
{
    struct error why;
    struct map_call *call = control_call_new(request, sizeof *call, make, end);
    if (!call)
        return request_refuse(request, MESSAGE(worker_no_memory));
    uint32_t error = client_memory_reserve(request->client, address, count, &why);
    if (error) {
        free(call);
        return request_refuse_why(request, &why);
    }
    call->address = address;
    call->count = count;
    call->fd = channel_take_fd(request->message, 0);
    control_call_leave(&call->control);
    return 0;
}

int control_memory_map(struct request *request)
{
    const struct proto_worker_map *wanted = request->body;
    return reserve_and_call(request, wanted->address, wanted->count, make_map, end_map);
}

static bool make_remap(struct driver_call *driver_call)
{
    struct map_call *call = container_of(driver_call, struct map_call, control.call);
    call->error = client_memory_remap(call->control.request.client->gpu, call->address, call->count,
                                      call->fd, &call->why);
    close(call->fd);
    return false;
}

static int end_remap(struct control_call *control)
{
    struct map_call *call = container_of(control, struct map_call, control);
    struct client *client = control->request.client;
    if (call->error) {
        client_memory_forget(client, call->address, call->count, RANGE_DEVICE);
        return request_refuse_why(&control->request, &call->why);
    }
    client_memory_open(client, call->address, call->count, RANGE_DEVICE);
    return request_done(&control->request);
}

/* Whether the supervisor before had it mapped again already. */
static bool is_mapped_again(struct client *client, uint64_t address, uint64_t count,
                            enum range_kind kind)
{
    if (!client->control.restoring)
        return false;
    client_lock(client);
    const struct range *range = client_memory_range_exact(client, address, count, kind);
    bool mapped = range && !range->dying;
    pthread_mutex_unlock(&client->lock);
    return mapped;
}

int control_memory_remap(struct request *request)
{
    const struct proto_worker_remap *wanted = request->body;
    if (is_mapped_again(request->client, wanted->address, wanted->count, RANGE_DEVICE))
        return request_done(request);
    return reserve_and_call(request, wanted->address, wanted->count, make_remap, end_remap);
}

int control_memory_cleared(struct worker *worker, const struct loader_job *job)
{
    struct request request = {.worker = worker,
                              .client = job->client,
                              .serial = job->serial,
                              .number = job->client->number};
    struct proto_worker_mapped mapped = {.address = job->address};
    if (client_state_is_leaving(client_state(job->client)))
        return 0;
    if (job->error)
        return undo_map(&request, job->address, job->count, &job->why);
    client_memory_open(job->client, job->address, job->count, RANGE_DEVICE);
    return reply_send_with(worker, &(struct channel_packet){.opcode = PROTO_WORKER_MAPPED,
                                                            .serial = job->serial,
                                                            .client = request.number,
                                                            .body = &mapped,
                                                            .fds = &job->fd,
                                                            .fd_count = 1});
}

/* ---- host buffers ---- */

struct host_map_call {
    struct control_call control;
    uint64_t address, count, done;
    bool keep;
    uint32_t error;
    struct error why;
};

/* Between steps, so that threads which wait for the driver's lock get it: a lock that is taken
 * again at once is never seen free. A step of 4 MiB takes ten times as long. */
#define STEP_PAUSE_US 100
/* While the device works, others have the driver for a quarter of the time: otherwise the submitter
 * would hand over one or two commands between steps, and the device would run dry. More would make
 * registering slow for those who do that one after the other. */
#define STEP_REST_PART   3
#define STEP_REST_MAX_NS (10 * UNITS_MS)
/* How often a step is tried that has to wait; other calls go on meanwhile. */
#define WAIT_PAUSE_NS 500000

static bool any_client_works(struct worker *worker)
{
    bool any = false;
    pthread_mutex_lock(&worker->clients_lock);
    for (uint32_t i = 0; i < worker->client_count && !any; i++)
        any = atomic_load(&worker->clients[i]->signals.completer) != 0;
    pthread_mutex_unlock(&worker->clients_lock);
    return any;
}

/* After a step that was begun then. */
static void rest_from_step(struct worker *worker, uint64_t begun)
{
    uint64_t now = clock_now();
    if (any_client_works(worker))
        worker->driver_caller.register_at =
            now + min((now - begun) / STEP_REST_PART, STEP_REST_MAX_NS);
    usleep(STEP_PAUSE_US);
}

static bool make_host_map(struct driver_call *driver_call)
{
    struct host_map_call *call = container_of(driver_call, struct host_map_call, control.call);
    const struct client *client = call->control.request.client;
    struct worker *worker = call->control.request.worker;
    struct quiet_calls *calls = &worker->quiet_calls;
    uint64_t begun = clock_now();
    /* Everybody waits for the end of a window. */
    if (begun < worker->driver_caller.register_at || !quiet_calls_work_try(calls)) {
        driver_call->not_before = max(worker->driver_caller.register_at, begun + WAIT_PAUSE_NS);
        return true;
    }
    call->error = client_memory_host_register(client->gpu, call->address, call->count, &call->done,
                                              &call->why);
    quiet_calls_work_end(calls);
    rest_from_step(worker, begun);
    return !call->error && call->done < call->count &&
           !client_state_is_leaving(client_state(client));
}

/* Steps that were registered are given back in a quiet window, as those of any buffer are, and the
 * answer waits for that: the supervisor gives the address away then. */
static int undo_host_map(struct host_map_call *call)
{
    struct request *request = &call->control.request;
    struct retirement *gone = calloc(1, sizeof *gone);
    struct error *why = calloc(1, sizeof *why);
    if (gone && why) {
        *why = call->why;
        *gone = (struct retirement){.kind = RETIRE_HOST,
                                    .serial = request->serial,
                                    .refusal = why,
                                    .address = call->address,
                                    .count = call->count};
        control_quiet_retire(request->worker, request->client, gone, control_retire_end);
        return 0;
    }
    /* The range stays closed, and goes with the client. */
    free(gone);
    free(why);
    return request_refuse_why(request, &call->why);
}

static int end_host_map(struct control_call *control)
{
    struct host_map_call *call = container_of(control, struct host_map_call, control);
    struct client *client = control->request.client;
    struct error unused;
    client_memory_host_note(client, call->address, call->count, call->done, call->keep);
    if (call->error && call->done)
        return undo_host_map(call);
    if (call->error) {
        client_memory_host_unmap(client, call->address, call->count, &unused);
        return request_refuse_why(&control->request, &call->why);
    }
    /* Else the client left before all was registered, and nobody waits for the answer. */
    if (call->done < call->count)
        return 0;
    client_memory_open(client, call->address, call->count, RANGE_HOST);
    return request_done(&control->request);
}

int control_memory_host_map(struct request *request)
{
    const struct proto_worker_host_map *wanted = request->body;
    struct error why;
    if (is_mapped_again(request->client, wanted->address, wanted->count, RANGE_HOST))
        return request_done(request);
    struct host_map_call *call =
        control_call_new(request, sizeof *call, make_host_map, end_host_map);
    if (!call)
        return request_refuse(request, MESSAGE(worker_no_memory));
    uint32_t error = client_memory_host_reserve(request->client, wanted->address, wanted->count,
                                                channel_take_fd(request->message, 0), &why);
    if (error) {
        free(call);
        return request_refuse_why(request, &why);
    }
    call->address = wanted->address;
    call->count = wanted->count;
    call->keep = wanted->keep;
    control_call_leave(&call->control);
    return 0;
}

/* ---- giving back ---- */

static int unmap_range(struct request *request, uint64_t address, uint64_t count,
                       enum range_kind kind, enum retire_kind how)
{
    struct client *client = request->client;
    struct retirement *asked = NULL;
    client_lock(client);
    struct range *range = client_memory_range_exact(client, address, count, kind);
    bool known = range && !range->dying;
    if (known)
        asked = control_retire_request(client, how, request->serial);
    if (asked) {
        asked->address = address;
        asked->count = count;
        range->dying = asked;
    }
    /* Asked for by the supervisor before: this one gets the answer. */
    bool dying = !known && range && client->control.forgiving;
    if (dying)
        ((struct retirement *)(uintptr_t)range->dying)->serial = request->serial;
    pthread_mutex_unlock(&client->lock);
    if (dying)
        return 0;
    if (!range && client->control.forgiving)
        return request_done(request);
    if (!known)
        return request_refuse(request, MESSAGE(worker_memory_unknown), (unsigned long long)address,
                              (unsigned long long)count);
    return control_retire_answer(request, asked);
}

int control_memory_unmap(struct request *request)
{
    const struct proto_worker_unmap *wanted = request->body;
    return unmap_range(request, wanted->address, wanted->count, RANGE_DEVICE, RETIRE_DEVICE);
}

int control_memory_host_unmap(struct request *request)
{
    const struct proto_worker_host_unmap *wanted = request->body;
    return unmap_range(request, wanted->address, wanted->count, RANGE_HOST, RETIRE_HOST);
}

int control_memory_host_keep(struct request *request)
{
    const struct proto_worker_host_keep *wanted = request->body;
    return unmap_range(request, wanted->address, wanted->count, RANGE_HOST, RETIRE_KEEP);
}

int control_memory_quiesce(struct request *request)
{
    client_lock(request->client);
    struct retirement *asked =
        control_retire_request(request->client, RETIRE_NOTHING, request->serial);
    pthread_mutex_unlock(&request->client->lock);
    return control_retire_answer(request, asked);
}

struct available_call {
    struct control_call control;
    size_t bytes;
    cuda_result result;
};

static bool make_available(struct driver_call *driver_call)
{
    struct available_call *call = container_of(driver_call, struct available_call, control.call);
    size_t whole;
    call->result = call->control.request.worker->gpu.cuda->cuMemGetInfo(&call->bytes, &whole);
    return false;
}

static int end_available(struct control_call *control)
{
    const struct available_call *call = container_of(control, struct available_call, control);
    const struct request *request = &control->request;
    struct proto_worker_memory memory = {.available = call->bytes};
    struct error why;
    if (call->result == CUDA_OK)
        return request_answer(request, PROTO_WORKER_MEMORY, &memory);
    driver_error_set(&why, "cuMemGetInfo", call->result);
    return request_refuse_why(request, &why);
}

int control_memory_available(struct request *request)
{
    struct available_call *call =
        control_call_new(request, sizeof *call, make_available, end_available);
    if (!call)
        return request_refuse(request, MESSAGE(worker_no_memory));
    control_call_leave(&call->control);
    return 0;
}
