/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/session/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/session/failure.h"
#include "client/session/options.h"
#include "common/error.h"
#include "common/messages.h"

#define SYSTEM_SOCKET "/run/gpushare/gpushare.sock"

static const char *read_variable(const char *name, void *context)
{
    (void)context;
    /* A set-user-ID program must not let its caller choose the server. */
    return secure_getenv(name);
}

static gpushare_error choose_name(struct limits_wish *wish, const char *name)
{
    if (name) {
        if (strlen(name) > LIMITS_NAME_MAX || !limits_name_is_valid(name))
            return failure(MESSAGE(options_name), LIMITS_NAME_MAX);
        snprintf(wish->name, sizeof wish->name, "%s", name);
    } else if (!wish->name_from) {
        /* A program's file name may hold any bytes; without a name the client works as well. */
        if (strlen(program_invocation_short_name) <= LIMITS_NAME_MAX &&
            limits_name_is_valid(program_invocation_short_name))
            snprintf(wish->name, sizeof wish->name, "%s", program_invocation_short_name);
    }
    return GPUSHARE_SUCCESS;
}

static gpushare_error choose_profile(struct limits_wish *wish, const char *profile)
{
    if (!profile)
        return GPUSHARE_SUCCESS;
    if (!*profile || strlen(profile) > LIMITS_NAME_MAX || !limits_name_is_valid(profile))
        return failure(MESSAGE(options_profile), LIMITS_NAME_MAX);
    snprintf(wish->profile, sizeof wish->profile, "%s", profile);
    return GPUSHARE_SUCCESS;
}

static gpushare_error choose_sockets(struct environment *environment, const char *path)
{
    char(*sockets)[LIMITS_SOCKET_MAX + 1] = environment->server.paths;
    sockets[0][0] = sockets[1][0] = '\0';
    environment->server.from = NULL;
    if (path) {
        if (!*path || strlen(path) > LIMITS_SOCKET_MAX)
            return failure(MESSAGE(options_socket), LIMITS_SOCKET_MAX);
        snprintf(sockets[0], sizeof sockets[0], "%s", path);
        environment->server.from = MESSAGE_TEXT(source_options);
        return GPUSHARE_SUCCESS;
    }
    if (environment->wish.socket_from) {
        environment->server.from = environment->wish.socket_from;
        memcpy(sockets[0], environment->wish.socket, sizeof sockets[0]);
        return GPUSHARE_SUCCESS;
    }
    unsigned n = 0;
    const char *runtime = read_variable("XDG_RUNTIME_DIR", NULL);
    if (runtime && *runtime) {
        int length = snprintf(sockets[0], sizeof sockets[0], "%s/gpushare/gpushare.sock", runtime);
        if (length > 0 && (size_t)length < sizeof sockets[0] && access(sockets[0], F_OK) == 0)
            n = 1;
    }
    memcpy(sockets[n], SYSTEM_SOCKET, sizeof SYSTEM_SOCKET);
    return GPUSHARE_SUCCESS;
}

/* Only those that print warnings use this variable. An invalid value is refused here, as that of
 * any other variable is. */
static gpushare_error check_warnings(void)
{
    const char *value = read_variable("GPUSHARE_WARNINGS", NULL);
    if (!value || !strcmp(value, "0") || !strcmp(value, "1"))
        return GPUSHARE_SUCCESS;
    return failure(MESSAGE(warnings_variable), value);
}

gpushare_error environment_read(struct environment *environment,
                                const struct gpushare_options *options)
{
    struct limits_wish *wish = &environment->wish;
    struct allowance program;
    struct error why;
    gpushare_error error = (gpushare_error)limits_wish_read(wish, read_variable, NULL, &why);
    if (error)
        return failure_text(error, why.text);
    environment->device = options->device;
    environment->warn = options->warn;
    environment->warn_context = options->warn_context;
    environment->notice = options->notice;
    environment->notice_context = options->notice_context;
    environment->observe = options->observe;
    environment->observe_context = options->observe_context;
    if ((error = options_read(options, &program)) || (error = check_warnings()) ||
        (error = choose_name(wish, options->name)) ||
        (error = choose_profile(wish, options->profile)))
        return error;
    /* Of the options and the environment the stricter holds. A request of the one above a limit of
     * the other is no error: the server grants no more than the limit. */
    environment->program = program;
    return choose_sockets(environment, options->socket);
}
