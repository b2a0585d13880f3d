/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/ipc/channel.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"

void worker_reschedule(struct worker *worker)
{
    wake_submitter_before(&worker->wake, gate_next(&worker->gate));
}

void worker_fail(struct worker *worker, cuda_result result, enum context_loss loss)
{
    struct error why;
    uint32_t error = context_loss_set(&why, loss, worker->gpu.info.device, result);
    /* The process ends soon after the control thread sees `failed`, and a client that was told of
     * the fault may wake that thread by its next request. So the supervisor is told before `failed`
     * is set; a thread that finds the same fault meanwhile waits here, for it may be the control
     * thread. */
    pthread_mutex_lock(&worker->fault_lock);
    if (atomic_load(&worker->failed)) {
        pthread_mutex_unlock(&worker->fault_lock);
        return;
    }
    struct proto_worker_fault fault = {.error = error};
    snprintf(fault.text, sizeof fault.text, "%.*s", (int)sizeof fault.text - 1, why.text);
    log_sentence(LOG_LEVEL_ERROR, &why);
    /* The supervisor says which clients end with it. */
    channel_send_waiting(worker->channel,
                         &(struct channel_packet){.opcode = PROTO_WORKER_FAULT, .body = &fault});
    atomic_store(&worker->failed, error);
    pthread_mutex_unlock(&worker->fault_lock);
    wake_control(&worker->wake);
}

int worker_add_client(struct worker *worker, struct client *client)
{
    pthread_mutex_lock(&worker->clients_lock);
    int error =
        array_reserve(worker->clients, worker->client_room, (size_t)worker->client_count + 1);
    if (!error)
        worker->clients[worker->client_count++] = client;
    pthread_mutex_unlock(&worker->clients_lock);
    return error;
}

void worker_remove_client(struct worker *worker, struct client *client)
{
    pthread_mutex_lock(&worker->clients_lock);
    for (uint32_t i = 0; i < worker->client_count; i++)
        if (worker->clients[i] == client) {
            worker->clients[i] = worker->clients[--worker->client_count];
            break;
        }
    pthread_mutex_unlock(&worker->clients_lock);
}

struct client *worker_find_client(struct worker *worker, uint32_t number)
{
    /* Without the lock: only this thread, the control thread, changes the table. */
    for (uint32_t i = 0; i < worker->client_count; i++)
        if (worker->clients[i]->number == number)
            return worker->clients[i];
    return NULL;
}
