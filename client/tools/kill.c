/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/kill.h"

#include <ctype.h>
#include <string.h>

#include "client/tools/cell.h"
#include "client/tools/change.h"
#include "common/messages.h"

/* ---- whom ---- */

#define NAME_WORD "name"

/* Whether a word begins a target that is no name: a number, or a kind such as "user" or "gpu:0". */
static bool is_other_target(const char *word)
{
    static const char *const kinds[] = {"client", "user", "group", "cgroup", "gpu"};
    if (isdigit((unsigned char)word[0]) && word[strspn(word, "0123456789")] == '\0')
        return true;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i]);
        if (strncmp(word, kinds[i], length) == 0 && (word[length] == '\0' || word[length] == ':'))
            return true;
    }
    return false;
}

/* Returns how many words the name took; 0: the words name no client by its name. */
static int read_name(struct kill_whom *whom, int count, char *const words[])
{
    const size_t length = strlen(NAME_WORD);
    if (count > 1 && strcmp(words[0], NAME_WORD) == 0) {
        whom->name = words[1];
        return 2;
    }
    if (count && strncmp(words[0], NAME_WORD ":", length + 1) == 0)
        whom->name = words[0] + length + 1;
    else if (count && strcmp(words[0], NAME_WORD) != 0 && !is_other_target(words[0]))
        whom->name = words[0];
    return whom->name != NULL;
}

static uint32_t read_target(json_t *request, int count, char *const words[], int *used,
                            struct error *why)
{
    if (change_read_target(request, count, words, true, used, why))
        error_prefix(why, "kill: ");
    else
        return 0;
    return why->number;
}

uint32_t kill_read(struct kill_whom *whom, json_t *request, int count, char *const words[],
                   struct error *why)
{
    char kind[] = "user", user[256];
    char *const of_user[] = {kind, user};
    int used = read_name(whom, count, words), user_used;
    /* --all with a name is every client of that name. */
    if ((whom->user != NULL) + (whom->all || whom->name) + (count > 0 && !whom->name) > 1)
        return error_set(why, MESSAGE(ctl_kill_whom));
    if (whom->user) {
        snprintf(user, sizeof user, "%s", whom->user);
        return read_target(request, 2, of_user, &user_used, why);
    }
    if (whom->all && !whom->name)
        return json_object_set_new(request, "all", json_true()) < 0
                   ? error_set(why, MESSAGE(process_no_memory))
                   : 0;
    if (!whom->name && read_target(request, count, words, &used, why))
        return why->number;
    return used < count ? error_set(why, MESSAGE(ctl_argument), words[used]) : 0;
}

/* ---- a client by its name ---- */

/* The rows of the clients with this name. NULL without memory. */
static json_t *find_named(const json_t *clients, const char *name)
{
    json_t *found = json_array(), *row;
    for (size_t i = 0; found && (row = json_array_get(clients, i)); i++) {
        const char *its = json_string_value(json_object_get(row, "name"));
        if (its && strcmp(its, name) == 0)
            json_array_append(found, row);
    }
    return found;
}

/* "3 (pid 12, uid 1001), 4 (pid 13, uid 1001)", cut with dots. */
static const char *list_candidates(const json_t *found, char *text, size_t size)
{
    const json_t *row;
    text[0] = '\0';
    for (size_t i = 0; (row = json_array_get(found, i)); i++) {
        char number[CELL_BYTES], pid[CELL_BYTES], uid[CELL_BYTES];
        size_t used = strlen(text);
        int length = snprintf(text + used, size - used, "%s%s (pid %s, uid %s)", i ? ", " : "",
                              cell_integer(row, "client", number), cell_integer(row, "pid", pid),
                              cell_integer(row, "uid", uid));
        if (length < 0 || (size_t)length + sizeof ", ..." > size - used) {
            snprintf(text + used, size - used, ", ...");
            break;
        }
    }
    return text;
}

static enum admin_outcome kill_one(const char *socket, json_t *request, const json_t *row,
                                   json_t **answer)
{
    *answer = NULL;
    if (json_object_set(request, "client", json_object_get(row, "client")) < 0)
        return ADMIN_FAILED;
    return admin_client_ask(socket, request, answer, NULL);
}

/* As the server's answer to the killing of a user's clients. NULL without memory. */
static json_t *begin_answer(void)
{
    return json_pack("{s:i, s:b, s:s, s:n, s:n, s:n, s:n, s:[], s:n, s:[]}", "schema_version",
                     ADMIN_CLIENT_SCHEMA_VERSION, "ok", 1, "request", "kill", "client", "name",
                     "pid", "uid", "clients", "worker_replaced", "ended_with_worker");
}

/* Adds what one answer says to that for all. */
static void add_ended(json_t *all, const json_t *one)
{
    json_t *row = json_pack("{s:O, s:O, s:O, s:O}", "client", json_object_get(one, "client"),
                            "name", json_object_get(one, "name"), "pid",
                            json_object_get(one, "pid"), "uid", json_object_get(one, "uid"));
    json_array_append_new(json_object_get(all, "clients"), row);
}

static bool has_left(const json_t *answer)
{
    const char *error = json_string_value(json_object_get(answer, "error"));
    return error && strcmp(error, "not_found") == 0;
}

