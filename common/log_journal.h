/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * log_journal: finds out whether a service's log goes to the journal. It reads a variable of the
 * environment, which a tool or a library of a program must not, so it stands apart from log.
 */
#ifndef GPUSHARE_COMMON_LOG_JOURNAL_H
#define GPUSHARE_COMMON_LOG_JOURNAL_H

#include "common/log.h"

/* LOG_FORM_JOURNAL if standard error is the journal, else LOG_FORM_TIMED. $JOURNAL_STREAM has the
 * journal's device and inode (systemd.exec(5)). The variable alone says nothing, because a shell
 * that was started by a service hands it on. */
enum log_form log_journal_form(void);

#endif
