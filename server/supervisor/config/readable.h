/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * readable: whether another user could read a file, asked of the kernel in a process of its own, so
 * that access lists, security modules and each folder on the way count. One thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_READABLE_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_READABLE_H

/* Returns 0: the user can read it. An errno: what the user's attempt met. -1: nobody can tell,
 * since there is no such user, or since this process is not root. */
int readable_by(const char *user, const char *path);

#endif
