/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/command.h"

#include <string.h>

#include "client/tools/admin_client.h"
#include "common/limits/allowance.h"
#include "common/spelling.h"

static const char head[] = "usage: gpusharectl [OPTION]... [COMMAND]\n"
                           "\n"
                           "gpusharectl shows and changes how gpushared shares the GPUs of this "
                           "machine. Without a command\n"
                           "it shows the GPUs and their clients on one screen.\n"
                           "\n";

/* A format: the names of the resources of a client, and of those that have totals. */
static const char set_text[] =
    "  set [--save] TARGET NAME=VALUE...\n"
    "               change limits while work is in flight; limits that are not named stay\n"
    "               (for root, users that gpushared was given with --admin-uid, and the user\n"
    "               who started it by hand). Names of a client, or of all clients of a user:\n"
    "               %s,\n"
    "               each with .request or .limit, or without, which means .limit\n"
    "               (threads=50%% memory.request=1G); priority=3; kernel_time_limit=30s, or\n"
    "               0 for none; fraction=0.5, which sets memory.limit and time.request.\n"
    "               Names of a user's or a group's total:\n"
    "               %s,\n"
    "               each with .limit, or without; of threads and time also with .request. A\n"
    "               control group's total has threads and time alone.\n"
    "               Names of a GPU: lease=50ms precision=5%%\n"
    "               quantum=30s window_limit=500ms local_memory=1K\n"
    "               departed_time_limit=5s watchdog_warning=2s watchdog_limit=10s\n"
    "               mode=concurrent|strict|fair|turns standby=none|driver|context; or limits of\n"
    "               clients to come, until the server ends: new_clients.threads=50%%\n"
    "               Each also has the value configured: as the configuration says, and for a\n"
    "               client as its environment says. --save: totals and a GPU's settings\n"
    "               outlive the server\n";

/* options: those that the command has beside those of every command, with blanks between. words:
 * what may stand behind it, for completion. */
