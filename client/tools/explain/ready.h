/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ready: whether a program is there and can be executed with gpushare's libraries, before it is.
 * One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_READY_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_READY_H

#include <limits.h>
#include <stdint.h>

#include "common/error.h"

/*
 * Finds a program as execvp(3) does. folders: the value of PATH, or NULL. Returns 0, with its path
 * in found; NOT_FOUND: there is none; or another error number: it is a folder, not executable, or
 * executed with other rights than this process's, which makes the dynamic linker ignore LD_AUDIT.
 * The sentence is in *why then.
 */
uint32_t ready_check(const char *program, const char *folders, char found[PATH_MAX],
                     struct error *why);

#endif
