/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/gpu/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/gpu/probe.h"

enum { PRINTED_LINES = 200 };

static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder ? folder : "/tmp";
}

static char *expand(const char *word)
{
    char *text;
    int length;
    if (!strncmp(word, "%F", 2))
        length = asprintf(&text, "%s%s", probe_folder, word + 2);
    else if (!strncmp(word, "%T", 2))
        length = asprintf(&text, "%s%s", temporary_folder(), word + 2);
    else
        length = asprintf(&text, "%s", word);
    if (length < 0)
        probe_die("no memory");
    return text;
}

static void start(struct program *program, const char *const words[PROGRAM_WORDS],
                  const char *const env[], int input)
{
    static unsigned number;
    char *list[PROGRAM_WORDS + 1] = {NULL};
    *program = (struct program){.input = -1};
    for (int i = 0; i < PROGRAM_WORDS && words[i]; i++)
        list[i] = expand(words[i]);
    if (!list[0])
        probe_die("a program without a name");
    const char *name = strrchr(list[0], '/');
    snprintf(program->name, sizeof program->name, "%s", name ? name + 1 : list[0]);
    const char *outputs = getenv("CHECKS_OUTPUTS");
    snprintf(program->path, sizeof program->path, "%s/%s-%d-%u.out",
             outputs ? outputs : temporary_folder(), program->name, (int)getpid(), number++);
    fflush(stdout);
    program->pid = fork();
    if (program->pid < 0)
        probe_die("no process: %s", strerror(errno));
    if (program->pid == 0) {
        int output = open(program->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (output < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 ||
            (input >= 0 && dup2(input, 0) < 0))
            _exit(126);
        for (int i = 0; env && env[i]; i++)
            putenv((char *)(uintptr_t)env[i]);
        execv(list[0], list);
        fprintf(stderr, "%s: %s\n", list[0], strerror(errno));
        _exit(127);
    }
    for (int i = 0; i < PROGRAM_WORDS; i++)
        free(list[i]);
}

void program_start(struct program *program, const char *const words[PROGRAM_WORDS],
                   const char *const env[])
{
    start(program, words, env, -1);
}

void program_start_with_input(struct program *program, const char *const words[PROGRAM_WORDS],
                              const char *const env[])
{
    int ends[2];
    /* Another program that is started meanwhile must not keep this one's input open. */
    if (pipe2(ends, O_CLOEXEC) < 0)
        probe_die("no pipe: %s", strerror(errno));
    start(program, words, env, ends[0]);
    close(ends[0]);
    program->input = ends[1];
}

void program_end_input(struct program *program)
{
    close(program->input);
    program->input = -1;
}

/* Calls look for each line until it returns true. */
static bool each_line(const struct program *program, bool (*look)(const char *, void *),
                      void *context)
{
    char line[1000];
    bool found = false;
    FILE *file = fopen(program->path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        found = look(line, context);
    }
    if (file)
        fclose(file);
    return found;
}

static bool line_begins(const char *line, void *context)
{
    return !strncmp(line, context, strlen(context));
}

static bool line_holds(const char *line, void *context)
{
    return strstr(line, context) != NULL;
}

struct search {
    const char *word;
    char *line;
    size_t size;
};

static bool keep_line(const char *line, void *context)
{
    struct search *search = context;
    if (*line && strstr(line, search->word))
        snprintf(search->line, search->size, "%s", line);
    return false;
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == pid;
}

void program_read_until(struct program *program, const char *start)
{
    while (!each_line(program, line_begins, (void *)(uintptr_t)start) && !has_ended(program->pid))
        probe_sleep_ms(2);
}

int program_wait(struct program *program)
{
    int status;
    if (waitpid(program->pid, &status, 0) != program->pid)
        probe_die("%s could not be waited for", program->name);
    struct search search = {"", program->last, sizeof program->last};
    each_line(program, keep_line, &search);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool program_said(const struct program *program, const char *word)
{
    return each_line(program, line_holds, (void *)(uintptr_t)word);
}

const char *program_line(struct program *program, const char *word)
{
    struct search search = {word, program->line, sizeof program->line};
    program->line[0] = 0;
    each_line(program, keep_line, &search);
    return program->line;
}

static bool count_line(const char *line, void *context)
{
    (void)line;
    ++*(unsigned *)context;
    return false;
}

struct printing {
    const char *name;
    unsigned skip;
};

static bool print_line(const char *line, void *context)
{
    struct printing *printing = context;
    if (printing->skip)
        printing->skip--;
    else
        printf("%s: %s\n", printing->name, line);
    return false;
}

void program_print(const struct program *program)
{
    unsigned lines = 0;
    each_line(program, count_line, &lines);
    struct printing printing = {program->name, lines > PRINTED_LINES ? lines - PRINTED_LINES : 0};
    each_line(program, print_line, &printing);
    fflush(stdout);
}
