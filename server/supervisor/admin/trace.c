/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/admin_times.h"
#include "common/error.h"
#include "common/messages.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/trace.h"

struct tracing_work {
    struct admin_work work; /* first */
    struct error why;       /* number 0: none */
    json_t *answer;         /* NULL until it came, or where memory was short */
    int memory;             /* goes with it; -1 */
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
        admin_peer_refuse(peer, MESSAGE(trace_late));
        return;
    }
    if (tracing->why.number) {
        admin_peer_refuse(peer, tracing->why.number, "%s", tracing->why.text);
        return;
    }
    admin_peer_pass(peer, tracing->answer, tracing->memory);
    tracing->answer = NULL;
}

static void on_traced(void *context, uint32_t error, const char *text, const struct trace *trace)
{
    struct tracing_work *tracing = context;
    error_set(&tracing->why, error, "%s", text);
    if (trace) {
        tracing->answer = admin_answer_trace(tracing->work.admin->supervisor, trace);
        tracing->memory = fcntl(trace->memory, F_DUPFD_CLOEXEC, 0);
        if (tracing->memory < 0)
            error_set(&tracing->why, MESSAGE(trace_descriptor));
    }
    admin_peer_work_came(&tracing->work);
}

void admin_trace(struct admin_peer *peer, const struct admin_request *request)
{
    struct supervisor *supervisor = peer->admin->supervisor;
    struct tracing_work *tracing = calloc(1, sizeof *tracing);
    char by[ADMIN_NAME];
    struct error why;
    if (!tracing) {
        admin_peer_refuse(peer, MESSAGE(server_no_memory));
        return;
    }
    *tracing = (struct tracing_work){.work = {.answer = tracing_answer,
                                              .hurry = trace_hurry,
                                              .left = give_up,
                                              .free = tracing_free},
                                     .memory = -1};
    const struct trace_asker asker = {admin_peer_name(peer, by), on_traced, tracing};
    uint32_t error = trace_start(supervisor, request->gpu, request->milliseconds, &asker, &why);
    if (error) {
        free(tracing);
        admin_peer_refuse(peer, error, "%s", why.text);
        return;
    }
    admin_peer_work_begin(&tracing->work, peer);
    tracing->work.outstanding = 1;
    admin_peer_work_wait(&tracing->work, request->milliseconds + ADMIN_TRACE_LATE_MS);
    admin_peer_watch(peer);
}
