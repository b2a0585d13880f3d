/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/log_limit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

#define WINDOW_NS (LOG_LIMIT_SECONDS * UNITS_SECOND)
/* More clients than that, with lines in the same seconds, begin anew one after the other. */
enum { ROWS = 256 };

/* Lines of one client, or with client 0 of one user, since began_at. */
struct row {
    uint64_t began_at; /* 0: free */
    uint32_t client, uid;
    uint32_t lines, left_out;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct row rows[ROWS];          /* under the lock */
static struct log_limit_over over_now; /* under the lock: of a row that gave way */
static atomic_bool any_left_out;       /* so that most calls need no lock */

static bool is_over(const struct row *row, uint64_t now)
{
    return now - row->began_at >= WINDOW_NS;
}

/* The row of this client or user; that which began first gives way. */
static struct row *row_of(uint32_t client, uint32_t uid, uint64_t now)
{
    struct row *first = &rows[0];
    for (struct row *row = rows; row < rows + ROWS; row++) {
        if (row->began_at && row->client == client && row->uid == uid) {
            if (is_over(row, now) && !row->left_out)
                *row = (struct row){.began_at = now, .client = client, .uid = uid};
            return row;
        }
        if (row->began_at < first->began_at)
            first = row;
    }
    if (first->left_out && !over_now.left_out)
        over_now = (struct log_limit_over){first->client, first->uid, first->left_out};
    *first = (struct row){.began_at = now, .client = client, .uid = uid};
    return first;
}

static bool row_admits(struct row *row, uint32_t most)
{
    if (row->lines < most) {
        row->lines++;
        return true;
    }
    row->left_out++;
    any_left_out = true;
    return false;
}

bool log_limit_admits(uint32_t client, uint32_t uid, uint64_t now)
{
    pthread_mutex_lock(&lock);
    bool admits = row_admits(row_of(client, uid, now), LOG_LIMIT_CLIENT) &&
                  row_admits(row_of(0, uid, now), LOG_LIMIT_USER);
    pthread_mutex_unlock(&lock);
    return admits;
}

bool log_limit_over(uint64_t now, struct log_limit_over *over)
{
    if (!any_left_out)
        return false;
    pthread_mutex_lock(&lock);
    *over = over_now;
    over_now = (struct log_limit_over){0};
    bool waits = false;
    for (struct row *row = rows; row < rows + ROWS; row++) {
        if (!row->left_out)
            continue;
        if (!over->left_out && is_over(row, now)) {
            *over = (struct log_limit_over){row->client, row->uid, row->left_out};
            *row = (struct row){0};
        } else {
            waits = true;
        }
    }
    any_left_out = waits;
    pthread_mutex_unlock(&lock);
    return over->left_out != 0;
}

void log_limit_reset(void)
{
    pthread_mutex_lock(&lock);
    memset(rows, 0, sizeof rows);
    over_now = (struct log_limit_over){0};
    any_left_out = false;
    pthread_mutex_unlock(&lock);
}
