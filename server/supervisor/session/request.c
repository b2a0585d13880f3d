/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/request.h"

#include <errno.h>
#include <stdlib.h>

#include "common/messages.h"
#include "common/util.h"
#include "server/supervisor/client/image.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"

struct request *request_make_own(struct session *session)
{
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->session = session;
    request->fd = -1;
    request->want.session = session;
    session->requests++;
    return request;
}

struct request *request_make(struct session *session, uint64_t serial, uint16_t reply)
{
    struct request *request = request_make_own(session);
    if (!request) {
        session_refuse(session, serial, MESSAGE(request_no_memory));
        return NULL;
    }
    request->serial = serial;
    request->reply = reply;
    return request;
}

void request_end(struct request *request)
{
    struct session *session = request->session;
    closer_take(session->server->closer, request->fd, session_sender(session));
    quota_return(&request->charge);
    image_release(request->image, session->server->closer);
    image_release(request->known, session->server->closer);
    free(request);
    session->requests--;
    session_touch(session);
    session_schedule(session);
    if (session->paused && session_reads(session))
        session_poll(session);
}

static struct request *request_of(struct job *job)
{
    return container_of(job, struct request, job);
}

static int job_run(struct job *job)
{
    struct request *request = request_of(job);
    return request->work(request);
}

/* A job can't be cancelled. If the session has ended meanwhile, the job's result goes with the
 * request. */
static void job_done(struct job *job, int result)
{
    struct request *request = request_of(job);
    bool ended = request->session->state == PROTO_CONNECTION_STATE_LEAVING;
    request->worked(request, ended ? -ECANCELED : result);
}

void request_work(struct request *request, int (*work)(struct request *request),
                  void (*worked)(struct request *request, int result))
{
    request->work = work;
    request->worked = worked;
    job_start(&request->job, &request->session->jobs, job_run, job_done);
}

void request_refuse_room(struct request *request, enum resource resource,
                         const struct quota *culprit, uint64_t asked)
{
    struct error why;
    session_quota_refuse_room(request->session, resource, culprit, asked, &why);
    session_refuse_why(request->session, request->serial, &why);
    request_end(request);
}
