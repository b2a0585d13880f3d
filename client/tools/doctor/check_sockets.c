/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "client/tools/admin_client.h"
#include "client/tools/doctor/checks.h"
#include "client/tools/doctor/helper.h"
#include "common/id_name.h"
#include "common/messages.h"

#define CLIENT "client socket"
#define ADMIN  "admin socket"

/* Seconds that a server has to greet a client. It does so within a millisecond, but for the time in
 * which it starts. */
enum { GREETING_SECONDS = 10, OWNER = 40 };

/* ---- the clients' ---- */

struct greeting {
    char path[PATH_MAX]; /* "": the library chooses, and its sentences say why that one */
    gpushare_error error;
    uint32_t devices;
    char text[ERROR_TEXT_BYTES];
};

/* In a child: a server that is stopped would keep it waiting. */
static void greet(void *shared)
{
    struct greeting *greeting = shared;
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = greeting->path[0] ? greeting->path : NULL};
    greeting->error = gpushare_device_count(&options, &greeting->devices);
    snprintf(greeting->text, sizeof greeting->text, "%s", gpushare_error_text());
}

static const char *owner_of(enum id_name_kind kind, uint32_t id, char text[OWNER])
{
    char *name = id_name_of(kind, id);
    if (name)
        snprintf(text, OWNER, "%s", name);
    else
        snprintf(text, OWNER, "%u", id);
    free(name);
    return text;
}

static void note_client_file(struct exam *exam, const struct stat *file)
{
    char user[OWNER], group[OWNER];
    unsigned mode = file->st_mode & 0777;
    owner_of(ID_NAME_USER, file->st_uid, user);
    owner_of(ID_NAME_GROUP, file->st_gid, group);
    /* connect() needs the right to write, and no other. */
    if (mode & 0002)
        report_note(&exam->report, REPORT_OK, CLIENT, MESSAGE_TEXT(doctor_client), exam->client,
                    user, group, mode);
    else
        report_note(&exam->report, REPORT_WARN, CLIENT, MESSAGE_TEXT(doctor_client_closed),
                    exam->client, mode, user, group);
}

static void note_refusal(struct exam *exam, const struct greeting *greeting, bool there)
{
    struct report *report = &exam->report;
    /* The check of the environment says it. */
    if (greeting->error == GPUSHARE_ERROR_INVALID_ENVIRONMENT)
        return;
    report_note(report, REPORT_FAIL, CLIENT, "%s", greeting->text);
    if (!there && exam->contained)
        report_note(report, REPORT_FAIL, CLIENT, MESSAGE_TEXT(doctor_client_contained),
                    exam->client);
}

static void check_client(struct exam *exam)
{
    struct greeting *greeting = helper_shared(sizeof *greeting);
    struct stat file;
    bool there = stat(exam->client, &file) == 0;
    if (!greeting)
        return;
    if (!exam->usual)
        snprintf(greeting->path, sizeof greeting->path, "%s", exam->client);
    int result = helper_call(greet, greeting, GREETING_SECONDS);
    exam->served = result == 0 && greeting->error == GPUSHARE_SUCCESS;
    if (exam->served && there)
        note_client_file(exam, &file);
    else if (result < 0)
        report_note(&exam->report, REPORT_FAIL, CLIENT, MESSAGE_TEXT(doctor_client_silent),
                    exam->client, (int)GREETING_SECONDS);
    else
        note_refusal(exam, greeting, there);
}

/* ---- the administrators' ---- */

static json_t *ask(const char *path, const char *what, enum admin_outcome *outcome)
{
    json_t *answer = NULL;
    json_t *request = json_pack("{s:s}", "request", what);
    *outcome = request ? admin_client_ask(path, request, &answer, NULL) : ADMIN_NO_SERVER;
    json_decref(request);
    return answer;
}

/* Whether the groups of the system say that this user is a member, and the process is not: the
 * membership is newer than the session. */
static bool joined_later(gid_t group)
{
    gid_t groups[256];
    int count = sizeof groups / sizeof *groups;
    const struct passwd *self = getpwuid(geteuid());
    if (!self || group_member(group) ||
        getgrouplist(self->pw_name, self->pw_gid, groups, &count) < 0)
        return false;
    for (int i = 0; i < count; i++)
        if (groups[i] == group)
            return true;
    return false;
}

static void note_admin_file(struct exam *exam)
{
    char user[OWNER], group[OWNER];
    struct stat file;
    if (stat(exam->admin, &file) < 0)
        return;
    unsigned mode = file.st_mode & 0777;
    owner_of(ID_NAME_USER, file.st_uid, user);
    owner_of(ID_NAME_GROUP, file.st_gid, group);
    if (mode & 0002)
        report_note(&exam->report, REPORT_WARN, ADMIN, MESSAGE_TEXT(doctor_admin_open), exam->admin,
                    mode);
    else
        report_note(&exam->report, REPORT_OK, ADMIN, MESSAGE_TEXT(doctor_admin), exam->admin, user,
                    group, mode);
}

/* A user who is no administrator has no need of this socket. */
static void note_no_admin(struct exam *exam, const json_t *answer)
{
    struct stat file;
    const char *text = json_string_value(json_object_get(answer, "text"));
    bool closed = exam->served && access(exam->admin, W_OK) < 0 && errno == EACCES;
    if (closed && stat(exam->admin, &file) == 0 && joined_later(file.st_gid))
        report_note(&exam->report, REPORT_WARN, ADMIN, MESSAGE_TEXT(doctor_admin_session),
                    exam->admin);
    else if (exam->contained && access(exam->admin, F_OK) < 0)
        report_note(&exam->report, REPORT_OK, ADMIN, MESSAGE_TEXT(doctor_admin_contained));
    else
        report_note(&exam->report, closed ? REPORT_WARN : REPORT_FAIL, ADMIN, "%s",
                    text ? text : MESSAGE_TEXT(ctl_unreachable));
}

static void check_admin(struct exam *exam)
{
    enum admin_outcome outcome;
    json_t *version = ask(exam->admin, "version", &outcome);
    if (outcome == ADMIN_OK) {
        exam->version = version;
        exam->status = ask(exam->admin, "status", &outcome);
        note_admin_file(exam);
        return;
    }
    note_no_admin(exam, version);
    json_decref(version);
}

void check_sockets_run(struct exam *exam)
{
    check_client(exam);
    check_admin(exam);
}
