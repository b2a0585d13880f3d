/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * log_journal: finds out whether a service's log goes to the journal, and sends lines there with
 * fields beside the text (systemd.journal-fields(7)). It reads a variable of the environment, which
 * a tool or a library of a program must not, so it stands apart from log.
 *
 *   EVENT        the name of the line's message, of `gpushared --list-messages`, without "log_"
 *   MESSAGE_ID   of the events that administrators wait for
 *   CLIENT, CLIENT_UID, CLIENT_PID, DEVICE   what the line is about
 */
#ifndef GPUSHARE_COMMON_LOG_JOURNAL_H
#define GPUSHARE_COMMON_LOG_JOURNAL_H

#include "common/log.h"

/* LOG_FORM_JOURNAL if standard error is the journal, else LOG_FORM_TIMED. $JOURNAL_STREAM has the
 * journal's device and inode (systemd.exec(5)). The variable alone says nothing, because a shell
 * that was started by a service hands it on. */
enum log_form log_journal_form(void);

#define LOG_JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Sends lines of LOG_FORM_JOURNAL to this socket from now on. program: stays the caller's. A line
 * that the socket does not take, also while journald starts anew, goes to standard error with its
 * priority alone. Returns 0 or -errno: all lines do. Before the first other thread. */
int log_journal_open(const char *path, const char *program);

/* All lines go to standard error again. */
void log_journal_close(void);

#endif
