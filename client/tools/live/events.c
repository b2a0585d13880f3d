/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/live/events.h"

#include <stdio.h>
#include <time.h>

#include "client/tools/table.h"
#include "common/messages.h"

#define BETWEEN_NS 250000000L
/* A server that takes over serves within a second. So many attempts in a row may fail before it
 * counts as gone. */
#define ATTEMPTS 20

/* The place up to which events were shown. */
struct place {
    json_int_t pid, after;
};

static enum admin_outcome ask(const struct events_options *options, json_int_t after,
                              json_t **answer)
{
    json_t *request = json_pack("{s:s, s:I}", "request", "events", "after", after);
    *answer = NULL;
    enum admin_outcome outcome =
        request ? admin_client_ask(options->socket, request, answer, NULL) : ADMIN_FAILED;
    json_decref(request);
    return outcome;
}

static json_int_t member(const json_t *answer, const char *name)
{
    return json_integer_value(json_object_get(answer, name));
}

static void print_event(const json_t *event)
{
    const double moment = json_number_value(json_object_get(event, "time_seconds"));
    const time_t seconds = moment > 0 && moment < 1e11 ? (time_t)moment : 0;
    const char *level = json_string_value(json_object_get(event, "level"));
    const char *text = json_string_value(json_object_get(event, "text"));
    char clock[32], shown[1024];
    struct tm local;
    strftime(clock, sizeof clock, "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &local));
    snprintf(shown, sizeof shown, "%s: %s", level ? level : "-", text ? text : "-");
    table_clean(shown);
    printf("%s.%03d %s\n", clock, (int)((moment - (double)seconds) * 1e3), shown);
}

static void print_answer(const struct events_options *options, const json_t *answer)
{
    const json_t *events = json_object_get(answer, "events"), *event;
    if (options->json && (!options->follow || json_array_size(events))) {
        json_dumpf(answer, stdout,
                   (options->follow ? JSON_COMPACT : JSON_INDENT(2)) |
                       JSON_REAL_PRECISION(ADMIN_CLIENT_DIGITS));
        putchar('\n');
    }
    if (options->json)
        return;
    if (member(answer, "missed")) {
        printf(MESSAGE_TEXT(ctl_events_missed), (long long)member(answer, "missed"));
        putchar('\n');
    }
    for (size_t i = 0; (event = json_array_get(events, i)); i++)
        print_event(event);
}

/* Prints what is new. */
static enum admin_outcome look(const struct events_options *options, struct place *place,
                               json_t **failure)
{
    json_t *answer;
    enum admin_outcome outcome = ask(options, place->after, &answer);
    if (outcome == ADMIN_OK && place->pid && place->pid != member(answer, "pid")) {
        /* Another server counts anew. */
        json_decref(answer);
        place->after = 0;
        outcome = ask(options, 0, &answer);
    }
    if (outcome != ADMIN_OK) {
        *failure = answer;
        return outcome;
    }
    print_answer(options, answer);
    place->pid = member(answer, "pid");
    place->after = member(answer, "latest");
    json_decref(answer);
    return ADMIN_OK;
}

enum admin_outcome events_run(const struct events_options *options, json_t **failure)
{
    const struct timespec between = {.tv_nsec = BETWEEN_NS};
    struct place place = {0};
    enum admin_outcome outcome = look(options, &place, failure);
    unsigned failed = 0;
    while (options->follow && (outcome == ADMIN_OK || (place.pid && failed < ATTEMPTS))) {
        if (outcome != ADMIN_OK)
            json_decref(*failure);
        *failure = NULL;
        /* The reader of a pipe has gone. */
        if (fflush(stdout) != 0)
            return ADMIN_OK;
        nanosleep(&between, NULL);
        outcome = look(options, &place, failure);
        failed = outcome == ADMIN_OK ? 0 : failed + 1;
    }
    return outcome;
}
