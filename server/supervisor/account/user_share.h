/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * user_share: what all clients of one user may hold together of file descriptors and of memory for
 * module images.
 *
 * The quotas of a client stand under those of its user's share, and these under the server's. So
 * a user who connects many times gets no more than the share. A share exists while it has members.
 * One thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_USER_SHARE_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_USER_SHARE_H

#include <stdint.h>
#include <sys/types.h>

#include "server/supervisor/account/quota.h"

struct user_share {
    struct quota fds;    /* descriptors for handles, buffers and modules */
    struct quota images; /* bytes */
    struct user_share *next;
    uid_t uid;
    uint32_t members;
    uint32_t restored;  /* of its clients, those that the latest worker has been told of */
    uint64_t next_look; /* of clock_now; other clients are looked at for idle memory not before */
    char fds_name[64], images_name[64];
};

/* All zero: there are none. */
struct user_shares {
    struct user_share *first;
};

/* Three quarters of a whole, so that one user can't take all of it; at least 1 if the whole is. */
uint64_t user_share_part(uint64_t whole);

/*
 * Counts one more client of the user. The first one makes the share, whose quotas stand under
 * *fds and *images with user_share_part of their limits. Returns NULL if there is no memory;
 * otherwise user_share_leave must follow.
 */
struct user_share *user_share_join(struct user_shares *shares, uid_t uid, struct quota *fds,
                                   struct quota *images);

/* A client, whose quotas under the share are closed, counts no longer. NULL is allowed. */
void user_share_leave(struct user_shares *shares, struct user_share *share);

#endif
