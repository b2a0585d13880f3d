/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/session/warning.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "common/limits/variables.h"
#include "common/messages.h"

enum { WARNING_TEXT = 512 }; /* longer than any sentence here */

__attribute__((format(printf, 2, 3))) static void
send_warning(const struct environment *environment, const char *format, ...)
{
    char text[WARNING_TEXT];
    va_list arguments;
    if (!environment->warn)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    environment->warn(environment->warn_context, text);
}

bool warning_wanted(void)
{
    const char *value = getenv("GPUSHARE_WARNINGS");
    return !value || strcmp(value, "0") != 0;
}

static void send_unknown_variable(void *context, const struct error *told)
{
    send_warning(context, "%s", told->text);
}

void warning_variables(const struct environment *environment)
{
    /* In a set-user-ID program the environment is its caller's, and is not read. */
    if (!environment->warn || getauxval(AT_SECURE))
        return;
    variables_check(environ, send_unknown_variable, (void *)environment);
}

static bool enforces_time(uint32_t mode)
{
    return mode == GPUSHARE_MODE_STRICT || mode == GPUSHARE_MODE_FAIR;
}

static void warn_time(const struct environment *environment, const struct allowance *asked,
                      uint32_t mode, uint32_t index)
{
    bool request = asked->time.request != ALLOWANCE_UNSET;
    /* A limit of 100 % limits nothing. */
    if (enforces_time(mode) || (!request && asked->time.limit >= ALLOWANCE_WHOLE))
        return;
    const char *variable =
        allowance_variable_of(asked, RESOURCE_TIME, request ? ALLOWANCE_REQUEST : ALLOWANCE_LIMIT);
    const char *name = proto_mode_name(mode);
    if (!variable)
        send_warning(environment, MESSAGE_TEXT(warning_time_program), index, name, index);
    else if (strcmp(variable, ALLOWANCE_FRACTION_VARIABLE) == 0)
        send_warning(environment, MESSAGE_TEXT(warning_fraction), variable, index, name, index);
    else
        send_warning(environment, MESSAGE_TEXT(warning_time), variable, index, name, index);
}

static void warn_threads(const struct environment *environment, const struct allowance *asked,
                         const struct gpushare_device *device, uint32_t index)
{
    if (asked->threads.request == ALLOWANCE_UNSET || device->partition_multiprocessors)
        return;
    const char *variable = allowance_variable_of(asked, RESOURCE_THREADS, ALLOWANCE_REQUEST);
    if (variable)
        send_warning(environment, MESSAGE_TEXT(warning_threads), variable, index);
    else
        send_warning(environment, MESSAGE_TEXT(warning_threads_program), index);
}

void warning_devices(const struct environment *environment, const struct device_survey *survey)
{
    if (*survey->unseen)
        send_warning(environment, MESSAGE_TEXT(warning_unseen), environment->wish.memory_from,
                     survey->unseen, survey->visible, survey->there, survey->visible_from);
}

void warning_limits(const struct environment *environment, const struct gpushare_device *device,
                    const struct proto_attached *granted, uint32_t index)
{
    struct allowance asked = environment->wish.allowance;
    allowance_tighten(&asked, &environment->program);
    warn_time(environment, &asked, granted->grant.mode, index);
    warn_threads(environment, &asked, device, index);
}
