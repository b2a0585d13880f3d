/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/mps/mps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/tools/mps/looks.h"
#include "client/tools/mps/orders.h"
#include "client/tools/mps/servers.h"
#include "client/tools/table.h"
#include "common/messages.h"
#include "common/spelling.h"

enum { WORDS_MAX = 8 };

static enum admin_outcome explain(struct servers *servers, int count, char *const words[])
{
    (void)servers;
    (void)count;
    (void)words;
    mps_explain(stdout);
    return ADMIN_OK;
}

/* least, most: how many words stand behind the name. option: the word at `at` has to be this one,
 * if it is there. */
static const struct verb {
    const char *name, *form, *text;
    int least, most;
    enum admin_outcome (*run)(struct servers *servers, int count, char *const words[]);
    const char *option;
    int at;
} verbs[] = {
    {"get_server_list", "get_server_list", "the process numbers of the servers: one for each GPU",
     .run = looks_server_list},
    {"get_server_status", "get_server_status PID", "INITIALIZING, ACTIVE or FAULT", 1, 1,
     .run = looks_server_status},
    {"start_server", "start_server -uid UID",
     "succeeds if each GPU has a server: they serve all users", 2, 2, .run = orders_start_server,
     .option = "-uid"},
    {"shutdown_server", "shutdown_server PID [-f]", "with -f: end the server's clients", 1, 2,
     .run = orders_shutdown_server, .option = "-f", .at = 1},
    {"get_client_list", "get_client_list PID", "the process numbers of a server's clients", 1, 1,
     .run = looks_client_list},
    {"get_device_client_list", "get_device_client_list [PID]",
     "each GPU, and the process numbers of its clients", 0, 1, .run = looks_device_client_list},
    {"ps", "ps [-p PID]", "the clients, of one server or of all", 0, 2, .run = looks_ps,
     .option = "-p"},
    {"terminate_client", "terminate_client SERVER CLIENT",
     "end a client, by the process numbers of both", 2, 2, .run = orders_terminate_client},
    {"set_default_active_thread_percentage", "set_default_active_thread_percentage P",
     "limit clients to come to a part of the multiprocessors", 1, 1,
     .run = orders_default_percentage},
    {"get_default_active_thread_percentage", "get_default_active_thread_percentage",
     "show that limit", .run = looks_default_percentage},
    {"set_active_thread_percentage", "set_active_thread_percentage PID P",
     "the same of one server's clients to come", 2, 2, .run = orders_percentage},
    {"get_active_thread_percentage", "get_active_thread_percentage PID", "show that limit", 1, 1,
     .run = looks_percentage},
    {"set_default_device_pinned_mem_limit", "set_default_device_pinned_mem_limit DEV VALUE",
     "limit the device memory of clients to come", 2, 2, .run = orders_default_memory},
    {"get_default_device_pinned_mem_limit", "get_default_device_pinned_mem_limit DEV",
     "show that limit", 1, 1, .run = looks_default_memory},
    {"set_device_pinned_mem_limit", "set_device_pinned_mem_limit PID DEV VALUE",
     "the same, with the GPU's server", 3, 3, .run = orders_memory},
    {"get_device_pinned_mem_limit", "get_device_pinned_mem_limit PID DEV", "show that limit", 2, 2,
     .run = looks_memory},
    {"set_default_client_priority", "set_default_client_priority N",
     "the least number of clients to come: 0 is normal, 1 below normal", 1, 1,
     .run = orders_default_priority},
    {"get_default_client_priority", "get_default_client_priority", "show that number",
     .run = looks_default_priority},
    {"lspart", "lspart", "refused: there are no static partitions", 0, WORDS_MAX,
     .run = orders_partitions},
    {"sm_partition", "sm_partition add|rm ...", "refused, as lspart is", 0, WORDS_MAX,
     .run = orders_partitions},
    {"quit", "quit [-t TIMEOUT]", "refused: systemctl stop gpushared stops the service", 0, 2,
     .run = orders_quit, .option = "-t"},
    {"help", "help", "this list", .run = explain},
};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

