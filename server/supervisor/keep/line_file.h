/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * line_file: a file of lines that this process appends to, and that others may move away or cut at
 * any time (logrotate). It is opened for each call, so a moved file is left alone and a new one
 * begins. The calls wait for the disk: any thread but the loop's.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_KEEP_LINE_FILE_H
#define GPUSHARE_SERVER_SUPERVISOR_KEEP_LINE_FILE_H

#include <stddef.h>

/*
 * Appends whole lines, and waits until the disk has them. A file that is not there is made, for its
 * owner and for its group to read, whatever the umask is; its folder too. Returns 0 or -errno; then
 * nothing of the text is in the file.
 *
 * A last line without an end is taken away, if one of the lines begins with it: a process that was
 * killed while it wrote left a part of what is written now. Otherwise it is ended first: a crash of
 * the machine left it, and the rest is lost.
 */
int line_file_append(const char *path, const char *text, size_t bytes);

/* Reads the end of the file, at most `room` bytes. Returns how many, 0 if there is no file, or
 * -errno. */
long line_file_tail(const char *path, char *text, size_t room);

#endif
