/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/accepted.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/regular_file.h"
#include "server/supervisor/config/config.h"

#define FILE_NAME "accepted.yaml"

void accepted_keep(const char *folder, const struct config *config)
{
    char path[PATH_MAX];
    int result = 0;
    if (!folder[0])
        return;
    if (snprintf(path, sizeof path, "%s/" FILE_NAME, folder) >= (int)sizeof path)
        result = -ENAMETOOLONG;
    else if (config)
        result = mkdir(folder, 0755) < 0 && errno != EEXIST
                     ? -errno
                     : regular_file_replace(path, 0600, config->text, config->text_bytes);
    else if (unlink(path) < 0 && errno != ENOENT)
        result = -errno;
    if (result < 0)
        log_warning(MESSAGE_TEXT(accepted_not_kept), path, strerror(-result));
}

/* A user who may write the file decides about every user's limits. */
static uint32_t check_owner(const char *path, struct error *why)
{
    struct stat file;
    if (lstat(path, &file) < 0)
        return error_set(why, MESSAGE(config_unreadable), path, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return error_set(why, MESSAGE(config_not_a_file), path);
    if ((file.st_uid != geteuid() && file.st_uid != 0) || (file.st_mode & (S_IWGRP | S_IWOTH)))
        return error_set(why, MESSAGE(accepted_foreign), path, (unsigned)file.st_uid,
                         (unsigned)file.st_mode & 0777U);
    return 0;
}

uint32_t accepted_load(struct config **config, const char *folder, struct error *why)
{
    char path[PATH_MAX];
    *config = NULL;
    if (!folder[0])
        return error_set(why, MESSAGE(saved_no_folder));
    if (snprintf(path, sizeof path, "%s/" FILE_NAME, folder) >= (int)sizeof path)
        return error_set(why, MESSAGE(config_unreadable), path, strerror(ENAMETOOLONG));
    uint32_t error = check_owner(path, why);
    return error ? error : config_load(config, path, why);
}
