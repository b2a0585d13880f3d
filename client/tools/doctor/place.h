/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * place: the files of the machine that is looked at, below a folder that stands for its root. Only
 * tests look at another machine than their own. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_DOCTOR_PLACE_H
#define GPUSHARE_CLIENT_TOOLS_DOCTOR_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct place {
    const char *root; /* "" for this machine, else a folder without a slash at its end */
};

/* Writes the path that a file of the machine has here. path: begins with a slash. A path that
 * would be too long becomes "". Returns full. */
const char *place_path(const struct place *place, const char *path, char full[PATH_MAX]);

/* Reads the beginning of a file, with a NUL behind it. Returns the number of bytes, less than size,
 * or a negative errno; text is then "". */
int place_read(const struct place *place, const char *path, char *text, size_t size);

/* As stat(2), which follows links. Returns 0 or a negative errno. */
int place_stat(const struct place *place, const char *path, struct stat *found);

bool place_has(const struct place *place, const char *path);

#endif
