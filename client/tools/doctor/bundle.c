/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/doctor/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "client/tools/admin_client.h"
#include "client/tools/doctor/helper.h"
#include "client/tools/doctor/hide.h"
#include "common/id_name.h"
#include "common/messages.h"

#define FOLDER        "gpushare-doctor"
#define CONFIGURATION "/etc/gpushare/gpushared.yaml"
#define DEFAULTS      "/etc/default/gpushared"

enum {
    FILES_MAX = 12,
    TEXT_MAX = 1 << 20, /* the configuration has at most a MiB */
    READING_SECONDS = 20,
    TAR_SECONDS = 60,
};

/* The folder that is packed, and the files in it. */
struct bundle {
    char folder[PATH_MAX];
    const char *files[FILES_MAX];
    unsigned count;
    struct hide hide;
    struct error *why;
};

/* ---- files ---- */

static uint32_t file_path(const struct bundle *bundle, const char *name, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s/" FOLDER "/%s", bundle->folder, name);
    return length < PATH_MAX ? 0
                             : error_set(bundle->why, MESSAGE(bundle_folder), bundle->folder,
                                         strerror(ENAMETOOLONG));
}

static uint32_t add_bytes(struct bundle *bundle, const char *name, const char *text)
{
    char path[PATH_MAX];
    uint32_t error = file_path(bundle, name, path);
    if (error)
        return error;
    FILE *file = fopen(path, "wxe");
    if (!file)
        return error_set(bundle->why, MESSAGE(bundle_folder), bundle->folder, strerror(errno));
    bundle->files[bundle->count++] = name;
    fputs(text, file);
    bool bad = ferror(file);
    return fclose(file) == 0 && !bad
               ? 0
               : error_set(bundle->why, MESSAGE(bundle_folder), bundle->folder, strerror(errno));
}

static uint32_t add_text(struct bundle *bundle, const char *name, const char *text)
{
    char *hidden = hide_text(&bundle->hide, text);
    if (!hidden)
        return error_set(bundle->why, MESSAGE(bundle_memory));
    uint32_t error = add_bytes(bundle, name, hidden);
    free(hidden);
    return error;
}

/* value: may be NULL, for what there is not. */
static uint32_t add_json(struct bundle *bundle, const char *name, const json_t *value)
{
    if (!value)
        return 0;
    json_t *hidden = hide_json(&bundle->hide, value);
    char *text = hidden ? json_dumps(hidden, JSON_INDENT(2)) : NULL;
    json_decref(hidden);
    uint32_t error =
        text ? add_bytes(bundle, name, text) : error_set(bundle->why, MESSAGE(bundle_memory));
    free(text);
    return error;
}

/* ---- what is in them ---- */

/* Whether a line NAME=VALUE is of gpushare or of CUDA. No other variable leaves the machine. */
static bool is_ours(const char *line)
{
    return !strncmp(line, "GPUSHARE", strlen("GPUSHARE")) ||
           !strncmp(line, "CUDA_", strlen("CUDA_"));
}

/* A variable that nobody documents may be other software's, and its value a password. The name of
 * clients to come may be a command line, as that of a client. */
static void print_variable(const char *line, FILE *out)
{
    static const char name[] = "GPUSHARE_CLIENT_NAME=";
    const size_t shown = strcspn(line, " ");
    if (!hide_knows_variable(line))
        fprintf(out, "%.*s [value left out]\n", (int)strcspn(line, "="), line);
    else if (!strncmp(line, name, strlen(name)) && line[shown])
        fprintf(out, "%.*s [arguments]\n", (int)shown, line);
    else
        fprintf(out, "%s\n", line);
}

static uint32_t add_environment(struct bundle *bundle)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    for (char **variable = environ; out && *variable; variable++)
        if (is_ours(*variable))
            print_variable(*variable, out);
    bool there = out && fclose(out) == 0;
    uint32_t error = there ? add_text(bundle, "environment.txt", text)
                           : error_set(bundle->why, MESSAGE(bundle_memory));
    free(text);
    return error;
}

static uint32_t add_versions(struct bundle *bundle, const struct exam *exam)
{
    char text[8192], release[2048], driver[2048];
    struct utsname system;
    if (uname(&system) < 0)
        memset(&system, 0, sizeof system);
    place_read(&exam->place, "/etc/os-release", release, sizeof release);
    place_read(&exam->place, "/proc/driver/nvidia/version", driver, sizeof driver);
    snprintf(text, sizeof text, "gpushare %s, protocol %d.%d\n%s %s %s\n%s%s",
             gpushare_version_text(), PROTO_MAJOR, PROTO_MINOR, system.sysname, system.release,
             system.machine, release, driver);
    return add_text(bundle, "versions.txt", text);
}

/* Lines of the file that set variables of ours, and none of those that other software reads. */
static uint32_t add_defaults(struct bundle *bundle, const struct exam *exam)
{
    char *text = malloc(TEXT_MAX), *kept = NULL;
    size_t bytes;
    FILE *out = text ? open_memstream(&kept, &bytes) : NULL;
    if (!out) {
        free(text);
        return error_set(bundle->why, MESSAGE(bundle_memory));
    }
    int read = place_read(&exam->place, DEFAULTS, text, TEXT_MAX);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (is_ours(line))
            print_variable(line, out);
    uint32_t error = fclose(out) == 0 ? 0 : error_set(bundle->why, MESSAGE(bundle_memory));
    if (!error && read > 0)
        error = add_text(bundle, "default-gpushared.txt", kept);
    free(kept);
    free(text);
    return error;
}

