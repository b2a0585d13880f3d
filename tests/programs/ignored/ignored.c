/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A library that hides one variable of the environment, the one that $IGNORED_VARIABLE names, from
 * the program and from all that it starts. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *find(const char *name)
{
    size_t length = strlen(name);
    for (char **one = environ; one && *one; one++)
        if (!strncmp(*one, name, length) && (*one)[length] == '=')
            return *one + length + 1;
    return NULL;
}

char *getenv(const char *name)
{
    const char *ignored = find("IGNORED_VARIABLE");
    return ignored && !strcmp(ignored, name) ? NULL : find(name);
}
