/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/doctor/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/util.h"

enum {
    /* A year of a service's journal must not fill the memory. */
    OUTPUT_MAX = 4 << 20,
    PIECE = 65536,
    /* As a shell's: the program is not there. */
    NOT_THERE = 127,
};

void *helper_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

struct output {
    char *text;
    size_t used, room;
};

/* Output beyond the limit is read, so that the program can end, and dropped. */
static int keep(struct output *output, const char *piece, size_t bytes)
{
    bytes = min(bytes, OUTPUT_MAX - output->used);
    if (array_reserve(output->text, output->room, output->used + bytes + 1) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < bytes; i++)
        output->text[output->used++] = piece[i];
    output->text[output->used] = '\0';
    return 0;
}

/* Reads until all writers have closed the pipe. Returns 0 or a negative errno. */
static int drain(int fd, unsigned seconds, struct output *output)
{
    static char piece[PIECE];
    const uint64_t end = clock_now() + seconds * UNITS_SECOND;
    int result = keep(output, piece, 0);
    while (result == 0) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int left = (int)(saturating_sub(end, clock_now()) / UNITS_MS);
        int ready = poll(&wait, 1, left);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return ready < 0 ? -errno : -ETIMEDOUT;
        ssize_t got = read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        result = keep(output, piece, (size_t)got);
    }
    return result;
}

/* The status of a child that has closed its pipe, or was killed. One that hangs in the driver can't
 * even be killed; it is left to the system then. */
static int reap(pid_t child, bool hangs)
{
    int status = 0;
    pid_t ended;
    do
        ended = waitpid(child, &status, hangs ? WNOHANG : 0);
    while (ended < 0 && errno == EINTR);
    if (ended != child)
        return -ETIMEDOUT;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static void send_nowhere(int fd)
{
    int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0)
        dup2(nowhere, fd);
}

/* Starts a child that holds the writing end of a pipe. Returns 0 in the child, else its number or a
 * negative errno. */
static pid_t start(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t child = fork();
    if (child < 0) {
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        return -error;
    }
    close(ends[child ? 1 : 0]);
    return child;
}

static int finish(pid_t child, int fd, unsigned seconds, struct output *output)
{
    int result = drain(fd, seconds, output);
    close(fd);
    if (result < 0)
        kill(child, SIGKILL);
    int status = reap(child, result == -ETIMEDOUT);
    return result < 0 ? result : status;
}

int helper_call(helper_work *work, void *shared, unsigned seconds)
{
    int ends[2];
    struct output none = {0};
    pid_t child = start(ends);
    if (child < 0)
        return (int)child;
    if (child == 0) {
        send_nowhere(STDOUT_FILENO);
        send_nowhere(STDERR_FILENO);
        work(shared);
        _exit(0);
    }
    int status = finish(child, ends[0], seconds, &none);
    free(none.text);
    return status > 0 || status == -EINTR ? -ECHILD : status;
}

int helper_run(const char *const words[], unsigned seconds, char **output)
{
    int ends[2];
    struct output whole = {0};
    pid_t child = start(ends);
    if (output)
        *output = NULL;
    if (child < 0)
        return (int)child;
    if (child == 0) {
        send_nowhere(STDIN_FILENO);
        send_nowhere(STDERR_FILENO);
        /* Its standard output is what is waited for, so it is a pipe even where nobody reads. */
        dup2(ends[1], STDOUT_FILENO);
        execvp(words[0], (char *const *)words);
        _exit(NOT_THERE);
    }
    int status = finish(child, ends[0], seconds, &whole);
    if (status == NOT_THERE)
        status = -ENOENT;
    if (output && status >= 0)
        *output = whole.text;
    else
        free(whole.text);
    return status;
}
