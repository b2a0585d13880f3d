/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/admin_times.h"
#include "common/error.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/trace.h"

struct tracing_work {
    struct admin_work work; /* first */
    uint32_t error;
    char text[400];
    json_t *answer; /* NULL until it came, or where memory was short */
    int memory;     /* goes with it; -1 */
};

static void tracing_free(struct admin_work *work)
{
    struct tracing_work *tracing = (struct tracing_work *)work;
    json_decref(tracing->answer);
    if (tracing->memory >= 0)
        close(tracing->memory);
    free(tracing);
}

static void give_up(struct admin_work *work)
{
    if (trace_abandon(work->admin->supervisor, work))
        work->outstanding--;
}

static void trace_hurry(struct admin_work *work)
{
    trace_stop(work->admin->supervisor, work);
}

static void tracing_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct tracing_work *tracing = (struct tracing_work *)work;
    if (late) {
        give_up(work);
        admin_peer_refuse(peer, PROTO_ERROR_DEVICE_NOT_READY,
                          "the worker has not answered: the trace is given up");
        return;
    }
    if (tracing->error) {
        admin_peer_refuse(peer, tracing->error, tracing->text);
        return;
    }
    admin_peer_pass(peer, tracing->answer, tracing->memory);
    tracing->answer = NULL;
}

static void on_traced(void *context, uint32_t error, const char *text, const struct trace *trace)
{
    struct tracing_work *tracing = context;
    tracing->error = error;
    snprintf(tracing->text, sizeof tracing->text, "%s", text);
    if (trace) {
        tracing->answer = admin_answer_trace(tracing->work.admin->supervisor, trace);
        tracing->memory = fcntl(trace->memory, F_DUPFD_CLOEXEC, 0);
        if (tracing->memory < 0) {
            tracing->error = PROTO_ERROR_SERVER_RESOURCES;
            snprintf(tracing->text, sizeof tracing->text,
                     "the server has no descriptor left for the trace");
        }
    }
    admin_work_came(&tracing->work);
}

void admin_trace(struct admin_peer *peer, const struct admin_request *request)
{
    struct supervisor *supervisor = peer->admin->supervisor;
    struct tracing_work *tracing = calloc(1, sizeof *tracing);
    char by[48];
    struct error why;
    if (!tracing) {
        admin_peer_refuse(peer, PROTO_ERROR_SERVER_RESOURCES, "the server is short of memory");
        return;
    }
    *tracing = (struct tracing_work){.work = {.answer = tracing_answer,
                                              .hurry = trace_hurry,
                                              .left = give_up,
                                              .free = tracing_free},
                                     .memory = -1};
    uint32_t error = trace_start(supervisor, request->gpu, request->milliseconds,
                                 admin_peer_name(peer, by, sizeof by), on_traced, tracing, &why);
    if (error) {
        free(tracing);
        admin_peer_refuse(peer, error, why.text);
        return;
    }
    admin_work_begin(&tracing->work, peer);
    tracing->work.outstanding = 1;
    admin_work_wait(&tracing->work, request->milliseconds + ADMIN_TRACE_LATE_MS);
    admin_peer_watch(peer);
}
