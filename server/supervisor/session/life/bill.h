/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_bill: a client's lines in the accounting: of its use since the line before. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_BILL_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_BILL_H

struct session;

/* The client has attached. */
void session_bill_begin(struct session *session);

/* Makes a line of what it has used so far; the next line begins now. */
void session_bill_cut(struct session *session);

/* Makes the last line, if the client was attached. It is marked, and its charges have been given
 * back. */
void session_bill_end(struct session *session);

#endif
