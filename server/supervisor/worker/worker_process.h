/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * worker_process: starts gpushare-worker, and tells when it has ended.
 *
 * The worker's environment is scrubbed (common/cuda/driver_environment.h), and CUDA_VISIBLE_DEVICES
 * names the one device that the worker is for. The worker dies with the supervisor
 * (PR_SET_PDEATHSIG), so none outlives a stop. It keeps standard input, output and error, and no
 * other descriptor of the supervisor's.
 *
 * The worker's end is that of everything which could still write to the device: a process that it
 * began may have inherited the device's descriptors. So the worker has the writing end of a pipe,
 * which is inherited as they are, and the supervisor waits for the pipe's end too. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_WORKER_PROCESS_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_WORKER_PROCESS_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <stdbool.h>

#include <uv.h>

struct discovery_device;
struct settings;
struct worker_process;

/* status is waitpid's. */
typedef void worker_process_ended(void *context, int status);

/* Called from the loop. */
struct worker_process_events {
    /* The process has ended and is reaped, and one that it began still has what it inherited: the
     * device, and the channel too. ended follows when that one has ended. NULL: nobody asks. */
    worker_process_ended *held;
    /* The process has ended and is reaped, and no process that it began is left. The callee may
     * free the process. */
    worker_process_ended *ended;
    void *context;
};

/* The start of a worker. All but loop and events is needed only during the call. */
struct worker_process_options {
    uv_loop_t *loop;
    const struct settings *settings;
    /* Its device, the only one that the driver shows to it. */
    const struct discovery_device *found;
    /* Descriptors: of the page for its notes (common/cuda/activity.h), and of the memory for code
     * that outlives it (server/worker/code/cache/code_store.h; -1: none). */
    int activity, code;
    const char *standby; /* how far it goes before it waits to be told to serve: --standby */
    struct worker_process_events events;
};

/* Starts a worker. The descriptors in *options stay the caller's. *channel becomes the supervisor's
 * end of the socket pair, which the caller owns. Returns 0, or -errno with *process NULL. */
int worker_process_start(struct worker_process **process,
                         const struct worker_process_options *options, int *channel);

/* Somebody else is told when the process has ended. */
void worker_process_adopt(struct worker_process *process,
                          const struct worker_process_events *events);

/* A worker that an earlier supervisor started, and the descriptors that it held of it. */
struct worker_process_left {
    pid_t pid;
    int pidfd, barrier;
    uint32_t device; /* the driver's number */
};

/* Takes over such a worker, with its descriptors, which the process owns then, on failure too. Its
 * status is not to be had: it counts as 0. Returns as above. */
int worker_process_take_over(struct worker_process **process, uv_loop_t *loop,
                             const struct worker_process_left *left,
                             const struct worker_process_events *events);

/* Its pidfd and its barrier, for a later supervisor; both stay the process's. */
int worker_process_pidfd(const struct worker_process *process);
int worker_process_barrier(const struct worker_process *process);

/* 0: the process is reaped. */
pid_t worker_process_pid(const struct worker_process *process);

/* Whether it is reaped, and a process that it began still has what it inherited. */
bool worker_process_is_held(const struct worker_process *process);

/* Kills the process if it has not ended in this time. A later call does not change the time. */
void worker_process_expire(struct worker_process *process, uint64_t milliseconds);

/* Frees a process that has ended; the loop does so later. NULL is allowed. */
void worker_process_free(struct worker_process *process);

/* How a process ended: "exit status 1", "killed by signal 9 (Killed)". Returns text. */
enum { WORKER_PROCESS_END = 128 };
const char *worker_process_describe(int status, char text[WORKER_PROCESS_END]);

/* Whether that status is the end by a signal that a process brings upon itself, as SIGSEGV is, and
 * not one by which others end it, as SIGKILL is. */
bool worker_process_crashed(int status);

/* The options by which a worker, or its --list, is given the settings' address ranges: one word
 * each. */
struct worker_process_arena {
    char device_base[48], host_base[48], bytes[48];
};
void worker_process_name_arena(struct worker_process_arena *options,
                               const struct settings *settings);

/* Descriptors that a program is given: channel becomes its descriptor 3, activity 4, barrier 5,
 * code 6, and output its standard output. -1: none. */
struct worker_process_fds {
    int channel, activity, barrier, code, output;
    bool survives; /* it does not die with this process */
};

/* Starts a program with these descriptors. All others above 2 must be close-on-exec. environment
 * ends with NULL. Returns the pid or -errno. */
pid_t worker_process_spawn(const char *program, char *const words[], char *const environment[],
                           const struct worker_process_fds *fds);

#endif
