/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * mps: the commands of nvidia-cuda-mps-control (those of MPS's second version), carried out by
 * requests to gpushared. They print what that program prints, so that its scripts go on working.
 * One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_MPS_MPS_H
#define GPUSHARE_CLIENT_TOOLS_MPS_MPS_H

#include <stdio.h>

#include "client/tools/admin_client.h"

/*
 * Carries out the command in these words; without any, each line of standard input, until its end
 * or until no server answers. A line that fails does not keep the next ones from being carried out.
 * Sentences go to standard error. socket: the administrators'. Returns how the first command that
 * failed has ended, or ADMIN_OK.
 */
enum admin_outcome mps_run(const char *socket, int count, char *words[]);

/* Prints the commands, a line each. */
void mps_explain(FILE *out);

/* The place of the word "mps" in gpusharectl's command line, if that is its command; else argc.
 * Words behind it may look like options, as in `ps -p PID`. */
int mps_find(int argc, char *argv[]);

#endif
