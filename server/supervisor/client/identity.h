/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * identity: a client's identity for the rules of a configuration, as the kernel reports it. Loop
 * thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CLIENT_IDENTITY_H
#define GPUSHARE_SERVER_SUPERVISOR_CLIENT_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Groups of a client that are read; a client with more of them matches every gid. */
#define IDENTITY_GROUPS_MAX 256

struct identity {
    bool known;     /* false: its pid or uid is not visible from our namespaces */
    uint32_t *gids; /* its gid and its supplementary groups; NULL: not known */
    size_t gid_count;
    char *cgroup; /* path in our hierarchy; NULL: not known */
};

/*
 * Reads the identity of a socket's peer. pid and uid are what SO_PEERCRED gave. pidfd is of the
 * same process, or -1 where the kernel (before 6.5) has none; then nothing shows whether the pid
 * belongs to another process by now. Members that can't be read are set to "not known", never
 * guessed. The caller ends with identity_free.
 */
void identity_read(struct identity *identity, int fd, pid_t pid, uid_t uid, int pidfd);

/* Whether a client can be identified as this user's. False for the uid that the kernel shows for
 * every user that is not mapped into our namespace. */
bool identity_uid_is_seen(uint32_t uid);

/* Frees what identity_read has read, and sets all to "not known". Idempotent; zeroed memory will
 * do. */
void identity_free(struct identity *identity);

/* The path in a text like /proc/PID/cgroup's: that of version 2, else of systemd's own hierarchy. A
 * new string, which the caller frees; or NULL if there is none or no memory. */
char *identity_cgroup(const char *text);

#endif
