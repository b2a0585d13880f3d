/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * regular_file: opening a path of which a file is expected, and writing to it. A pipe or a device
 * in its place would keep a thread that opens it waiting. Any thread.
 */
#ifndef GPUSHARE_COMMON_REGULAR_FILE_H
#define GPUSHARE_COMMON_REGULAR_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* flags: of open(2), without those that keep it from waiting or from being inherited; with O_CREAT
 * the file is its owner's, and can be read by its group. Returns the descriptor, which is the
 * caller's, or -errno; -EINVAL: something else than a file is there. */
int regular_file_open(const char *path, int flags);

/* Writes all of a text where the descriptor stands. Returns 0 or -errno; a part may be written
 * then. */
int regular_file_write(int fd, const char *text, size_t bytes);

/*
 * Gives a path a text in the place of what is there, whole or not at all: by PATH.new, which is
 * renamed. Others may write to the folder too: what lies at PATH.new is taken away, and is never
 * opened. It could be a link to another file, a pipe, or a file that its owner changes later.
 * mode: of the file, whatever the umask is. Returns 0 or -errno. Does not wait for the disk.
 */
int regular_file_replace(const char *path, mode_t mode, const char *text, size_t bytes);

/* Words for an errno of it, which strerror(3) has no right ones for. error: not negative. */
const char *regular_file_reason(int error);

#endif
