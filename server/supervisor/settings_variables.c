/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Makes the table of gpushared --list-variables. */
#include <stdio.h>
#include <string.h>

#include "common/limits/limits.h"
#include "common/error.h"
#include "common/limits/variables.h"
#include "server/supervisor/settings.h"

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
    add_row(context, name, "limit");
    return NULL;
}

static void note_other(const char *name, void *context)
{
    struct listing *listing = context;
    char row[64];
    snprintf(row, sizeof row, "%s ", name);
    if (!strstr(listing->text, row))
        add_row(listing, name, "other");
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
