/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/log_limit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

#define WINDOW_NS (LOG_LIMIT_SECONDS * UNITS_SECOND)
/* More clients or users than that, with lines in the same seconds, begin anew one after the other.
 */
enum { CLIENTS = 256, USERS = 64 };

/* Lines of one client, or with client 0 of one user, since began_at. */
struct row {
    uint64_t began_at; /* 0: free */
    uint32_t client, uid;
    uint32_t lines, left_out;
};

/* Users stand apart, so that no number of a user's clients has its own row give way. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct row clients[CLIENTS], users[USERS]; /* under the lock */
static struct log_limit_over over_now;            /* under the lock: of a row that gave way */
static atomic_bool any_left_out;                  /* so that most calls need no lock */

static bool is_over(const struct row *row, uint64_t now)
{
    return now - row->began_at >= WINDOW_NS;
}

/* The row of this client or user; that which began first gives way. */
static struct row *row_of(struct row *rows, size_t count, struct row wanted)
{
    struct row *first = &rows[0];
    for (struct row *row = rows; row < rows + count; row++) {
        if (row->began_at && row->client == wanted.client && row->uid == wanted.uid) {
            if (is_over(row, wanted.began_at) && !row->left_out)
                *row = wanted;
            return row;
        }
        if (row->began_at < first->began_at)
            first = row;
    }
    if (first->left_out && !over_now.left_out)
        over_now = (struct log_limit_over){first->client, first->uid, first->left_out};
    *first = wanted;
    return first;
}

static bool has_room(struct row *row, uint32_t most)
{
    if (row->lines < most)
        return true;
    row->left_out++;
    any_left_out = true;
    return false;
}

/* A user whose lines are left out needs no rows for new clients, which would take those of others.
 */
static bool admits(uint32_t client, uint32_t uid, uint64_t now)
{
    struct row *user = row_of(users, USERS, (struct row){.began_at = now, .uid = uid});
    if (!has_room(user, LOG_LIMIT_USER))
        return false;
    struct row *own =
        row_of(clients, CLIENTS, (struct row){.began_at = now, .client = client, .uid = uid});
    if (!has_room(own, LOG_LIMIT_CLIENT))
        return false;
    user->lines++;
    own->lines++;
    return true;
}

bool log_limit_admits(uint32_t client, uint32_t uid, uint64_t now)
{
    pthread_mutex_lock(&lock);
    const bool admitted = admits(client, uid, now);
    pthread_mutex_unlock(&lock);
    return admitted;
}

/* Takes the count of a row whose time is over, if *over has none yet. Returns whether others wait.
 */
static bool take_over(struct row *rows, size_t count, uint64_t now, struct log_limit_over *over)
{
    bool waits = false;
    for (struct row *row = rows; row < rows + count; row++) {
        if (!row->left_out)
            continue;
        if (!over->left_out && is_over(row, now)) {
            *over = (struct log_limit_over){row->client, row->uid, row->left_out};
            *row = (struct row){0};
        } else {
            waits = true;
        }
    }
    return waits;
}

bool log_limit_over(uint64_t now, struct log_limit_over *over)
{
    if (!any_left_out)
        return false;
    pthread_mutex_lock(&lock);
    *over = over_now;
    over_now = (struct log_limit_over){0};
    const bool client_waits = take_over(clients, CLIENTS, now, over);
    any_left_out = take_over(users, USERS, now, over) || client_waits;
    pthread_mutex_unlock(&lock);
    return over->left_out != 0;
}

void log_limit_reset(void)
{
    pthread_mutex_lock(&lock);
    memset(clients, 0, sizeof clients);
    memset(users, 0, sizeof users);
    over_now = (struct log_limit_over){0};
    any_left_out = false;
    pthread_mutex_unlock(&lock);
}
