/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/worker/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cuda/driver_environment.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/worker/discovery.h"
#include "server/supervisor/settings.h"

#define TEXT_OF(number) #number
#define TEXT(macro)     TEXT_OF(macro)

/* child_start tells the worker these numbers. */
#define CHANNEL_FD  3
#define ACTIVITY_FD 4
#define BARRIER_FD  5 /* nothing is told of it: it is held, and inherited */
#define CODE_FD     6

/* A worker's helpers end with it. */
enum { BARRIER_NOTICE_MS = 1000 };

struct worker_process {
    uv_poll_t poll;
    uv_poll_t barrier_poll;
    uv_timer_t timer;
    unsigned open_handles;
    int pidfd;
    int barrier; /* the pipe's reading end */
    bool alone;  /* no process has the other end any more */
    pid_t pid;   /* 0: reaped */
    int status;  /* then */
    uint32_t device;
    struct worker_process_events events;
};

/* Moves a descriptor out of the way of those that are placed; -1 stays. */
static int descriptor_move(int from)
{
    int moved = from < 0 ? from : fcntl(from, F_DUPFD_CLOEXEC, CODE_FD + 1);
    if (from >= 0 && moved < 0)
        _exit(126);
    return moved;
}

/* Gives the descriptor this number in the program, unless it is -1. */
static void descriptor_place(int from, int to)
{
    if (from >= 0 && dup2(from, to) < 0)
        _exit(126);
}

/* Runs in the child between fork and exec, so it may call only what a signal handler may. Exit
 * statuses are a shell's: 126 for a child that can't be prepared, 127 for a program that can't be
 * executed. */
