/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/user_share.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t user_share_part(uint64_t whole)
{
    return whole - whole / 4;
}

static struct user_share *share_make(uid_t uid, struct quota *fds, struct quota *images)
{
    struct user_share *share = calloc(1, sizeof *share);
    if (!share)
        return NULL;
    share->uid = uid;
    snprintf(share->fds_name, sizeof share->fds_name,
             "file descriptors of all clients of user %u together", (unsigned)uid);
    snprintf(share->images_name, sizeof share->images_name,
             "module image memory of all clients of user %u together", (unsigned)uid);
    quota_open(&share->fds, share->fds_name, user_share_part(fds->limit), fds);
    quota_open(&share->images, share->images_name, user_share_part(images->limit), images);
    return share;
}

struct user_share *user_share_join(struct user_shares *shares, uid_t uid, struct quota *fds,
                                   struct quota *images)
{
    struct user_share *share = shares->first;
    while (share && share->uid != uid)
        share = share->next;
    if (!share) {
        share = share_make(uid, fds, images);
        if (!share)
            return NULL;
        share->next = shares->first;
        shares->first = share;
    }
    share->members++;
    return share;
}

void user_share_leave(struct user_shares *shares, struct user_share *share)
{
    struct user_share **link = &shares->first;
    if (!share || --share->members)
        return;
    while (*link != share)
        link = &(*link)->next;
    *link = share->next;
    quota_close(&share->fds);
    quota_close(&share->images);
    free(share);
}
