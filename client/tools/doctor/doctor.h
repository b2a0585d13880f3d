/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * doctor: the command `gpushare doctor`, which looks at the machine, the server and this process's
 * environment, and says what is wrong and how to mend it. It changes nothing, and needs neither a
 * GPU nor a server. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_DOCTOR_DOCTOR_H
#define GPUSHARE_CLIENT_TOOLS_DOCTOR_DOCTOR_H

/* words: from "doctor" on. Prints the report to standard output. Returns an exit status: 0 nothing
 * is wrong, warnings aside, 1 something is, 2 wrong usage. */
int doctor_command(int count, char **words);

#endif
