/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Makes the table of gpushared --list-variables, and the lines of --help about limits. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "common/limits/allowance.h"
#include "common/limits/limits.h"
#include "common/limits/variables.h"
#include "server/supervisor/settings.h"

#define HELP_COLUMNS 88 /* the longest lines of --help */

const struct settings_variable settings_variables[] = {
    {"GPUSHARE_MODE", SCHEDULE_MODE},
    {"GPUSHARE_LEASE", SCHEDULE_LEASE},
    {"GPUSHARE_PRECISION", SCHEDULE_PRECISION},
    {"GPUSHARE_QUANTUM", SCHEDULE_QUANTUM},
    {"GPUSHARE_WINDOW_LIMIT", SCHEDULE_WINDOW_LIMIT},
    {"GPUSHARE_LOCAL_MEMORY", SCHEDULE_LOCAL_MEMORY},
    {0},
};

struct listing {
    char *text;
    size_t bytes, used;
};

static void add_row(struct listing *listing, const char *name, const char *use)
{
    if (listing->used >= listing->bytes)
        return;
    int length = snprintf(listing->text + listing->used, listing->bytes - listing->used,
                          "%-36s %s\n", name, use);
    listing->used += (size_t)length;
}

/* Stands for the environment: notes each variable that is looked for, and says that it is not
 * set. */
static const char *note_limit(const char *name, void *context)
{
    /* One reader serves both. */
    add_row(context, name, variables_is_clients(name) ? "client" : "client and gpushared");
    return NULL;
}

static bool is_servers(const char *name)
{
    for (const struct settings_variable *row = settings_variables; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return true;
    return false;
}

static void note_other(const char *name, void *context)
{
    struct listing *listing = context;
    char row[64];
    snprintf(row, sizeof row, "%s ", name);
    if (!strstr(listing->text, row))
        add_row(listing, name, is_servers(name) ? "gpushared" : "client");
}

void settings_variables_print(FILE *to)
{
    char text[4096]; /* room for twice as many variables as there are */
    struct listing listing = {.text = text, .bytes = sizeof text};
    struct limits_wish wish;
    struct error unused;
    /* Asked of the reader itself, so the table can't differ from what is read. */
    limits_wish_read(&wish, note_limit, &listing, &unused);
    variables_known(note_other, &listing);
    fputs(text, to);
}

/* A list of names in lines of --help. */
struct names {
    FILE *to;
    size_t column; /* 0: nothing is written yet */
};

static void names_add(struct names *names, const char *name)
{
    if (!name)
        return;
    bool fits = names->column + strlen(", ,") + strlen(name) <= HELP_COLUMNS;
    const char *before = !names->column ? "  " : fits ? ", " : ",\n  ";
    fprintf(names->to, "%s%s", before, name);
    names->column = (names->column && fits ? names->column : 0) + strlen("  ") + strlen(name);
}

void settings_variables_explain(FILE *to)
{
    struct names limits = {.to = to}, requests = {.to = to};
    for (enum resource i = 0; i < RESOURCES; i++)
        names_add(&limits, allowance_resource(i)->limit_variable);
    for (enum resource i = 0; i < RESOURCES; i++)
        names_add(&limits, allowance_resource(i)->limit_alias);
    names_add(&limits, ALLOWANCE_FRACTION_VARIABLE);
    for (enum scalar i = 0; i < SCALARS; i++)
        names_add(&limits, allowance_scalar(i)->variable);
    fputs("\n                 the default and the ceiling of every client (default: no limit)\n",
          to);
    for (enum resource i = 0; i < RESOURCES; i++)
        names_add(&requests, allowance_resource(i)->request_variable);
    fputs("\n                 what every client is guaranteed (default: nothing)\n", to);
}
