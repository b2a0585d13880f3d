/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdlib.h>
#include <string.h>

#include "client/tools/doctor/checks.h"
#include "client/tools/doctor/helper.h"
#include "common/messages.h"

#define SYSTEMD "systemd"
#define UNIT    "gpushared.service"

enum { SECONDS = 10, VALUE = 200 };

/* The value of a property in the output of systemctl show, a line NAME=VALUE; "" without one. */
static const char *value_of(const char *output, const char *name, char value[VALUE])
{
    size_t length = strlen(name);
    value[0] = '\0';
    for (const char *line = output; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != '=')
            continue;
        size_t bytes = strcspn(line + length + 1, "\n");
        if (bytes >= VALUE)
            bytes = VALUE - 1;
        memcpy(value, line + length + 1, bytes);
        value[bytes] = '\0';
        break;
    }
    return value;
}

/* The packages enable the sockets alone, and the first connection starts the service. */
static bool socket_is_enabled(void)
{
    static const char *const words[] = {"systemctl", "show", "--property=UnitFileState",
                                        "gpushared.socket", NULL};
    char *output, enabled[VALUE] = "";
    if (helper_run(words, SECONDS, &output) == 0)
        value_of(output, "UnitFileState", enabled);
    free(output);
    return !strcmp(enabled, "enabled") || !strcmp(enabled, "enabled-runtime");
}

static void check_active(struct exam *exam, const char *output)
{
    char enabled[VALUE], restarts[VALUE];
    value_of(output, "UnitFileState", enabled);
    value_of(output, "NRestarts", restarts);
    if (strtoul(restarts, NULL, 10) > 0)
        report_note(&exam->report, REPORT_WARN, SYSTEMD, MESSAGE_TEXT(doctor_unit_restarts),
                    restarts);
    if (!strcmp(enabled, "disabled") && socket_is_enabled())
        report_note(&exam->report, REPORT_OK, SYSTEMD, MESSAGE_TEXT(doctor_unit_sockets));
    else if (!strcmp(enabled, "disabled"))
        report_note(&exam->report, REPORT_WARN, SYSTEMD, MESSAGE_TEXT(doctor_unit_disabled));
    else
        report_note(&exam->report, REPORT_OK, SYSTEMD, MESSAGE_TEXT(doctor_unit));
}

/* The server's own latest lines say why, where this user may read the journal. Each start that
 * failed has written the same. */
static void note_failure(struct exam *exam, const char *result)
{
    static const char *const words[] = {"journalctl",   "--unit=gpushared.service",
                                        "--lines=3",    "--identifier=gpushared",
                                        "--output=cat", "--no-pager",
                                        "--quiet",      NULL};
    const char *last = "";
    char *output;
    report_note(&exam->report, REPORT_FAIL, SYSTEMD, MESSAGE_TEXT(doctor_unit_failed), result);
    if (helper_run(words, SECONDS, &output) < 0)
        return;
    for (char *rest = output, *line; (line = strsep(&rest, "\n")); last = line)
        if (*line && strcmp(line, last) != 0)
            report_note(&exam->report, REPORT_FAIL, SYSTEMD, MESSAGE_TEXT(doctor_unit_said), line);
    free(output);
}

static void check_unit(struct exam *exam, const char *output)
{
    struct report *report = &exam->report;
    char load[VALUE], active[VALUE], result[VALUE];
    value_of(output, "LoadState", load);
    value_of(output, "ActiveState", active);
    value_of(output, "Result", result);
    if (!strcmp(load, "not-found"))
        report_note(report, exam->served ? REPORT_OK : REPORT_WARN, SYSTEMD,
                    MESSAGE_TEXT(doctor_unit_missing));
    else if (strcmp(load, "loaded") != 0)
        report_note(report, REPORT_FAIL, SYSTEMD, MESSAGE_TEXT(doctor_unit_load), load);
    else if (!strcmp(active, "failed"))
        note_failure(exam, result);
    else if (!strcmp(active, "active") || !strcmp(active, "reloading"))
        check_active(exam, output);
    else if (exam->served)
        report_note(report, REPORT_WARN, SYSTEMD, MESSAGE_TEXT(doctor_unit_beside), active);
    else
        report_note(report, REPORT_WARN, SYSTEMD, MESSAGE_TEXT(doctor_unit_inactive), active);
}

void check_systemd_run(struct exam *exam)
{
    static const char *const words[] = {
        "systemctl", "show", "--property=LoadState,ActiveState,Result,UnitFileState,NRestarts",
        UNIT, NULL};
    char *output;
    /* As sd_booted(3) tells. */
    if (!place_has(&exam->place, "/run/systemd/system")) {
        report_note(&exam->report, REPORT_OK, SYSTEMD, MESSAGE_TEXT(doctor_systemd_none));
        return;
    }
    int status = helper_run(words, SECONDS, &output);
    if (status == 0)
        check_unit(exam, output);
    else
        report_note(&exam->report, REPORT_WARN, SYSTEMD, MESSAGE_TEXT(doctor_systemd_silent));
    free(output);
}
