/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Names of Kubernetes' and Docker's links are left out: a service that is called gpushare puts
 * several into the environment of each pod, and each would be warned of. */
#include "common/limits/variables.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/limits/allowance.h"
#include "common/messages.h"
#include "common/spelling.h"

#define PREFIX "GPUSHARE_"

enum {
    NAME_MAX_SHOWN = SPELLING_MAX,
    /* An environment could hold thousands of such names, and each is a line of the log. */
    TOLD_MAX = 16,
};

/* The client's and the server's names are one list, because one shell may have the variables of
 * both. */
static const char *const others[] = {
    "GPUSHARE_CLIENT_NAME", ALLOWANCE_FRACTION_VARIABLE,
    "GPUSHARE_LEASE",       "GPUSHARE_LOCAL_MEMORY",
    "GPUSHARE_MODE",        "GPUSHARE_PRECISION",
    "GPUSHARE_PROFILE",     "GPUSHARE_QUANTUM",
    "GPUSHARE_SOCKET",      "GPUSHARE_VISIBLE_DEVICES",
    "GPUSHARE_WARNINGS",    "GPUSHARE_WINDOW_LIMIT",
};
static const char *const clients[] = {"GPUSHARE_CLIENT_NAME", "GPUSHARE_PROFILE",
                                      "GPUSHARE_WARNINGS"};
enum {
    OTHERS = sizeof others / sizeof others[0],
    CLIENTS = sizeof clients / sizeof clients[0],
    NAMES_OF_ROW = 3,
};

enum { NAMES = OTHERS + SCALARS + RESOURCES * NAMES_OF_ROW };

/* NULL where a resource lacks a name. */
static const char *name_at(size_t index)
{
    if (index < OTHERS)
        return others[index];
    index -= OTHERS;
    if (index < SCALARS)
        return allowance_scalar((enum scalar)index)->variable;
    index -= SCALARS;
    const struct allowance_resource *row =
        allowance_resource((enum resource)(index / NAMES_OF_ROW));
    const char *names[NAMES_OF_ROW] = {row->request_variable, row->limit_variable,
                                       row->limit_alias};
    return names[index % NAMES_OF_ROW];
}

/* The next one in the order of the alphabet; NULL at the end. after: "" for the first. */
static const char *known_after(const char *after)
{
    const char *next = NULL;
    for (size_t i = 0; i < NAMES; i++) {
        const char *name = name_at(i);
        if (name && strcmp(name, after) > 0 && (!next || strcmp(name, next) < 0))
            next = name;
    }
    return next;
}

/* Finds a part of a name between underscores. Returns the place behind it, or NULL. */
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

/* No Service has such a long name. */
static bool service_link(const char *name, size_t length)
{
    char copy[256];
    if (length >= sizeof copy)
        return false;
    memcpy(copy, name, length);
    copy[length] = '\0';
    return is_service_link(copy);
}

static bool is_known(const char *name, size_t length)
{
    for (const char *known = ""; (known = known_after(known));)
        if (strlen(known) == length && !memcmp(known, name, length))
            return true;
    return false;
}

static const char *find_nearest(const char *name, size_t length)
{
    struct spelling_guess guess = spelling_guess_begin(name, length, length - strlen(PREFIX));
    if (length > NAME_MAX_SHOWN)
        return NULL;
    for (const char *known = ""; (known = known_after(known));)
        spelling_guess_look(&guess, known);
    return guess.found;
}

static void tell_unknown(const char *name, size_t length, variables_unknown *unknown, void *context)
{
    char shown[NAME_MAX_SHOWN + 1];
    struct error told;
    const char *meant = find_nearest(name, length);
    snprintf(shown, sizeof shown, "%.*s", (int)length, name);
    for (char *c = shown; *c; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
    if (meant)
        error_set(&told, MESSAGE(variable_misspelt), shown, meant);
    else
        error_set(&told, MESSAGE(variable_unread), shown);
    unknown(context, &told);
}

void variables_check(char *const *environment, variables_unknown *unknown, void *context)
{
    unsigned told = 0;
    for (; environment && *environment && told < TOLD_MAX; environment++) {
        size_t length = strcspn(*environment, "=");
        if (strncmp(*environment, PREFIX, strlen(PREFIX)) != 0 || is_known(*environment, length) ||
            service_link(*environment, length))
            continue;
        tell_unknown(*environment, length, unknown, context);
        told++;
    }
}

bool variables_is_clients(const char *name)
{
    for (size_t i = 0; i < CLIENTS; i++)
        if (!strcmp(clients[i], name))
            return true;
    return false;
}

static bool is_set(char *const *environment, const char *name)
{
    const size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
            return true;
    return false;
}

void variables_check_clients(char *const *environment, variables_unknown *told, void *context)
{
    struct error what;
    for (size_t i = 0; i < CLIENTS; i++) {
        if (!is_set(environment, clients[i]))
            continue;
        error_set(&what, MESSAGE(variable_of_clients), clients[i]);
        told(context, &what);
    }
}

void variables_known(variables_row *row, void *context)
{
    for (const char *known = ""; (known = known_after(known));)
        row(known, context);
}