static void worker_exec(const char *program, char *const words[], char *const environment[],
                        const struct worker_process_fds *fds, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    /* A group of its own: the supervisor decides when a worker ends, not a signal to its group. */
    setpgid(0, 0);
    if (!fds->survives && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(126);
    /* The supervisor may have died before prctl took effect. */
    if (!fds->survives && getppid() != parent)
        _exit(126);
    if (fds->output >= 0 && dup2(fds->output, STDOUT_FILENO) < 0)
        _exit(126);
    /* One may have the number that another is to have. */
    int channel = descriptor_move(fds->channel), activity = descriptor_move(fds->activity);
    int barrier = descriptor_move(fds->barrier), code = descriptor_move(fds->code);
    descriptor_place(channel, CHANNEL_FD);
    descriptor_place(activity, ACTIVITY_FD);
    descriptor_place(barrier, BARRIER_FD);
    descriptor_place(code, CODE_FD);
    execve(program, words, environment);
    _exit(127);
}

pid_t worker_process_spawn(const char *program, char *const words[], char *const environment[],
                           const struct worker_process_fds *fds)
{
    sigset_t all, before;
    pid_t parent = getpid();
    /* No signal handler of the loop may run in the child. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        worker_exec(program, words, environment, fds, parent);
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid < 0 ? -saved : pid;
}

/* An administrator may have to end it. */
static void barrier_late(uv_timer_t *timer)
{
    const struct worker_process *process = timer->data;
    log_warning(MESSAGE_TEXT(log_device_held), process->device);
}

static void end_when_alone(struct worker_process *process)
{
    if (process->pid || !process->alone)
        return;
    uv_timer_stop(&process->timer);
    process->events.ended(process->events.context, process->status);
}

/* Asks the pipe itself: the loop may tell of the process's end before it tells of the pipe's. */
static void look_at_barrier(struct worker_process *process)
{
    struct pollfd barrier = {.fd = process->barrier, .events = POLLIN};
    if (process->alone || poll(&barrier, 1, 0) <= 0)
        return;
    process->alone = true;
    uv_poll_stop(&process->barrier_poll);
}

static void process_reap(uv_poll_t *poll, int status, int events)
{
    struct worker_process *process = poll->data;
    int wait_status;
    (void)status;
    (void)events;
    pid_t reaped = waitpid(process->pid, &wait_status, WNOHANG);
    if (reaped < 0 && errno == ECHILD)
        wait_status = 0; /* the child of an earlier supervisor: its pidfd says that it has ended */
    else if (reaped != process->pid)
        return;
    process->pid = 0;
    process->status = wait_status;
    uv_poll_stop(&process->poll);
    uv_timer_stop(&process->timer);
    look_at_barrier(process);
    if (process->alone) {
        end_when_alone(process);
        return;
    }
    uv_timer_start(&process->timer, barrier_late, BARRIER_NOTICE_MS, 0);
    if (process->events.held)
        process->events.held(process->events.context, process->status);
}

static void barrier_ended(uv_poll_t *poll, int status, int events)
{
    struct worker_process *process = poll->data;
    (void)status;
    (void)events;
    process->alone = true;
    uv_poll_stop(&process->barrier_poll);
    end_when_alone(process);
}

static void handle_closed(uv_handle_t *handle)
{
    struct worker_process *process = handle->data;
    if (--process->open_handles)
        return;
    close(process->pidfd);
    close(process->barrier);
    free(process);
}

void worker_process_free(struct worker_process *process)
{
    if (!process)
        return;
    uv_close((uv_handle_t *)&process->poll, handle_closed);
    uv_close((uv_handle_t *)&process->barrier_poll, handle_closed);
    uv_close((uv_handle_t *)&process->timer, handle_closed);
}

static void process_expired(uv_timer_t *timer)
{
    struct worker_process *process = timer->data;
    if (process->pid)
        syscall(SYS_pidfd_send_signal, process->pidfd, SIGKILL, NULL, 0);
}

void worker_process_expire(struct worker_process *process, uint64_t milliseconds)
{
    if (!uv_is_active((uv_handle_t *)&process->timer))
        uv_timer_start(&process->timer, process_expired, milliseconds, 0);
}

void worker_process_adopt(struct worker_process *process,
                          const struct worker_process_events *events)
{
    process->events = *events;
}

pid_t worker_process_pid(const struct worker_process *process)
{
    return process->pid;
}

bool worker_process_is_held(const struct worker_process *process)
{
    return !process->pid && !process->alone;
}

int worker_process_pidfd(const struct worker_process *process)
{
    return process->pidfd;
}

int worker_process_barrier(const struct worker_process *process)
{
    return process->barrier;
}

/* Makes the process known to the loop. */
static int process_watch(struct worker_process *process, uv_loop_t *loop)
{
    if (process->pidfd < 0)
        process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->pidfd < 0)
        return -errno;
    int result = uv_poll_init(loop, &process->poll, process->pidfd);
    if (result < 0) {
        close(process->pidfd);
        return result;
    }
    /* A descriptor that the loop takes once it takes again. */
    uv_poll_init(loop, &process->barrier_poll, process->barrier);
    uv_timer_init(loop, &process->timer);
    process->poll.data = process->barrier_poll.data = process->timer.data = process;
    process->open_handles = 3;
    uv_poll_start(&process->poll, UV_READABLE, process_reap);
    uv_poll_start(&process->barrier_poll, UV_READABLE | UV_DISCONNECT, barrier_ended);
    return 0;
}

void worker_process_name_arena(struct worker_process_arena *options,
                               const struct settings *settings)
{
    snprintf(options->device_base, sizeof options->device_base, "--device-base=0x%" PRIx64,
             settings->device_base);
    snprintf(options->host_base, sizeof options->host_base, "--host-base=0x%" PRIx64,
             settings->host_base);
    snprintf(options->bytes, sizeof options->bytes, "--arena-bytes=0x%" PRIx64,
             settings->arena_bytes);
}

static pid_t child_start(const struct worker_process_options *options,
                         const struct worker_process_fds *fds)
{
    const struct settings *settings = options->settings;
    const struct discovery_device *found = options->found;
    /* A process sees one MIG instance alone, and starts faster if it leaves the other GPUs be. */
    char name[LIMITS_UUID_TEXT], visible[64], uuid[2 * LIMITS_UUID_BYTES + 1];
    limits_format_uuid(found->uuid, name);
    snprintf(visible, sizeof visible, "CUDA_VISIBLE_DEVICES=%s%s", found->mig ? "MIG-" : "GPU-",
             name + strlen("GPU-"));
    for (size_t i = 0; i < LIMITS_UUID_BYTES; i++)
        snprintf(uuid + 2 * i, 3, "%02x", found->uuid[i]);
    char device[16], heap[32], images[32], seconds[16], compile[32];
    struct worker_process_arena arena;
    worker_process_name_arena(&arena, settings);
    char orphan[16];
    snprintf(orphan, sizeof orphan, "%" PRIu32, settings->orphan_seconds);
    snprintf(device, sizeof device, "%" PRIu32, found->ordinal);
    snprintf(heap, sizeof heap, "%" PRIu64, settings->kernel_heap);
    snprintf(images, sizeof images, "%" PRIu64, settings->image_memory);
    snprintf(seconds, sizeof seconds, "%" PRIu32, settings->compile_seconds);
    snprintf(compile, sizeof compile, "%" PRIu64, settings->compile_memory);
    const char *words[] = {settings->worker,
                           "--driver",
                           settings->driver,
                           "--device",
                           device,
                           "--uuid",
                           uuid,
                           arena.device_base,
                           arena.host_base,
                           arena.bytes,
                           "--image-memory",
                           images,
                           "--kernel-heap",
                           heap,
                           "--compile-time",
                           seconds,
                           "--compile-memory",
                           compile,
                           "--channel-fd",
                           TEXT(CHANNEL_FD),
                           "--activity-fd",
                           TEXT(ACTIVITY_FD),
                           "--standby",
                           options->standby,
                           "--orphan-limit",
                           settings->keeps ? orphan : "0",
                           fds->code < 0 ? NULL : "--code-fd",
                           TEXT(CODE_FD),
                           NULL};
    char **environment = driver_environment_copy(environ, visible);
    if (!environment)
        return -ENOMEM;
    pid_t pid =
        worker_process_spawn(settings->worker, (char *const *)(uintptr_t)words, environment, fds);
    free(environment);
    return pid;
}

/* The socket pair of a worker, and the pipe that tells when nothing of it is left. Returns false
 * with errno. */
static bool pairs_make(int pair[2], int barrier[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    if (pipe2(barrier, O_CLOEXEC) == 0)
        return true;
    int saved = errno;
    close(pair[0]);
    close(pair[1]);
    errno = saved;
    return false;
}

int worker_process_start(struct worker_process **out, const struct worker_process_options *options,
                         int *channel)
{
    int pair[2], barrier[2];
    *out = NULL;
    struct worker_process *process = calloc(1, sizeof *process);
    if (!process)
        return -ENOMEM;
    if (!pairs_make(pair, barrier)) {
        int saved = errno;
        free(process);
        return -saved;
    }
    const struct worker_process_fds fds = {.channel = pair[1],
                                           .activity = options->activity,
                                           .barrier = barrier[1],
                                           .code = options->code,
                                           .output = -1,
                                           .survives = options->settings->keeps};
    *process = (struct worker_process){.events = options->events,
                                       .pidfd = -1,
                                       .device = options->found->ordinal,
                                       .barrier = barrier[0],
                                       .pid = child_start(options, &fds)};
    close(pair[1]);
    close(barrier[1]);
    int result = process->pid < 0 ? process->pid : process_watch(process, options->loop);
    if (result < 0) {
        if (process->pid > 0) {
            kill(process->pid, SIGKILL);
            waitpid(process->pid, NULL, 0);
        }
        close(pair[0]);
        close(barrier[0]);
        free(process);
        return result;
    }
    *channel = pair[0];
    *out = process;
    return 0;
}

int worker_process_take_over(struct worker_process **out, uv_loop_t *loop,
                             const struct worker_process_left *left,
                             const struct worker_process_events *events)
{
    *out = NULL;
    struct worker_process *process = calloc(1, sizeof *process);
    if (!process) {
        close(left->pidfd);
        close(left->barrier);
        return -ENOMEM;
    }
    *process = (struct worker_process){.pid = left->pid,
                                       .pidfd = left->pidfd,
                                       .barrier = left->barrier,
                                       .device = left->device,
                                       .events = *events};
    int result = process_watch(process, loop);
    if (result < 0) {
        close(left->barrier);
        free(process);
        return result;
    }
    *out = process;
    return 0;
}

bool worker_process_crashed(int status)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; WIFSIGNALED(status) && i < sizeof crashes / sizeof *crashes; i++)
        if (WTERMSIG(status) == crashes[i])
            return true;
    return false;
}

const char *worker_process_describe(int status, char text[WORKER_PROCESS_END])
{
    if (WIFSIGNALED(status))
        snprintf(text, WORKER_PROCESS_END, MESSAGE_TEXT(process_killed), WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == 127)
        snprintf(text, WORKER_PROCESS_END, MESSAGE_TEXT(process_unexecuted));
    else
        snprintf(text, WORKER_PROCESS_END, MESSAGE_TEXT(process_exited), WEXITSTATUS(status));
    return text;
}
