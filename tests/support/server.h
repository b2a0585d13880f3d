/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * server: a private gpushared for one test, with its own folder, sockets, log and worker. Tests
 * that run at the same time share nothing. One thread.
 *
 * Built programs are found through $BUILD, which tests/run sets.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_SERVER_H
#define GPUSHARE_TESTS_SUPPORT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct server;

/*
 * Starts gpushared (on server_driver()) and waits until it says READY=1 on a
 * NOTIFY_SOCKET of the test's own. args: further options, env: further
 * "NAME=value" settings (SOFTGPU_* and server limits); both end with NULL, and may
 * be NULL.
 *
 * The caller's environment is not passed on but for PATH, LD_LIBRARY_PATH and the
 * sanitizers' options; $TEST_SOFTGPU has more settings for every server, which those of env
 * override ("SOFTGPU_STRICT=1 SOFTGPU_SEED=7"). Fails the test (prints the log and aborts) if the
 * server does not come up. "--driver" among args replaces it.
 */
struct server *server_start(const char *const args[], const char *const env[]);

/*
 * Like server_start, under a service manager that this process plays (fd_store.h): it opens the
 * sockets and keeps what the server stores, so that server_replace can follow. Workers that outlive
 * a server become this process's children.
 */
struct server *server_start_kept(const char *const args[], const char *const env[]);

/* Sends the signal to a server of server_start_kept, waits for its end, and starts the next one,
 * which is ready on return. Returns the exit status of the one that ended, 128 and more: by a
 * signal. server_pid is the next one's. */
int server_replace(struct server *server, int signal);

/* Servers that are started from now on may have this many descriptors, and can't raise the
 * limit. 0: as this program. */
void server_limit_descriptors(unsigned most);

/* Like server_start, for a server that is expected to refuse to start. Returns its exit status.
 * The caller frees *log. */
int server_start_refused(const char *const args[], const char *const env[], char **log);

const char *server_socket(const struct server *server);
const char *server_admin_socket(const struct server *server);
pid_t server_pid(const struct server *server);

/* Returns the log so far, which the caller frees. */
char *server_log(const struct server *server);

/* Waits until the log contains this text. Returns false after patience_seconds(10). */
bool server_log_wait(const struct server *server, const char *text);

/* Writes the pids of the server's living workers, at most `most`. Returns their number. */
size_t server_workers(const struct server *server, pid_t *pids, size_t most);

/* Writes the pids of a process's children, started by any of its threads, zombies too, whose own
 * name begins with this one (NULL: any), at most `most`. Returns their number. */
size_t server_children(pid_t parent, const char *name, pid_t *pids, size_t most);

/* Returns the number of open descriptors of a process. */
size_t server_fd_count(pid_t pid);

/* Returns the bytes of pages that the server's shared memory has, where the process has a
 * descriptor of it: rings, timelines, buffers, module images. */
uint64_t server_shared_bytes(pid_t pid);

/*
 * Stops the server with SIGTERM, waits, checks that no worker and no socket is left, and frees it.
 * Returns the exit status: 0 if all is well; not 0 under a sanitizer that found a leak.
 */
int server_stop(struct server *server);

/* The teardown of a case, or of a program, whose setup left the server in *state: server_stop. */
int server_teardown(void **state);

/* The driver on which servers start unless args name one: $TEST_DRIVER, which the GPU bundle
 * sets, or softgpu. */
const char *server_driver(void);

/* Skips the program (exit status 77) if that driver is not the software GPU. For main(), before
 * any test. */
void server_needs_softgpu(void);

/* Kills the server with SIGKILL, waits until it and its workers have ended by themselves,
 * removes the folder, and frees the server. */
void server_kill(struct server *server);

/* Writes $BUILD/relative (build/relative without $BUILD) into buffer, of size bytes. Returns
 * buffer. */
const char *server_build_path(const char *relative, char *buffer, size_t size);

#endif
