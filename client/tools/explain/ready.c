/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/explain/ready.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/messages.h"

/* execvp(3)'s where PATH is not set. */
#define USUAL_FOLDERS "/bin:/usr/bin"

static bool is_executable(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* Writes the first executable file of this name in the folders. An empty folder is the current
 * one. */
static bool search(const char *program, const char *folders, char found[PATH_MAX])
{
    for (const char *at = folders;; at++) {
        size_t length = strcspn(at, ":");
        int bytes =
            snprintf(found, PATH_MAX, "%.*s%s%s", (int)length, at, length ? "/" : "./", program);
        if (bytes < PATH_MAX && is_executable(found))
            return true;
        at += length;
        if (!*at)
            return false;
    }
}

/* Whether the kernel gives the program other rights than this process has. Root's own programs with
 * that bit get none. */
static bool has_other_rights(const struct stat *file)
{
    return ((file->st_mode & S_ISUID) && file->st_uid != geteuid()) ||
           ((file->st_mode & S_ISGID) && (file->st_mode & S_IXGRP) && file->st_gid != getegid());
}

uint32_t ready_check(const char *program, const char *folders, char found[PATH_MAX],
                     struct error *why)
{
    struct stat file;
    if (strchr(program, '/'))
        snprintf(found, PATH_MAX, "%s", program);
    else if (!*program || !search(program, folders ? folders : USUAL_FOLDERS, found))
        return access(program, F_OK) == 0
                   ? error_set(why, MESSAGE(run_not_in_path), program, program)
                   : error_set(why, MESSAGE(run_not_found), program);
    if (stat(found, &file) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? error_set(why, MESSAGE(run_no_file), program)
                   : error_set(why, MESSAGE(run_unreadable), program, strerror(errno));
    if (S_ISDIR(file.st_mode))
        return error_set(why, MESSAGE(run_folder), program, program);
    if (access(found, X_OK) < 0)
        return error_set(why, MESSAGE(run_not_executable), program, program);
    if (has_other_rights(&file))
        return error_set(why, MESSAGE(run_setuid), found);
    return 0;
}
