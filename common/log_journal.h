/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * log_journal: finds out whether a service's log goes to the journal. It reads a variable of the
 * environment, which a tool or a library of a program must not, so it stands apart from log.
 */
#ifndef GPUSHARE_COMMON_LOG_JOURNAL_H
#define GPUSHARE_COMMON_LOG_JOURNAL_H

#include <stdbool.h>

/* Whether standard error is the journal: $JOURNAL_STREAM has its device and inode
 * (systemd.exec(5)). The variable alone says nothing, because a shell that was started by a service
 * hands it on. */
bool log_journal_is_there(void);

#endif