void mps_explain(FILE *out)
{
    for (size_t i = 0; i < VERBS; i++)
        fprintf(out, "  %-48s %s\n", verbs[i].form, verbs[i].text);
}

int mps_find(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-')
            return strcmp(argv[i], "mps") == 0 ? i : argc;
        /* --socket, however much of it is written, has a word of its own behind it. */
        i += strncmp(argv[i], "--so", 4) == 0 && !strchr(argv[i], '=');
    }
    return argc;
}

static const char *nearest(const char *word)
{
    const size_t length = strlen(word);
    struct spelling_guess guess = spelling_guess_begin(word, length, length);
    for (size_t i = 0; i < VERBS && length <= SPELLING_MAX; i++)
        spelling_guess_look(&guess, verbs[i].name);
    return guess.found;
}

static uint32_t refuse_unknown(const char *word, struct error *why)
{
    const char *meant = nearest(word);
    return meant ? error_set(why, MESSAGE(mps_misspelt), word, meant)
                 : error_set(why, MESSAGE(mps_unknown), word);
}

/* An option takes a word behind it, but for the last one that a command may have. */
static bool has_form(const struct verb *verb, int count, char *const words[])
{
    if (count < verb->least || count > verb->most)
        return false;
    if (!verb->option || count <= verb->at)
        return true;
    return strcmp(words[verb->at], verb->option) == 0 &&
           (verb->at + 1 == verb->most || count == verb->most);
}

static enum admin_outcome carry_out(struct servers *servers, int count, char *words[])
{
    size_t i = 0;
    while (i < VERBS && strcmp(verbs[i].name, words[0]) != 0)
        i++;
    if (i == VERBS)
        return servers_refuse(refuse_unknown(words[0], &servers->why));
    if (!has_form(&verbs[i], count - 1, words + 1))
        return servers_refuse(error_set(&servers->why, MESSAGE(mps_words), verbs[i].form));
    return verbs[i].run(servers, count - 1, words + 1);
}

static void report(struct servers *servers)
{
    fflush(stdout);
    table_clean(servers->why.text);
    fprintf(stderr, "gpusharectl: %s\n", servers->why.text);
}

static enum admin_outcome run_words(struct servers *servers, int count, char *words[])
{
    enum admin_outcome outcome = carry_out(servers, count, words);
    if (outcome != ADMIN_OK)
        report(servers);
    return outcome;
}

/* A line of a script, which is cut into words. */
static enum admin_outcome run_line(struct servers *servers, char *line)
{
    static const char blanks[] = " \t\r\n";
    char *words[WORDS_MAX + 1], *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(line, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest)) {
        if (count > WORDS_MAX) {
            error_set(&servers->why, MESSAGE(mps_line_words), WORDS_MAX + 1);
            report(servers);
            return ADMIN_USAGE;
        }
        words[count++] = word;
    }
    return count ? run_words(servers, count, words) : ADMIN_OK;
}

/* The part before the byte is a command that nobody wrote. */
static enum admin_outcome refuse_nul(struct servers *servers)
{
    error_set(&servers->why, MESSAGE(mps_nul));
    report(servers);
    return ADMIN_USAGE;
}

enum admin_outcome mps_run(const char *socket, int count, char *words[])
{
    struct servers servers = {.socket = socket};
    enum admin_outcome first = ADMIN_OK, outcome = ADMIN_OK;
    char *line = NULL;
    size_t room = 0;
    if (count)
        return run_words(&servers, count, words);
    ssize_t length = 0;
    while (outcome != ADMIN_NO_SERVER && (length = getline(&line, &room, stdin)) >= 0) {
        outcome = strlen(line) == (size_t)length ? run_line(&servers, line) : refuse_nul(&servers);
        /* A script may wait for the answer before it asks on. */
        fflush(stdout);
        first = first == ADMIN_OK ? outcome : first;
    }
    /* The rest of the script may be missing. */
    if (length < 0 && !feof(stdin)) {
        error_set(&servers.why, MESSAGE(mps_input), strerror(errno));
        report(&servers);
        first = first == ADMIN_OK ? ADMIN_FAILED : first;
    }
    free(line);
    return first;
}