static const struct {
    const char *name, *text; /* text: NULL for set_text */
    const char *options, *words;
} commands[] = {
    {"ping", "  ping         check that the server answers\n", "", ""},
    {"status",
     "  status [--wide]\n"
     "               show the server, its GPUs and how much of them is used; --wide: everything\n",
     "--wide", ""},
    {"clients",
     "  clients [--wide] [-o FORM]\n"
     "               show the clients and what they use; --wide: each limit, asked and granted,\n"
     "               and all counters. FORM: wide, json, csv, or names of columns with commas\n"
     "               between them: -o client,user,got_percent (a wrong name is answered with "
     "all)\n",
     "--wide -o", ""},
    {"top",
     "  top [-b] [-n N] [-d SECONDS]\n"
     "               show GPUs and clients again and again: keys sort, filter, pause and kill.\n"
     "               -b : as text, which is so in a pipe too; -n N: end after N looks; -d "
     "SECONDS:\n"
     "               so long between two looks (0.1 to 3600, default: 1)\n",
     "-b -n -d", ""},
    {"version", "  version      show the versions of this tool and of the server\n", "", ""},
    {"get",
     "  get TARGET   show the limits in force. TARGET is the number of a client in `clients`,\n"
     "               user UID or NAME for all clients of a user, group GID or NAME for a group's\n"
     "               total, cgroup PATH for a control group's, gpu INDEX for the mode of a GPU\n"
     "               (get gpu 0), or all for GPUs, clients and their users\n",
     "", "all client user group cgroup gpu"},
    {"set", NULL, "--save", "client user group cgroup gpu"},
    {"kill",
     "  kill [--force] TARGET\n"
     "               end connections; TARGET is the number of a client in `clients`, or its name\n"
     "               (name NAME for one that looks like a number; --all NAME for all that have\n"
     "               it), --user UID or NAME for all clients of a user, or --all for everybody's\n"
     "               (for the same users as set). With --force also a client that has left and\n"
     "               whose work does not end; that replaces the worker of its GPU\n",
     "--force --user --all", "client name user"},
    {"drain",
     "  drain [--wait] [--timeout TIME] [gpu INDEX]\n"
     "               let no new clients attach to a GPU, or to any; those that are attached go "
     "on.\n"
     "               It holds until resume, also after a restart of the server (for the same\n"
     "               users as set). --wait: until the last client has left;\n"
     "               --timeout 5min: wait no longer than that\n",
     "--wait --timeout", "gpu"},
    {"resume",
     "  resume [gpu INDEX]\n"
     "               let new clients attach again (for the same users as set)\n",
     "", "gpu"},
    {"reload",
     "  reload [--reset]\n"
     "               make the server read its configuration file again; a file with a mistake\n"
     "               changes nothing (for the same users as set). With --reset nothing that\n"
     "               was set by `set` stays: all is as the file says\n",
     "--reset", ""},
    {"config",
     "  config check [FILE]\n"
     "               check a configuration file as gpushared reads it, without a server (default:\n"
     "               /etc/gpushare/gpushared.yaml)\n"
     "  config show  print the configuration in force as a file: what the file says, with the\n"
     "               settings and limits of each GPU (for the same users as set)\n",
     "", "check show"},
    {"trace",
     "  trace -o FILE [--seconds N] [--gpu N]\n"
     "               record what runs on a GPU in FILE, which ui.perfetto.dev opens, for\n"
     "               --seconds N (0.001 to 600, default: 5) on --gpu N (default: 0); Ctrl-C\n"
     "               ends the recording early (for the same users as set)\n",
     "-o --seconds --gpu", ""},
    {"metrics",
     "  metrics      print what monitoring reads, once, in Prometheus's text format;\n"
     "               gpushare-exporter serves it\n",
     "", ""},
    {"events",
     "  events [--follow]\n"
     "               show the latest lines of the server's log, without those of debugging (for "
     "the\n"
     "               same users as set); --follow: and those to come, until Ctrl-C\n",
     "--follow", ""},
    {"log-level",
     "  log-level [LEVEL]\n"
     "               show the least important level that the server logs, or set it until the\n"
     "               server ends: error, warning, notice, info or debug (for the same users as "
     "set)\n",
     "", "error warning notice info debug"},
    {"mps",
     "  mps [COMMAND ...]\n"
     "               carry out a command of nvidia-cuda-mps-control, such as ps, or those on\n"
     "               standard input, a line each; mps help shows them\n",
     "",
     "get_server_list get_server_status start_server shutdown_server get_client_list "
     "get_device_client_list ps terminate_client set_default_active_thread_percentage "
     "get_default_active_thread_percentage set_active_thread_percentage "
     "get_active_thread_percentage set_default_device_pinned_mem_limit "
     "get_default_device_pinned_mem_limit set_device_pinned_mem_limit "
     "get_device_pinned_mem_limit set_default_client_priority get_default_client_priority lspart "
     "sm_partition quit help"},
    {"report",
     "  report [--since WHEN] [--until WHEN] [--by KEYS] [--csv] [FILE...]\n"
     "               add up what clients have used, from the accounting's files, without a "
     "server.\n"
     "               WHEN: 2026-11-01, 2026-11-01T12:30 (UTC), today, yesterday, 7d or 36h (ago).\n"
     "               KEYS: user, name, gpu, day, program, cgroup, with commas between (default:\n"
     "               user). FILE: with those that logrotate made of it, also compressed ones\n"
     "               (default: " COMMAND_REPORT_FILE ")\n",
     "--since --until --by --csv", ""},
    {"completion",
     "  completion bash\n"
     "               print a script with which bash completes commands and options\n",
     "", "bash"},
    {"help",
     "  help [COMMAND]\n"
     "               print what a command does, or this text; COMMAND --help does so too\n",
     "", NULL},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const char options[] =
    "  --socket PATH  the server's admin socket (default: admin.sock beside $GPUSHARE_SOCKET if\n"
    "                 that is set, else $XDG_RUNTIME_DIR/gpushare/admin.sock if it exists, else\n"
    "                 /run/gpushare/admin.sock)\n"
    "  --json         print the answer as JSON; its schemas are schemas/admin-*.schema.json\n"
    "  --version, -V  print the version of this tool, and exit\n"
    "  --help, -h     print this text, or that of the command beside it, and exit\n";

bool command_is_known(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return true;
    return false;
}

const char *command_nearest(const char *word)
{
    const size_t length = strlen(word);
    struct spelling_guess guess = spelling_guess_begin(word, length, length);
    for (size_t i = 0; i < COMMANDS && length <= SPELLING_MAX; i++)
        spelling_guess_look(&guess, commands[i].name);
    return guess.found;
}

/* The options of every command, and of none: what the usage above names. */
static const char common_options[] = "--socket --json --help --version";

bool command_takes(const char *name, const char *option)
{
    const size_t length = strlen(option);
    for (size_t i = 0; i < COMMANDS; i++) {
        const char *at = strcmp(commands[i].name, name) == 0 ? commands[i].options : "";
        for (; (at = strstr(at, option)); at += length)
            if (at[length] == '\0' || at[length] == ' ')
                return true;
    }
    return false;
}

/* help completes the names of all commands. */
static void print_words(FILE *out, const char *words)
{
    for (size_t i = 0; !words && i < COMMANDS; i++)
        fprintf(out, " %s", commands[i].name);
    if (words && *words)
        fprintf(out, " %s", words);
}

void command_complete_bash(FILE *out)
{
    fputs("# bash completion for gpusharectl, made by `gpusharectl completion bash`\n"
          "_gpusharectl()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= i "
          "words\n"
          "    case $before in\n"
          "    --socket|-o|check) COMPREPLY=($(compgen -f -- \"$word\")); return;;\n"
          "    --user) COMPREPLY=($(compgen -u -- \"$word\")); return;;\n"
          "    --seconds|--gpu|--timeout|-n|-d) return;;\n"
          "    esac\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case ${COMP_WORDS[i]} in\n"
          "        --socket) ((i++));;\n"
          "        -*) ;;\n"
          "        *) command=${COMP_WORDS[i]}; break;;\n"
          "        esac\n"
          "    done\n"
          "    case $command in\n",
          out);
    fputs("    '') words=\"", out);
    print_words(out, NULL);
    fputs("\";;\n", out);
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(out, "    %s) words=\"%s", commands[i].name, commands[i].options);
        print_words(out, commands[i].words);
        fputs("\";;\n", out);
    }
    fprintf(out,
            "    *) words=;;\n"
            "    esac\n"
            "    COMPREPLY=($(compgen -W \"$words %s\" -- \"$word\"))\n"
            "}\n"
            "complete -F _gpusharectl gpusharectl\n",
            common_options);
}

