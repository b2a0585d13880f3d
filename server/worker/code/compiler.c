/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/worker/calls/activity.h"

/* Two processes may work at a time, so a quarter of the machine together. */
enum { MACHINE_PART = 8 };
#define MEMORY_LEAST (UINT64_C(512) << 20)

/* A process at work, as the thread sees it that waits for it. */
struct run {
    struct compiler *compiler;
    struct compiler_seat *seat;
    pid_t pid;
    int answers;       /* the end of the pipe that is read */
    uint64_t deadline; /* ns of clock_now */
};

uint32_t compiler_open(struct compiler *compiler, const struct compiler_options *options,
                       struct error *why)
{
    *compiler = (struct compiler){
        .options = *options, .ended = compiler->ended, .context = compiler->context, .stop = -1};
    if (!compiler->options.seconds)
        compiler->options.seconds = COMPILER_SECONDS;
    if (!compiler->options.memory)
        compiler->options.memory = max(machine_memory() / MACHINE_PART, MEMORY_LEAST);
    pthread_mutex_init(&compiler->lock, NULL);
    int error = code_cache_open(&compiler->cache, options->store);
    if (error == 0 && (compiler->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        error = -errno;
    if (error == 0)
        return 0;
    code_cache_close(&compiler->cache);
    pthread_mutex_destroy(&compiler->lock);
    return error_set(why, MESSAGE(compiler_unopened), strerror(-error));
}

bool compiler_is_open(const struct compiler *compiler)
{
    return compiler->stop >= 0;
}

void compiler_close(struct compiler *compiler)
{
    if (!compiler_is_open(compiler))
        return;
    code_cache_close(&compiler->cache);
    pthread_mutex_destroy(&compiler->lock);
    close(compiler->stop);
    compiler->stop = -1;
}

void compiler_stop(struct compiler *compiler)
{
    if (compiler_is_open(compiler))
        eventfd_write(compiler->stop, 1);
}

void compiler_trim(struct compiler *compiler, uint64_t room)
{
    if (compiler_is_open(compiler))
        code_cache_trim(&compiler->cache, room);
}

/* ---- the process begins ---- */

/* The text as a file that no longer changes, with its NUL. Returns -errno. */
static int make_file(const char *text)
{
    size_t bytes = strlen(text) + 1;
    int fd = memfd_create("gpushare-ptx", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    for (size_t done = 0; done < bytes;) {
        ssize_t put = write(fd, text + done, bytes - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            int saved = put < 0 ? errno : EIO;
            close(fd);
            return -saved;
        }
        done += (size_t)put;
    }
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    return fd;
}

/* Signals that this process ignores or blocks are the child's to have. */
static int spawn_with(const struct compiler_options *options, char *const words[], int text,
                      int answers, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawn_file_actions_adddup2(&actions, text, COMPILER_TEXT_FD);
    posix_spawn_file_actions_adddup2(&actions, answers, COMPILER_ANSWER_FD);
    int error = posix_spawn(pid, options->program, &actions, &attributes, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -error;
}

static int spawn_words(const struct compiler_options *options, int text, int answers, pid_t *pid)
{
    char device[16], seconds[16], memory[32], parent[16];
    snprintf(device, sizeof device, "%d", options->device);
    snprintf(seconds, sizeof seconds, "%u", options->seconds);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)options->memory);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    const char *words[] = {"gpushare-worker",
                           "--compile",
                           parent,
                           "--driver",
                           options->driver,
                           "--device",
                           device,
                           "--compile-time",
                           seconds,
                           "--compile-memory",
                           memory,
                           options->uuid ? "--uuid" : NULL,
                           options->uuid,
                           NULL};
    return spawn_with(options, (char *const *)(uintptr_t)words, text, answers, pid);
}

/* Numbers that the child gives its own descriptors are no numbers of ours there, or one would be
 * closed by the other. */
static int move_up(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, COMPILER_ANSWER_FD + 1);
    int saved = errno;
    close(fd);
    return moved < 0 ? -saved : moved;
}

static int run_begin(struct run *run, const char *text)
{
    int pipe[2];
    int file = make_file(text);
    if (file >= 0)
        file = move_up(file);
    if (file < 0)
        return file;
    if (pipe2(pipe, O_CLOEXEC) < 0) {
        int saved = errno;
        close(file);
        return -saved;
    }
    run->answers = pipe[0];
    int write_end = move_up(pipe[1]);
    int error = write_end < 0 ? write_end
                              : spawn_words(&run->compiler->options, file, write_end, &run->pid);
    pthread_mutex_lock(&run->compiler->lock);
    run->seat->pid = error < 0 ? 0 : run->pid;
    if (run->seat->gone && run->seat->pid)
        kill(run->pid, SIGKILL);
    pthread_mutex_unlock(&run->compiler->lock);
    if (write_end >= 0)
        close(write_end);
    close(file);
    if (error < 0)
        close(run->answers);
    run->deadline = compiler_deadline(run->compiler);
    return error;
}

/* ---- and answers ---- */

/* Whether the process was ended since nobody waits for it. */
static bool run_is_gone(const struct run *run)
{
    pthread_mutex_lock(&run->compiler->lock);
    bool gone = run->seat->gone;
    pthread_mutex_unlock(&run->compiler->lock);
    return gone;
}

/* Returns 0; -ETIME, -ECANCELED; -EPIPE: the process ended; or -errno. */
static int run_read(const struct run *run, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        struct pollfd polled[2] = {{.fd = run->answers, .events = POLLIN},
                                   {.fd = run->compiler->stop, .events = POLLIN}};
        uint64_t now = clock_now();
        if (now >= run->deadline)
            return -ETIME;
        int ready = poll(polled, 2, (int)((run->deadline - now) / UNITS_MS) + 1);
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready <= 0)
            continue;
        if (polled[1].revents)
            return -ECANCELED;
        ssize_t got = read(run->answers, (char *)to + done, bytes - done);
        if (got == 0)
            return run_is_gone(run) ? -ECANCELED : -EPIPE;
        if (got < 0 && errno != EINTR)
            return -errno;
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* Ends the process; returns its wait status. */
static int run_end(struct run *run, bool by_force)
{
    int status = 0;
    /* Its number may be another process's as soon as it was waited for. */
    pthread_mutex_lock(&run->compiler->lock);
    run->seat->pid = 0;
    pthread_mutex_unlock(&run->compiler->lock);
    if (by_force)
        kill(run->pid, SIGKILL);
    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(run->answers);
    return status;
}

static uint32_t refuse_memory(const struct run *run, struct error *why)
{
    char memory[UNITS_TEXT];
    activity_add(ACTIVITY_COMPILE_OVER_MEMORY);
    return error_set(why, MESSAGE(compiler_memory),
                     units_format_bytes(run->compiler->options.memory, memory));
}

static uint32_t seconds_of(const struct compiler *compiler)
{
    /* A compiler that was never opened has no options. */
    return compiler->options.seconds ? compiler->options.seconds : COMPILER_SECONDS;
}

uint64_t compiler_deadline(const struct compiler *compiler)
{
    return clock_now() + seconds_of(compiler) * UNITS_SECOND;
}

uint32_t compiler_refuse_time(const struct compiler *compiler, struct error *why)
{
    activity_add(ACTIVITY_COMPILE_OVER_TIME);
    return error_set(why, MESSAGE(compiler_time), seconds_of(compiler));
}

/* failed: from run_read. */
static uint32_t run_refuse(struct run *run, int failed, struct error *why)
{
    char memory[UNITS_TEXT];
    int status = run_end(run, failed != -EPIPE);
    if (failed == -ETIME || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
        return compiler_refuse_time(run->compiler, why);
    if (failed == -ECANCELED)
        return error_set(why, MESSAGE(module_given_up));
    units_format_bytes(run->compiler->options.memory, memory);
    return WIFSIGNALED(status)
               ? error_set(why, MESSAGE(compiler_crashed), WTERMSIG(status), memory)
               : error_set(why, MESSAGE(compiler_exited), WEXITSTATUS(status), memory);
}

/* Says that no process can start, once until one does. */
static uint32_t say_absent(struct compiler *compiler, struct compiler_result *result,
                           const char *reason)
{
    result->absent = true;
    if (!atomic_exchange(&compiler->absent, true))
        log_warning(MESSAGE_TEXT(compiler_absent), compiler->options.device, reason);
    return 0;
}

static uint32_t read_code(struct run *run, uint64_t bytes, uint64_t code_max,
                          struct compiler_result *result, struct error *why)
{
    char *code = bytes <= code_max ? malloc(bytes) : NULL;
    if (!code) {
        run_end(run, true);
        return bytes <= code_max
                   ? error_set(why, MESSAGE(module_no_memory))
                   : error_set(why, MESSAGE(compiler_code_max), (unsigned long long)bytes);
    }
    int failed = run_read(run, code, bytes);
    if (failed) {
        free(code);
        return run_refuse(run, failed, why);
    }
    run_end(run, true);
    activity_add(ACTIVITY_COMPILED);
    result->compiled = compiled_new(code, bytes);
    return result->compiled ? 0 : error_set(why, MESSAGE(module_no_memory));
}

static uint32_t read_answers(struct run *run, uint64_t code_max, struct compiler_result *result,
                             struct error *why)
{
    struct compiler_answer answer = {.stage = 0};
    int failed = run_read(run, &answer, sizeof answer);
    if (failed == -ECANCELED)
        return run_refuse(run, failed, why);
    if (failed || answer.stage != COMPILER_READY) {
        /* The text was not looked at yet, so it is not the text's doing. */
        answer.log[sizeof answer.log - 1] = 0;
        run_end(run, failed != -EPIPE);
        return say_absent(run->compiler, result,
                          failed == -ETIME ? "it takes too long"
                          : failed         ? "it ends at once"
                                           : answer.log);
    }
    atomic_store(&run->compiler->absent, false);
    run->deadline = compiler_deadline(run->compiler);
    failed = run_read(run, &answer, sizeof answer);
    if (failed)
        return run_refuse(run, failed, why);
    result->result = (cuda_result)answer.result;
    if (result->result == CUDA_OK)
        return read_code(run, answer.bytes, code_max, result, why);
    run_end(run, true);
    if (result->result == CUDA_ERR_OUT_OF_MEMORY)
        return refuse_memory(run, why);
    activity_add(ACTIVITY_COMPILED);
    memcpy(result->log, answer.log, sizeof result->log);
    result->log[sizeof result->log - 1] = 0;
    return 0;
}

/* ---- one at a time for each owner, and for each text ---- */

/* The text at work that this owner or this text has to wait for; NULL: there is none. Under the
 * lock. */
static struct compiler_seat *find_seat(struct compiler *compiler, uint32_t owner,
                                       const struct code_name *text)
{
    for (unsigned i = 0; i < COMPILER_SEATS; i++) {
        struct compiler_seat *seat = &compiler->seats[i];
        if (seat->taken &&
            (seat->caller.owner == owner || (text && code_name_equal(&seat->text, text))))
            return seat;
    }
    return NULL;
}

bool compiler_works(struct compiler *compiler, uint32_t owner, const struct code_name *text)
{
    if (!compiler_is_open(compiler))
        return false;
    pthread_mutex_lock(&compiler->lock);
    bool works = find_seat(compiler, owner, text) != NULL;
    pthread_mutex_unlock(&compiler->lock);
    return works;
}

/* Under the lock. */
static struct compiler_seat *find_client(struct compiler *compiler, uint32_t client)
{
    for (unsigned i = 0; i < COMPILER_SEATS; i++)
        if (compiler->seats[i].taken && compiler->seats[i].caller.client == client)
            return &compiler->seats[i];
    return NULL;
}

bool compiler_text_of(struct compiler *compiler, uint32_t client, struct code_name *text)
{
    if (!compiler_is_open(compiler))
        return false;
    pthread_mutex_lock(&compiler->lock);
    const struct compiler_seat *seat = find_client(compiler, client);
    if (seat)
        *text = seat->text;
    pthread_mutex_unlock(&compiler->lock);
    return seat != NULL;
}

void compiler_abandon(struct compiler *compiler, uint32_t client)
{
    if (!compiler_is_open(compiler))
        return;
    pthread_mutex_lock(&compiler->lock);
    struct compiler_seat *seat = find_client(compiler, client);
    if (seat)
        seat->gone = true;
    if (seat && seat->pid)
        kill(seat->pid, SIGKILL);
    pthread_mutex_unlock(&compiler->lock);
}

/* NULL: it has to wait. */
static struct compiler_seat *seat_take(struct compiler *compiler, struct compiler_caller caller,
                                       const struct code_name *text)
{
    struct compiler_seat *seat = compiler->seats;
    pthread_mutex_lock(&compiler->lock);
    while (seat < compiler->seats + COMPILER_SEATS && seat->taken)
        seat++;
    if (seat == compiler->seats + COMPILER_SEATS || find_seat(compiler, caller.owner, text))
        seat = NULL;
    else
        *seat = (struct compiler_seat){.caller = caller, .text = *text, .taken = true};
    pthread_mutex_unlock(&compiler->lock);
    return seat;
}

static void seat_leave(struct compiler *compiler, struct compiler_seat *seat)
{
    pthread_mutex_lock(&compiler->lock);
    seat->taken = false;
    pthread_mutex_unlock(&compiler->lock);
    if (compiler->ended)
        compiler->ended(compiler->context);
}

static bool find_known(struct compiler *compiler, uint64_t room, struct compiler_result *result)
{
    result->compiled = code_cache_find(&compiler->cache, &result->text, room);
    result->found = result->compiled != NULL;
    if (result->found) {
        atomic_fetch_add(&compiler->found, 1);
        activity_add(ACTIVITY_COMPILE_KNOWN);
    }
    return result->found;
}

struct compiled *compiler_find(struct compiler *compiler, const struct code_name *text,
                               uint64_t room)
{
    struct compiler_result result = {.text = *text};
    return compiler_is_open(compiler) && find_known(compiler, room, &result) ? result.compiled
                                                                             : NULL;
}

static uint32_t run_text(struct compiler *compiler, struct compiler_seat *seat, const char *text,
                         uint64_t code_max, struct compiler_result *result, struct error *why)
{
    struct run run = {.compiler = compiler, .seat = seat};
    atomic_fetch_add(&compiler->made, 1);
    int begun = run_begin(&run, text);
    if (begun < 0)
        return say_absent(compiler, result, strerror(-begun));
    activity_add(ACTIVITY_COMPILING);
    uint32_t error = read_answers(&run, code_max, result, why);
    activity_subtract(ACTIVITY_COMPILING);
    return error;
}

uint32_t compiler_make(struct compiler *compiler, struct compiler_caller caller, const char *text,
                       uint64_t code_max, uint64_t room, struct compiler_result *result,
                       struct error *why)
{
    *result = (struct compiler_result){
        .result = CUDA_OK, .text = code_cache_name(&compiler->cache, text, strlen(text))};
    if (find_known(compiler, room, result))
        return 0;
    struct compiler_seat *seat = seat_take(compiler, caller, &result->text);
    result->busy = !seat;
    if (!seat)
        return 0;
    uint32_t error = 0;
    /* Its code may have come since it was looked for. */
    if (!find_known(compiler, room, result)) {
        error = run_text(compiler, seat, text, code_max, result, why);
        if (result->compiled)
            code_cache_put(&compiler->cache, &result->text, result->compiled, room);
    }
    seat_leave(compiler, seat);
    return error;
}