/* One that has left meanwhile is no failure. At another failure the rest is left alone. */
static enum admin_outcome kill_each(const char *socket, const char *name, json_t *request,
                                    const json_t *found, json_t **answer)
{
    json_t *all = begin_answer(), *one;
    const json_t *row;
    for (size_t i = 0; all && (row = json_array_get(found, i)); i++) {
        enum admin_outcome outcome = kill_one(socket, request, row, &one);
        if (outcome == ADMIN_OK) {
            add_ended(all, one);
        } else if (!has_left(one)) {
            const json_t *ended = json_object_get(all, "clients");
            const char *error = json_string_value(json_object_get(one, "error"));
            const char *text = json_string_value(json_object_get(one, "text"));
            *answer = admin_client_error(error ? error : "unknown", MESSAGE_TEXT(ctl_kill_stopped),
                                         name, json_array_size(ended), json_array_size(found),
                                         text ? text : MESSAGE_TEXT(process_no_memory));
            json_decref(one);
            json_decref(all);
            return outcome;
        }
        json_decref(one);
    }
    *answer = all;
    return all ? ADMIN_OK : ADMIN_FAILED;
}

static enum admin_outcome kill_named(const char *socket, const struct kill_whom *whom,
                                     json_t *request, const json_t *found, json_t **answer)
{
    char candidates[600];
    const size_t count = json_array_size(found);
    if (count == 1)
        return kill_one(socket, request, json_array_get(found, 0), answer);
    if (count == 0)
        *answer = admin_client_error("not_found", MESSAGE_TEXT(ctl_name_unknown), whom->name);
    else if (!whom->all)
        *answer = admin_client_error("invalid_value", MESSAGE_TEXT(ctl_name_of_several), whom->name,
                                     list_candidates(found, candidates, sizeof candidates));
    else
        return kill_each(socket, whom->name, request, found, answer);
    return ADMIN_FAILED;
}

enum admin_outcome kill_run(const char *socket, const struct kill_whom *whom, json_t *request,
                            json_t **answer)
{
    if (!whom->name)
        return admin_client_ask(socket, request, answer, NULL);
    json_t *look = json_pack("{s:s}", "request", "clients"), *clients = NULL;
    enum admin_outcome outcome =
        look ? admin_client_ask(socket, look, &clients, NULL) : ADMIN_FAILED;
    json_decref(look);
    if (outcome != ADMIN_OK) {
        *answer = clients;
        return outcome;
    }
    json_t *found = find_named(json_object_get(clients, "clients"), whom->name);
    *answer = NULL;
    outcome = found ? kill_named(socket, whom, request, found, answer) : ADMIN_FAILED;
    json_decref(found);
    json_decref(clients);
    return outcome;
}

/* ---- what was ended ---- */

/* A client in the cells of a message's row. */
struct shown_client {
    char number[CELL_BYTES], name[CELL_BYTES], pid[CELL_BYTES], uid[CELL_BYTES];
};

static void read_client(const json_t *client, struct shown_client *shown)
{
    cell_integer(client, "client", shown->number);
    snprintf(shown->name, sizeof shown->name, "%s", cell_text(client, "name", shown->pid));
    cell_integer(client, "pid", shown->pid);
    /* Where the user has a name: "1001, user alice". */
    char user[CELL_BYTES];
    cell_integer(client, "uid", shown->uid);
    if (strcmp(cell_user(client, "uid", user), shown->uid) != 0) {
        size_t used = strlen(shown->uid);
        snprintf(shown->uid + used, sizeof shown->uid - used, ", user %s", user);
    }
}

/* The clients of a user, or of all users. */
static void print_ended(FILE *out, const json_t *clients)
{
    struct shown_client client;
    const json_t *row;
    if (json_array_size(clients) == 0)
        fprintf(out, "%s\n", MESSAGE_TEXT(ctl_killed_nobody));
    for (size_t i = 0; (row = json_array_get(clients, i)); i++) {
        read_client(row, &client);
        fprintf(out, MESSAGE_TEXT(ctl_killed), client.number, client.name, client.pid, client.uid);
        fputc('\n', out);
    }
}

void kill_print(FILE *out, const json_t *answer)
{
    const json_t *others = json_object_get(answer, "ended_with_worker"), *other;
    struct shown_client client;
    char gpu[CELL_BYTES];
    if (json_is_null(json_object_get(answer, "client"))) {
        print_ended(out, json_object_get(answer, "clients"));
        return;
    }
    read_client(answer, &client);
    if (json_is_null(json_object_get(answer, "worker_replaced")))
        fprintf(out, MESSAGE_TEXT(ctl_killed), client.number, client.name, client.pid, client.uid);
    else if (json_array_size(others) == 0)
        fprintf(out, MESSAGE_TEXT(ctl_killed_alone), client.number, client.name, client.pid,
                client.uid, cell_integer(answer, "worker_replaced", gpu));
    else
        fprintf(out, MESSAGE_TEXT(ctl_killed_worker), client.number, client.name, client.pid,
                client.uid, cell_integer(answer, "worker_replaced", gpu));
    fputc('\n', out);
    for (size_t i = 0; (other = json_array_get(others, i)); i++) {
        read_client(other, &client);
        fprintf(out, MESSAGE_TEXT(ctl_killed_other), client.number, client.name, client.pid,
                client.uid);
        fputc('\n', out);
    }
}
