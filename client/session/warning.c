/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/session/warning.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "common/variables.h"

/* Longer than any sentence here, and short enough that one write to a pipe is not torn. */
enum { WARNING_TEXT = 512 };

enum { WHOLE = 10000 }; /* hundredths of a per cent */

/* A pipe that nobody reads any more must not end the program, nor one that is full stop it: then
 * nobody is warned. */
static void print(const char *line, size_t length)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    sigset_t broken, before, pending;
    if (poll(&room, 1, 0) != 1 || room.revents != POLLOUT)
        return;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    bool others = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE);
    /* One write, past the program's own buffer of stderr, which is not ours. */
    if (write(STDERR_FILENO, line, length) < 0 && errno == EPIPE && !others)
        sigtimedwait(&broken, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void warn_text(const struct environment *environment, const char *text)
{
    if (environment->warn) {
        environment->warn(environment->warn_context, text);
    } else if (!environment->quiet) {
        char line[WARNING_TEXT + 32];
        int length = snprintf(line, sizeof line, "gpushare: warning: %s\n", text);
        print(line, (size_t)length);
    }
}

__attribute__((format(printf, 2, 3))) static void warn(const struct environment *environment,
                                                       const char *format, ...)
{
    char text[WARNING_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    warn_text(environment, text);
}

static void unknown_variable(void *context, const char *text)
{
    warn_text(context, text);
}

void warning_variables(const struct environment *environment)
{
    static atomic_bool told;
    /* In a set-user-ID program the environment is its caller's, and is not read. */
    if (getauxval(AT_SECURE) || (!environment->warn && atomic_exchange(&told, true)))
        return;
    variables_check(environ, unknown_variable, (void *)environment);
}

static bool shares_time(uint32_t mode)
{
    return mode == GPUSHARE_MODE_STRICT || mode == GPUSHARE_MODE_FAIR;
}

static const char *mode_name(uint32_t mode)
{
    return mode == GPUSHARE_MODE_CONCURRENT ? "concurrent" : "turns";
}

static const char *asked_by(const char *variable)
{
    return variable ? variable : "the program";
}

void warning_limits(const struct environment *environment, const struct gpushare_device *device,
                    const struct proto_attached *granted, uint32_t index)
{
    const struct limits_wish *wish = &environment->wish;
    /* A limit of all of it is none. */
    bool limits = wish->time_limit && wish->time_limit < WHOLE;
    if ((wish->time_request || limits) && !shares_time(granted->mode))
        warn(environment,
             "%s asks for a share of time, which is not enforced: GPU %u is shared in mode %s; its "
             "administrator can change that (gpusharectl set gpu %u mode=fair)%s",
             asked_by(wish->time_request ? wish->time_request_from : wish->time_limit_from), index,
             mode_name(granted->mode), index,
             wish->fraction ? "; the fraction's limit of device memory is enforced" : "");
    if (wish->thread_request && !device->partition_multiprocessors)
        warn(environment,
             "%s asks for multiprocessors of its own, and GPU %u can't give any: its driver has no "
             "green contexts (CUDA 12.5 and later have them)",
             asked_by(wish->thread_request_from), index);
}
