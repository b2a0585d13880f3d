/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/worker/worker_requests.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/messages.h"
#include "protocol.h"

/* Far more than the requests that a thousand clients may have under way. A worker that leaves so
 * many unanswered is stuck. */
#define REQUESTS_MAX (UINT32_C(1) << 20)

const struct worker_answer worker_answer_lost = {.outcome = WORKER_LOST,
                                                 .error = PROTO_ERROR_WORKER_LOST,
                                                 .text = MESSAGE_TEXT(worker_link_lost)};
const struct worker_answer worker_answer_session_ended = {
    .outcome = WORKER_SESSION_ENDED,
    .error = PROTO_ERROR_CONNECTION_LOST,
    .text = MESSAGE_TEXT(worker_link_client_ended)};

void worker_requests_close(struct worker_requests *requests)
{
    for (uint32_t i = 0; i < requests->count; i++)
        if (!requests->rows[i].answered)
            free(requests->rows[i].packet);
    free(requests->rows);
    *requests = (struct worker_requests){.last = requests->last};
}

/* Called only when the array is full, so that each row is moved once or twice in its life. */
static void rows_compact(struct worker_requests *requests)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < requests->count; i++)
        if (!requests->rows[i].answered)
            requests->rows[kept++] = requests->rows[i];
    requests->count = kept;
}

int worker_requests_reserve(struct worker_requests *requests)
{
    if (requests->kept >= REQUESTS_MAX)
        return -ENOBUFS;
    if (requests->count < requests->room)
        return 0;
    if (requests->kept <= requests->room / 2)
        rows_compact(requests);
    return array_reserve(requests->rows, requests->room, requests->count + 1);
}

uint64_t worker_requests_next(const struct worker_requests *requests)
{
    return requests->last + 1;
}

void worker_requests_add(struct worker_requests *requests, struct worker_request_row row)
{
    row.serial = ++requests->last;
    row.answered = row.cancelled = false;
    requests->rows[requests->count++] = row;
    requests->kept++;
    requests->outstanding++;
}

/* Index of the first row with this serial or a greater one. */
static uint32_t rows_search(const struct worker_requests *requests, uint64_t serial)
{
    uint32_t low = 0, high = requests->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (requests->rows[middle].serial < serial)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct worker_request_row *worker_requests_find(struct worker_requests *requests, uint64_t serial)
{
    uint32_t index = rows_search(requests, serial);
    if (index == requests->count || requests->rows[index].serial != serial ||
        requests->rows[index].answered)
        return NULL;
    return &requests->rows[index];
}

struct worker_request_row *worker_requests_after(struct worker_requests *requests, uint64_t serial)
{
    for (uint32_t i = rows_search(requests, serial + 1); i < requests->count; i++)
        if (!requests->rows[i].answered)
            return &requests->rows[i];
    return NULL;
}

void worker_requests_remove(struct worker_requests *requests, struct worker_request_row *row)
{
    if (!row->cancelled)
        requests->outstanding--;
    row->answered = true;
    free(row->packet);
    row->packet = NULL;
    if (--requests->kept == 0)
        requests->count = 0;
}

void worker_requests_end(struct worker_requests *requests, struct worker_request_row *row,
                         const struct worker_answer *answer)
{
    void (*reply)(void *context, const struct worker_answer *answer) = row->reply;
    void *context = row->context;
    worker_requests_remove(requests, row);
    if (reply)
        reply(context, answer);
}

void worker_requests_cancel(struct worker_requests *requests, struct worker_request_row *row)
{
    if (row->cancelled)
        return;
    row->cancelled = true;
    row->reply = NULL;
    free(row->packet);
    row->packet = NULL;
    requests->outstanding--;
}

void worker_requests_forget(struct worker_requests *requests, uint32_t client)
{
    for (struct worker_request_row *row = worker_requests_after(requests, 0); row;) {
        uint64_t serial = row->serial;
        if (row->client == client && row->cancelled)
            worker_requests_remove(requests, row);
        row = worker_requests_after(requests, serial);
    }
}
