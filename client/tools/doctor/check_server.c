/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "client/gpushare.h"
#include "client/tools/doctor/checks.h"
#include "common/messages.h"
#include "common/units.h"

#define SERVER  "server"
#define LIBRARY "library"
#define STATE   "state folder"

/* saved.json and accepted.yaml have 4 and 1 MiB at most, and lie beside their new ones while these
 * are written; a write of the accounting has a quarter of a MiB. Twice that, as a warning should
 * come before. */
#define STATE_ROOM  ((uint64_t)12 << 20)
#define STATE_FILES 4

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "?";
}

/* The server may be in another container, and its number then another process's. */
static pid_t visible_server(const struct exam *exam)
{
    char path[64], name[32];
    pid_t pid = (pid_t)json_integer_value(json_object_get(exam->status, "pid"));
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    if (pid <= 0 || place_read(&exam->place, path, name, sizeof name) <= 0)
        return 0;
    return strcmp(name, "gpushared\n") ? 0 : pid;
}

static void check_versions(struct exam *exam)
{
    const char *own = gpushare_version_text();
    const char *server = text_of(exam->version, "server_version");
    const char *protocol = text_of(exam->version, "protocol_version");
    char ours[24];
    snprintf(ours, sizeof ours, "%d.%d", PROTO_MAJOR, PROTO_MINOR);
    if (!strcmp(own, server) && !strcmp(ours, protocol))
        report_note(&exam->report, REPORT_OK, LIBRARY, MESSAGE_TEXT(doctor_version), own, ours);
    else
        report_note(&exam->report,
                    strtol(protocol, NULL, 10) == PROTO_MAJOR ? REPORT_WARN : REPORT_FAIL, LIBRARY,
                    MESSAGE_TEXT(doctor_version_differs), own, ours, server, protocol);
}

static void check_state(struct exam *exam)
{
    const json_t *status = exam->status;
    char since[UNITS_TEXT];
    uint64_t seconds = (uint64_t)json_number_value(json_object_get(status, "uptime_seconds"));
    report_note(&exam->report, REPORT_OK, SERVER, MESSAGE_TEXT(doctor_server),
                text_of(status, "server_version"),
                json_integer_value(json_object_get(status, "pid")),
                units_format_duration(seconds * UNITS_SECOND, since),
                text_of(json_object_get(status, "driver"), "path"),
                json_integer_value(json_object_get(status, "clients")),
                json_integer_value(json_object_get(status, "clients_max")));
}

/* about: the server's state, or a device's. */
static void check_warnings(struct exam *exam, const json_t *about, const char *subject)
{
    const json_t *warnings = json_object_get(about, "warnings");
    for (size_t i = 0; i < json_array_size(warnings); i++)
        report_note(&exam->report, REPORT_WARN, subject, "%s",
                    text_of(json_array_get(warnings, i), "text"));
}

static void check_device(struct exam *exam, const json_t *device)
{
    struct report *report = &exam->report;
    char subject[REPORT_SUBJECT];
    long long index = json_integer_value(json_object_get(device, "device"));
    const char *state = text_of(device, "state");
    const json_t *trouble = json_object_get(device, "trouble");
    snprintf(subject, sizeof subject, "GPU %lld", index);
    if (strcmp(state, "ready") != 0)
        report_note(report, REPORT_FAIL, subject, MESSAGE_TEXT(doctor_gpu_state), state,
                    json_is_string(trouble) ? json_string_value(trouble)
                                            : MESSAGE_TEXT(doctor_gpu_no_trouble));
    else if (json_is_true(json_object_get(device, "drained")))
        report_note(report, REPORT_WARN, subject, MESSAGE_TEXT(doctor_gpu_drained), index);
    else
        report_note(report, REPORT_OK, subject, MESSAGE_TEXT(doctor_gpu), text_of(device, "name"),
                    json_integer_value(json_object_get(device, "clients")));
    if (json_is_true(json_object_get(device, "one_client_at_a_time")))
        report_note(report, REPORT_WARN, subject, MESSAGE_TEXT(doctor_gpu_one_at_a_time));
    check_warnings(exam, device, subject);
}

/* A folder that is not there yet is made when there is something to write, where its parent has
 * room. */
static bool room_of(const struct exam *exam, const char *folder, struct statvfs *room)
{
    char path[PATH_MAX], full[PATH_MAX];
    snprintf(path, sizeof path, "%s", folder);
    while (statvfs(place_path(&exam->place, path, full), room) < 0) {
        char *slash = strrchr(path, '/');
        if (errno != ENOENT || !slash || slash == path)
            return false;
        *slash = '\0';
    }
    return true;
}

/* The server may be in another container, with a folder of the same name. */
static void check_state_folder(struct exam *exam)
{
    const char *folder = json_string_value(json_object_get(exam->status, "state_folder"));
    struct statvfs room;
    char text[UNITS_TEXT];
    if (!folder || !exam->server || !room_of(exam, folder, &room))
        return;
    const uint64_t bytes = (uint64_t)room.f_bavail * room.f_frsize;
    /* Some file systems have no number of files, and say 0. */
    const bool few = room.f_files && room.f_favail < STATE_FILES;
    units_format_bytes(bytes, text);
    if (bytes < STATE_ROOM || few)
        report_note(&exam->report, REPORT_WARN, STATE, MESSAGE_TEXT(doctor_state_full), folder,
                    text, (unsigned long long)room.f_favail);
    else
        report_note(&exam->report, REPORT_OK, STATE, MESSAGE_TEXT(doctor_state), folder, text);
}

void check_server_run(struct exam *exam)
{
    const json_t *devices = json_object_get(exam->status, "devices");
    if (exam->version)
        check_versions(exam);
    else if (exam->served)
        report_note(&exam->report, REPORT_OK, SERVER, MESSAGE_TEXT(doctor_server_unseen));
    if (!json_is_true(json_object_get(exam->status, "ok")))
        return;
    exam->server = visible_server(exam);
    check_state(exam);
    check_warnings(exam, exam->status, SERVER);
    check_state_folder(exam);
    for (size_t i = 0; i < json_array_size(devices); i++)
        check_device(exam, json_array_get(devices, i));
}
