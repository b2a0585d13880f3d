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
    char *cgroup;     /* path in our hierarchy; NULL: not known */
    char program[16]; /* the process's name, comm of proc(5); "": not known */
};

/*
 * A pidfd of the socket's peer, whose pid is what SO_PEERCRED gave; -1: there is none. A kernel
 * before 6.5 has no SO_PEERPIDFD. Then it is opened by the pid, and *by_number is set: it is of
 * another process if the peer had ended by then and its pid was in use again. So the caller asks
 * soon after the connection was made; identity_began_before shows it later.
 */
int identity_pidfd(int fd, pid_t pid, bool *by_number);

/* Whether the process that has this pid now began before that time of clock_now, which the kernel
 * says to a hundredth of a second. If it did not, another process had the pid at that time. */
bool identity_began_before(pid_t pid, uint64_t time);

/*
 * Reads the identity of a socket's peer. pid and uid are what SO_PEERCRED gave. pidfd is of the
 * same process; with -1 nothing shows whether the pid belongs to another process by now, so what
 * is found by the pid is not known. Members that can't be read are set to "not known", never
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
