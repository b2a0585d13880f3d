/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * run: the command `gpushare run`, which executes a CUDA program with gpushare's CUDA libraries and
 * with limits from its command line. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_RUN_H
#define GPUSHARE_CLIENT_TOOLS_RUN_H

/* words: from "run" on. Executes the program and does not return; or prints what is wrong to
 * standard error, and returns an exit status: 2 wrong usage, 125 the server can't be reached or
 * refuses, 126 the program or a library can't be used, 127 there is no such program. */
int run_command(int count, char **words);

/* The same for `softgpu run`: the program uses the software GPU by itself, without a server, so
 * that 125 is not returned. */
int run_softgpu(int count, char **words);

#endif