const char *command_names(char text[COMMAND_NAMES])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < COMMANDS && used < COMMAND_NAMES; i++)
        used += (size_t)snprintf(text + used, COMMAND_NAMES - used, "%s%s", i ? ", " : "",
                                 commands[i].name);
    return text;
}

static void explain_row(FILE *out, size_t row)
{
    char clients[ALLOWANCE_NAMES], totals[ALLOWANCE_NAMES];
    if (commands[row].text)
        fputs(commands[row].text, out);
    else
        fprintf(out, set_text, allowance_names(false, "", "=", " and ", clients),
                allowance_names(true, "total.", "=", " and ", totals));
}

void command_explain_all(FILE *out)
{
    fprintf(out, "%scommands:\n", head);
    for (size_t i = 0; i < COMMANDS; i++)
        explain_row(out, i);
    fprintf(
        out,
        "\noptions:\n%s\n"
        "exit status: 0 done, 1 the server refused, or a file can't be written, 2 wrong usage,\n"
        "3 the server can't be reached, or did not answer within %d s (reload: %d s; trace: %d s "
        "more than it lasts)\n",
        options, ADMIN_CLIENT_SECONDS, ADMIN_CLIENT_SECONDS + ADMIN_CLIENT_RELOAD_SECONDS,
        ADMIN_CLIENT_SECONDS);
}

void command_explain(FILE *out, const char *name)
{
    fputs("usage: gpusharectl [OPTION]... COMMAND\n\n", out);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            explain_row(out, i);
    fputs("\n`gpusharectl --help` shows all commands and the options.\n", out);
}
