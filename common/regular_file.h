/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * regular_file: opening a path of which a file is expected. A pipe or a device in its place would
 * keep a thread that opens it waiting. Any thread.
 */
#ifndef GPUSHARE_COMMON_REGULAR_FILE_H
#define GPUSHARE_COMMON_REGULAR_FILE_H

/* flags: of open(2), without those that keep it from waiting or from being inherited; with O_CREAT
 * the file is its owner's, and can be read by its group. Returns the descriptor, which is the
 * caller's, or -errno; -EINVAL: something else than a file is there. */
int regular_file_open(const char *path, int flags);

/* Words for an errno of it, which strerror(3) has no right ones for. error: not negative. */
const char *regular_file_reason(int error);

#endif
