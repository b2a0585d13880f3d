/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: the C library has no edit distance, and these lines are less than another library
 * in every client program. Names of Kubernetes' and Docker's links are left out: a service that is
 * called gpushare puts several into the environment of each pod, and each would be warned of. */
#include "common/limits/variables.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"

#define PREFIX "GPUSHARE_"

enum {
    NAME_MAX_SHOWN = 60,
    /* A name that is further off than this, or by half of what follows the prefix, is no slip of
     * the known one. */
    NEAR = 3,
    /* An environment can be made to hold thousands. */
    TOLD_MOST = 16,
};

/* A client's, the server's and the library's own alike: a shell in which all of them start has
 * all of them. */
static const char *const known[] = {
    "GPUSHARE_ACTIVE_THREAD_PERCENTAGE",
    "GPUSHARE_CLIENT_NAME",
    "GPUSHARE_CLIENT_PRIORITY",
    "GPUSHARE_FRACTION",
    "GPUSHARE_HOST_MEMORY_LIMIT",
    "GPUSHARE_HOST_MEMORY_REQUEST",
    "GPUSHARE_LEASE",
    "GPUSHARE_MEMORY_LIMIT",
    "GPUSHARE_MEMORY_REQUEST",
    "GPUSHARE_MODE",
    "GPUSHARE_PINNED_DEVICE_MEM_LIMIT",
    "GPUSHARE_PINNED_HOST_MEM_LIMIT",
    "GPUSHARE_PRECISION",
    "GPUSHARE_PROFILE",
    "GPUSHARE_QUANTUM",
    "GPUSHARE_SOCKET",
    "GPUSHARE_THREADS_LIMIT",
    "GPUSHARE_THREADS_REQUEST",
    "GPUSHARE_TIME_LIMIT",
    "GPUSHARE_TIME_REQUEST",
    "GPUSHARE_VISIBLE_DEVICES",
    "GPUSHARE_WARNINGS",
};
enum { KNOWN = sizeof known / sizeof known[0] };

/* Where a part stands in a name, at an underscore and up to one or the end; NULL. */
static const char *find_part(const char *name, const char *part)
{
    size_t length = strlen(part);
    for (const char *at = name; (at = strchr(at, '_')); at++)
        if (!strncmp(at + 1, part, length) && (!at[1 + length] || at[1 + length] == '_'))
            return at + 1 + length;
    return NULL;
}

/* NAME_SERVICE_HOST, NAME_SERVICE_PORT, NAME_SERVICE_PORT_<of a port's name>, NAME_PORT, and
 * NAME_PORT_<number>_<protocol> with _PROTO, _PORT, _ADDR or without, as Docker names links: see
 * "Environment variables" in Kubernetes' documentation of Services. */
static bool is_service_link(const char *name)
{
    const char *rest = find_part(name, "SERVICE_HOST");
    if (rest && !*rest)
        return true;
    if (find_part(name, "SERVICE_PORT"))
        return true;
    for (rest = name; (rest = find_part(rest, "PORT"));) {
        if (!*rest || (rest[0] == '_' && isdigit((unsigned char)rest[1])))
            return true;
    }
    return false;
}

/* Longer names than this are of nobody's making but a tester's. */
static bool service_link(const char *name, size_t length)
{
    char copy[256];
    if (length >= sizeof copy)
        return false;
    memcpy(copy, name, length);
    copy[length] = '\0';
    return is_service_link(copy);
}

/* How many letters have to be put in, left out or replaced (Levenshtein 1966). */
static size_t distance(const char *a, size_t a_length, const char *b)
{
    size_t row[NAME_MAX_SHOWN + 1];
    size_t b_length = strlen(b);
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = min(replaced, min(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_length];
}

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strlen(known[i]) == length && !memcmp(known[i], name, length))
            return true;
    return false;
}

static const char *nearest(const char *name, size_t length)
{
    const char *found = NULL;
    size_t closest = NEAR + 1;
    for (size_t i = 0; i < KNOWN && length <= NAME_MAX_SHOWN; i++) {
        size_t away = distance(name, length, known[i]);
        if (away < closest && away * 2 < length - strlen(PREFIX)) {
            closest = away;
            found = known[i];
        }
    }
    return found;
}

static void tell(const char *name, size_t length, variables_unknown *unknown, void *context)
{
    char shown[NAME_MAX_SHOWN + 1], text[VARIABLES_TEXT];
    const char *meant = nearest(name, length);
    snprintf(shown, sizeof shown, "%.*s", (int)length, name);
    for (char *c = shown; *c; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
    snprintf(text, sizeof text, "%s is set, and nothing of gpushare reads it: %s%s", shown,
             meant ? "it should perhaps be " : "is it misspelt, or of another version?",
             meant ? meant : "");
    unknown(context, text);
}

void variables_check(char *const *environment, variables_unknown *unknown, void *context)
{
    unsigned told = 0;
    for (; environment && *environment && told < TOLD_MOST; environment++) {
        size_t length = strcspn(*environment, "=");
        if (strncmp(*environment, PREFIX, strlen(PREFIX)) != 0 || is_known(*environment, length) ||
            service_link(*environment, length))
            continue;
        tell(*environment, length, unknown, context);
        told++;
    }
}

void variables_known(variables_row *row, void *context)
{
    for (size_t i = 0; i < KNOWN; i++)
        row(known[i], context);
}
