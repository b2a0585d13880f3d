/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * helper: work that may crash or never end, in a process of its own with a time limit: calls of a
 * driver, talks with a server, and other programs. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_DOCTOR_HELPER_H
#define GPUSHARE_CLIENT_TOOLS_DOCTOR_HELPER_H

#include <stddef.h>

/* Returns zeroed memory that this process and its children share, or NULL. Its end is the
 * process's. */
void *helper_shared(size_t bytes);

/*
 * Calls work(shared) in a child, whose standard output and error go nowhere. Returns 0;
 * -ETIMEDOUT: it did not return in time, and was killed; -ECHILD: it crashed, or called exit; or
 * another negative errno. The child's writes to shared memory are there in each case.
 */
typedef void helper_work(void *shared);
int helper_call(helper_work *work, void *shared, unsigned seconds);

/*
 * Executes a program, found by PATH, with empty standard input. words: its name and arguments, and
 * NULL. output: gets what it printed to its standard output, malloc'ed, with a NUL behind it, at
 * most a few MiB; NULL: that goes nowhere. Its standard error goes nowhere.
 *
 * Returns its exit status; -ENOENT: there is no such program; -ETIMEDOUT: it took too long, and was
 * killed; -EINTR: a signal ended it; or another negative errno. *output is the caller's to free,
 * and NULL after an error.
 */
int helper_run(const char *const words[], unsigned seconds, char **output);

#endif