static uint32_t add_journal(struct bundle *bundle)
{
    static const char *const words[] = {"journalctl", "--unit=gpushared.service", "--lines=2000",
                                        "--no-pager", "--output=short-iso",       NULL};
    char *output;
    /* Where this user may not read it, or there is no journal, the bundle is of use without it. */
    uint32_t error = helper_run(words, READING_SECONDS, &output) == 0
                         ? add_text(bundle, "journal.txt", output)
                         : 0;
    free(output);
    return error;
}

static uint32_t add_report(struct bundle *bundle, const struct report *report)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return error_set(bundle->why, MESSAGE(bundle_memory));
    report_print(report, out);
    uint32_t error = fclose(out) == 0 ? add_text(bundle, "report.txt", text)
                                      : error_set(bundle->why, MESSAGE(bundle_memory));
    free(text);
    json_t *json = report_json(report);
    if (!error)
        error = add_json(bundle, "report.json", json);
    json_decref(json);
    return error;
}

/* ---- what is hidden ---- */

static void hide_owner(struct hide *hide, const json_t *client)
{
    char *user =
        id_name_of(ID_NAME_USER, (uint32_t)json_integer_value(json_object_get(client, "uid")));
    hide_user(hide, user);
    free(user);
}

/* The journal may have the host's name with its domain or without. */
static void hide_host(struct hide *hide)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) < 0)
        return;
    hide_add(hide, host, "host");
    host[strcspn(host, ".")] = '\0';
    hide_add(hide, host, "host");
}

static void hide_all(struct hide *hide, const char *configuration, const json_t *clients)
{
    const json_t *list = json_object_get(clients, "clients");
    hide_users(hide, configuration);
    for (size_t i = 0; i < json_array_size(list); i++)
        hide_owner(hide, json_array_get(list, i));
    hide_host(hide);
}

static json_t *ask_clients(const struct exam *exam)
{
    json_t *answer = NULL, *request = json_pack("{s:s}", "request", "clients");
    if (exam->version && request)
        admin_client_ask(exam->admin, request, &answer, NULL);
    json_decref(request);
    return answer;
}

static uint32_t add_all(struct bundle *bundle, const struct exam *exam)
{
    char *configuration = malloc(TEXT_MAX);
    if (!configuration)
        return error_set(bundle->why, MESSAGE(bundle_memory));
    json_t *clients = ask_clients(exam);
    int bytes = place_read(&exam->place, CONFIGURATION, configuration, TEXT_MAX);
    hide_all(&bundle->hide, configuration, clients);
    hide_comments(configuration);
    uint32_t error = bundle->hide.error ? error_set(bundle->why, MESSAGE(bundle_memory))
                                        : add_report(bundle, &exam->report);
    if (!error)
        error = add_versions(bundle, exam);
    if (!error)
        error = add_environment(bundle);
    if (!error)
        error = add_json(bundle, "version.json", exam->version);
    if (!error)
        error = add_json(bundle, "status.json", exam->status);
    if (!error)
        error = add_json(bundle, "clients.json", clients);
    if (!error && bytes > 0)
        error = add_text(bundle, "gpushared.yaml", configuration);
    if (!error)
        error = add_defaults(bundle, exam);
    if (!error)
        error = add_journal(bundle);
    json_decref(clients);
    free(configuration);
    return error;
}

/* ---- the archive ---- */

static uint32_t pack(const struct bundle *bundle, const char *path)
{
    /* --force-local: a colon in the name of the file would make tar look for another host. */
    const char *const words[] = {"tar", "--force-local", "-C", bundle->folder, "-czf",
                                 path,  FOLDER,          NULL};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(bundle->why, MESSAGE(bundle_file), path, strerror(errno));
    close(fd);
    int status = helper_run(words, TAR_SECONDS, NULL);
    if (status == 0)
        return 0;
    unlink(path);
    return error_set(bundle->why, MESSAGE(bundle_tar), path);
}

static void clean_up(const struct bundle *bundle)
{
    char path[PATH_MAX];
    for (unsigned i = 0; i < bundle->count; i++)
        if (!file_path(bundle, bundle->files[i], path))
            unlink(path);
    if (!file_path(bundle, "", path))
        rmdir(path);
    rmdir(bundle->folder);
}

uint32_t bundle_write(const struct exam *exam, const char *path, struct error *why)
{
    static struct bundle bundle;
    char within[PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    bundle.why = why;
    snprintf(bundle.folder, sizeof bundle.folder - 32, "%s/gpushare-doctor-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(bundle.folder))
        return error_set(why, MESSAGE(bundle_folder), bundle.folder, strerror(errno));
    uint32_t error = file_path(&bundle, "", within);
    if (!error && mkdir(within, 0700) < 0)
        error = error_set(why, MESSAGE(bundle_folder), bundle.folder, strerror(errno));
    if (!error)
        error = add_all(&bundle, exam);
    if (!error)
        error = pack(&bundle, path);
    clean_up(&bundle);
    hide_free(&bundle.hide);
    return error;
}
