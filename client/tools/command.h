/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * command: the commands of gpusharectl, by name, and what --help says of them. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_COMMAND_H
#define GPUSHARE_CLIENT_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The accounting's file, as docs/accounting.md has it in the configuration. */
#define COMMAND_REPORT_FILE "/var/lib/gpushare/accounting.jsonl"

/* Bytes that hold all names, with commas between them. */
enum { COMMAND_NAMES = 192 };

bool command_is_known(const char *name);

/* Whether a command has an option of its own, such as "--wide". name: a known command. */
bool command_takes(const char *name, const char *option);

/* Prints a script for bash that completes commands and options. */
void command_complete_bash(FILE *out);

/* The command that a misspelt word resembles; NULL if it resembles none. Static. */
const char *command_nearest(const char *word);

/* Writes "ping, status, ...": the names of all commands. Returns text. */
const char *command_names(char text[COMMAND_NAMES]);

/* Prints the whole text of --help. */
void command_explain_all(FILE *out);

/* Prints the part of it that is about one command. name: a known one. */
void command_explain(FILE *out, const char *name);

#endif
