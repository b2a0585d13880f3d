/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * server: a private gpushared for one test: its own folder, sockets, log and
 * worker; nothing is shared with any other test that runs at the same time.
 *
 * Built programs are found through $BUILD (tests/run sets it).
 */
#ifndef GPUSHARE_TESTS_SUPPORT_SERVER_H
#define GPUSHARE_TESTS_SUPPORT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct server;

/*
 * Starts gpushared (on server_driver()) and waits until it says READY=1 on a
 * NOTIFY_SOCKET of the test's own. args: further options, env: further
 * "NAME=value" settings (SOFTGPU_* and server limits); both end with NULL, and may
 * be NULL. The caller's environment is not passed on but for PATH, LD_LIBRARY_PATH and the
 * sanitizers' options; $TEST_SOFTGPU has more settings for every server, which those of env
 * override ("SOFTGPU_STRICT=1 SOFTGPU_SEED=7"). Fails the test (prints the log and aborts) if the
 * server does not come up. "--driver" among args replaces it.
 */
struct server *server_start(const char *const args[], const char *const env[]);

/* Servers started from now on may have so many descriptors, and no more by asking; 0: as this
 * program. */
void server_limit_descriptors(unsigned most);

/* Like server_start, for a server that is expected to refuse: returns its exit status; *log is
 * malloc'ed. */
int server_start_refused(const char *const args[], const char *const env[], char **log);

const char *server_socket(const struct server *server);
const char *server_admin_socket(const struct server *server);
pid_t server_pid(const struct server *server);

/* The log so far, malloc'ed. */
char *server_log(const struct server *server);

/* Waits until the log holds this text; false after ten seconds. */
bool server_log_wait(const struct server *server, const char *text);

/* pids of the server's living children (workers); returns how many. */
size_t server_workers(const struct server *server, pid_t *pids, size_t most);

/* Open descriptors of a process. */
size_t server_fd_count(pid_t pid);

/*
 * SIGTERM, waits, checks that no worker and no socket is left, frees. Returns the
 * exit status (0 when all is well; under sanitizers a leak makes it non-zero).
 */
int server_stop(struct server *server);

/* What servers are started on when args do not say: $TEST_DRIVER (the GPU bundle sets it), or
 * softgpu. */
const char *server_driver(void);

/* Skips the program (exit status 77) when that is not the software GPU. For main(), before any
 * test. */
void server_needs_softgpu(void);

/* SIGKILL instead of a stop: waits for it and for its workers to end by themselves, removes the
 * folder, frees. */
void server_kill(struct server *server);

/* $BUILD/relative, in a static buffer a call site may use at once. */
const char *server_build_path(const char *relative, char *buffer, size_t size);

#endif
