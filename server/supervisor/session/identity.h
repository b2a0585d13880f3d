/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * identity: a client's identity for the rules of a configuration, as the kernel reports it.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_IDENTITY_H
#define GPUSHARE_SERVER_SUPERVISOR_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Members of a client's groups that are looked at; a client with more matches every gid. */
#define IDENTITY_GROUPS_MAX 256

struct identity {
    bool known;     /* false: its pid or uid has no name in our namespaces */
    uint32_t *gids; /* its own and its supplementary groups; NULL: not known */
    size_t gid_count;
    char *cgroup; /* path in our hierarchy; NULL: not known */
};

/*
 * Reads it of the peer of a socket: pid and uid as SO_PEERCRED gave them; pidfd of the same
 * process, or -1 where the kernel (before 6.5) has none, so that it can't be told whether the
 * pid has meanwhile gone to another process. What can't be read is not known, never guessed.
 */
void identity_read(struct identity *identity, int fd, pid_t pid, uid_t uid, int pidfd);

/* Can a client be seen to be this user's? Not where it stands for all who can't be seen. */
bool identity_uid_is_seen(uint32_t uid);

void identity_free(struct identity *identity);

/* The path in a text like /proc/PID/cgroup's: of version 2, else of systemd's own hierarchy; a new
 * string, or NULL. */
char *identity_cgroup(const char *text);

#endif
