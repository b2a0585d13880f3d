/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/configuration/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/messages.h"

/* Bytes of what gpushared says: a sentence, maybe behind warnings. */
enum { SAID_MAX = 4096 };

extern char **environ;

/* The program beside this one: both are installed together. Returns 0 or a negative errno. */
static int find_program(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0)
        return -errno;
    path[length] = '\0';
    char *name = strrchr(path, '/') + 1;
    if ((size_t)(name - path) + sizeof "gpushared" > PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(name, "gpushared");
    return 0;
}

/* Starts it with both outputs in a pipe, of which *out is the end to read. Returns 0 or a negative
 * errno. */
static int start(const char *path, const char *file, pid_t *pid, int *out)
{
    char program[] = "gpushared", check[] = "--check-config", named[] = "--config", copy[PATH_MAX];
    char *words[] = {program, check, file ? named : NULL, copy, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (file && strlen(file) >= sizeof copy)
        return -ENAMETOOLONG;
    strcpy(copy, file ? file : "");
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        if (error == 0)
            error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        if (error == 0)
            error = posix_spawn(pid, path, &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (error)
        close(ends[0]);
    *out = ends[0];
    return -error;
}

/* Reads to the end, so that the program is never kept from writing. The rest of a text that does
 * not fit is lost. */
static void read_all(int fd, char said[SAID_MAX])
{
    char lost[512] = "";
    size_t used = 0;
    for (;;) {
        const size_t room = SAID_MAX - 1 - used;
        ssize_t got = read(fd, room ? said + used : lost, room ? room : sizeof lost);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += room ? (size_t)got : 0;
    }
    said[used] = '\0';
}

/* A line without the program's name. */
static const char *bare(const char *line)
{
    static const char name[] = "gpushared: ";
    return strncmp(line, name, strlen(name)) == 0 ? line + strlen(name) : line;
}

/* The last line: that is the sentence about the file. */
static const char *sentence(char said[SAID_MAX])
{
    size_t length = strlen(said);
    while (length && said[length - 1] == '\n')
        said[--length] = '\0';
    const char *line = strrchr(said, '\n');
    return bare(line ? line + 1 : said);
}

/* NULL without memory. Lines before the sentence are warnings. */
static json_t *answer_well(const char *file, char *said)
{
    json_t *warnings = json_array();
    bool whole = warnings != NULL;
    char *line = said;
    for (char *end; whole && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        whole = json_array_append_new(warnings, json_string(bare(line))) == 0;
    }
    if (whole)
        return json_pack("{s:i, s:b, s:s, s:s?, s:s, s:o}", "schema_version",
                         ADMIN_CLIENT_SCHEMA_VERSION, "ok", 1, "request", "config-check", "file",
                         file, "text", bare(line), "warnings", warnings);
    json_decref(warnings);
    return NULL;
}

void check_print(const json_t *answer)
{
    const json_t *warnings = json_object_get(answer, "warnings"), *one;
    for (size_t i = 0; (one = json_array_get(warnings, i)); i++)
        fprintf(stderr, "gpusharectl: %s\n", json_string_value(one));
    puts(json_string_value(json_object_get(answer, "text")));
}

enum admin_outcome check_run(const char *file, json_t **answer)
{
    char path[PATH_MAX] = "gpushared", said[SAID_MAX];
    pid_t pid = 0;
    int out = -1, status = 0, result = find_program(path);
    if (result == 0)
        result = start(path, file, &pid, &out);
    if (result < 0) {
        *answer = admin_client_error("server_resources", MESSAGE_TEXT(ctl_check_program), path,
                                     strerror(-result));
        return ADMIN_FAILED;
    }
    read_all(out, said);
    close(out);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    const char *text = sentence(said);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        *answer = answer_well(file, said);
        return *answer ? ADMIN_OK : ADMIN_FAILED;
    }
    *answer = WIFEXITED(status) && *text
                  ? admin_client_error("invalid_value", "%s", text)
                  : admin_client_error("server_resources", MESSAGE_TEXT(ctl_check_ended), path);
    return WIFEXITED(status) && WEXITSTATUS(status) == ADMIN_USAGE ? ADMIN_USAGE : ADMIN_FAILED;
}
