/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * worker_process: starting gpushare-worker, and knowing when it has ended.
 *
 * Its environment is scrubbed: no CUDA_MPS_* of the administrator's reaches the
 * driver, CUDA_MPS_PIPE_DIRECTORY points nowhere, modules load eagerly and there
 * are 32 queues. It dies with the supervisor (PR_SET_PDEATHSIG), so none outlives
 * a stop. It keeps standard error and nothing else of the supervisor's.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_PROCESS_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

struct settings;
struct worker_process;

/* status: as waitpid gives it. The process is reaped; it may be freed in the callback. */
typedef void worker_process_ended(void *context, int status);

/*
 * Starts a worker for the device of this ordinal. *channel becomes the supervisor's
 * end of its socket pair, owned by the caller. Returns 0 or -errno.
 */
int worker_process_start(struct worker_process **process, uv_loop_t *loop,
                         const struct settings *settings, uint32_t ordinal, int *channel,
                         worker_process_ended *ended, void *context);

pid_t worker_process_pid(const struct worker_process *process);

/* It is killed if it has not ended in this time. Repeated calls do not extend it. */
void worker_process_expire(struct worker_process *process, uint64_t milliseconds);

/* After it ended. NULL is allowed. */
void worker_process_free(struct worker_process *process);

/* "exited with status 1", "was killed by signal 9 (Killed)". Returns text. */
enum { WORKER_PROCESS_END = 128 };
const char *worker_process_describe(int status, char text[WORKER_PROCESS_END]);

/*
 * fork and exec: channel becomes descriptor 3, every other but 0 to 2 is closed on
 * exec by its own flag. Returns the pid or -errno. environment ends with NULL.
 */
pid_t worker_process_spawn(const char *program, char *const words[], char *const environment[],
                           int channel, int output);

/* The scrubbed copy of an environment; one allocation, for free(). NULL: no memory. */
char **worker_process_environment(char *const environment[]);

#endif
