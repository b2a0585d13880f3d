/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/explain/explain.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/tools/explain/findings.h"
#include "client/tools/explain/program.h"
#include "client/tools/explain/sentences.h"
#include "common/messages.h"
#include "common/printable.h"

/* Python environments have some hundred thousand files at most, and fold ten deep. */
enum { FILES_MAX = 1000000, DEPTH_MAX = 32 };

/* ---- calls that another library of the program answers ---- */

struct removal {
    struct findings *findings;
    size_t count;
};

static void remove_call(const char *symbol, void *context)
{
    const struct removal *removal = context;
    for (size_t i = 0; i < removal->count; i++)
        calls_remove(&removal->findings[i].calls, symbol);
}

static void remove_defined(const struct program *program, struct findings *findings, size_t count)
{
    struct removal removal = {findings, count};
    for (size_t i = 0; i < program->count; i++)
        calls_defined(&program->files[i].file, remove_call, &removal);
}

/* ---- a program ---- */

/* A path that a file or a folder gave, without characters that steer a terminal. A longer one loses
 * its end. */
static const char *printable_path(const char *path, char to[PATH_MAX])
{
    snprintf(to, PATH_MAX, "%s", path);
    printable_replace(to);
    return to;
}

static void read_findings(const struct program *program, struct findings *findings)
{
    findings_read(findings, &program->files[0].file, 0);
    for (size_t i = 1; i < program->count; i++) {
        findings_read(&findings[i], &program->files[i].file, findings[0].calls.from.releases);
        findings[i].setid = false; /* of a library it has no effect */
    }
    remove_defined(program, findings, program->count);
}

static unsigned say_search(const struct program *program, const char *path, FILE *out)
{
    if (program->missing_count)
        sentences_missing(out, path, program->missing, program->missing_count);
    if (program->cut)
        sentences_line(out, MESSAGE_TEXT(explain_cut), path);
    return program->cut;
}

/* The last line, where nothing is in the way. */
static void say_end(const struct program *program, const struct findings *findings,
                    const char *path, FILE *out)
{
    struct calls calls = {0};
    unsigned ptx = 0, cubins = 0;
    bool cuda = false, narrow = findings->no_sections;
    for (size_t i = 0; i < program->count; i++) {
        cuda |= findings_of_cuda(&findings[i]);
        narrow |= findings[i].cubins && !findings[i].ptx;
        ptx += findings[i].ptx;
        cubins += findings[i].cubins;
        calls_add(&calls, &findings[i].calls);
    }
    if (!cuda && !findings->no_sections)
        sentences_line(out, MESSAGE_TEXT(explain_nothing), path);
    else if (!narrow)
        sentences_line(out, MESSAGE_TEXT(explain_runs), path, ptx, cubins,
                       calls_count(&calls, CUDA_FUNCTION_CARRIED) +
                           calls_count(&calls, CUDA_FUNCTION_IN_PART));
}

static uint32_t explain_program(const char *path, const char *library_path, FILE *out,
                                unsigned *problems, struct error *why)
{
    char name[PATH_MAX];
    struct program *program = program_open(path, library_path, why);
    if (!program)
        return why->number;
    struct findings *findings = calloc(program->count, sizeof *findings);
    if (!findings) {
        program_close(program);
        return error_set(why, MESSAGE(explain_memory), path);
    }
    read_findings(program, findings);
    *problems = sentences_say(out, path, findings);
    for (size_t i = 1; i < program->count; i++) {
        if (findings_of_cuda(&findings[i]) || findings[i].damaged)
            *problems +=
                sentences_say(out, printable_path(program->files[i].path, name), &findings[i]);
    }
    *problems += say_search(program, path, out);
    if (!*problems)
        say_end(program, findings, path, out);
    free(findings);
    program_close(program);
    return 0;
}

/* ---- a folder ---- */

struct walk {
    const char *library_path;
    FILE *out;
    unsigned looked_at, of_cuda, in_the_way, not_looked_at;
};

/* gpushare's own take the place of these. */
static bool is_replaced(const char *name)
{
    enum findings_library library = findings_library(name);
    return library == FINDINGS_LIBRARY_DRIVER || library == FINDINGS_LIBRARY_RUNTIME;
}

static void explain_file(struct walk *walk, const char *path)
{
    struct error why;
    struct elf_file file;
    struct findings findings;
    char name[PATH_MAX];
    if (elf_file_open(&file, path, &why)) {
        /* Most files are no executables. */
        if (why.number == PROTO_ERROR_NOT_FOUND) {
            printable_replace(why.text);
            sentences_line(walk->out, MESSAGE_TEXT(explain_not_looked_at), why.text);
            walk->not_looked_at++;
        }
        return;
    }
    findings_read(&findings, &file, 0);
    if (findings_of_cuda(&findings)) {
        struct program *program = program_open(path, walk->library_path, &why);
        if (program) {
            remove_defined(program, &findings, 1);
            program_close(program);
        }
        walk->of_cuda++;
        walk->in_the_way +=
            sentences_say_briefly(walk->out, printable_path(path, name), &findings) > 0;
    }
    elf_file_close(&file);
}

static int compare_names(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void not_looked_at(struct walk *walk, const FTSENT *entry)
{
    struct error why;
    error_set(&why, MESSAGE(explain_file), entry->fts_path, strerror(entry->fts_errno));
    printable_replace(why.text);
    sentences_line(walk->out, MESSAGE_TEXT(explain_not_looked_at), why.text);
    walk->not_looked_at++;
}

/* Returns whether all of it was walked. */
static bool walk_folder(struct walk *walk, FTS *tree)
{
    bool whole = true;
    FTSENT *entry;
    while ((entry = fts_read(tree))) {
        if (++walk->looked_at > FILES_MAX)
            return false;
        switch (entry->fts_info) {
        case FTS_D:
            if (entry->fts_level > DEPTH_MAX) {
                fts_set(tree, entry, FTS_SKIP);
                whole = false;
            }
            break;
        case FTS_F:
            if (!is_replaced(entry->fts_name))
                explain_file(walk, entry->fts_path);
            break;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
            not_looked_at(walk, entry);
            break;
        default:
            break;
        }
    }
    return whole;
}

static uint32_t explain_folder(const char *path, const char *library_path, FILE *out,
                               unsigned *problems, struct error *why)
{
    struct walk walk = {.library_path = library_path, .out = out};
    char *paths[] = {(char *)path, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, compare_names);
    if (!tree)
        return error_set(why, MESSAGE(explain_file), path, strerror(errno));
    bool whole = walk_folder(&walk, tree);
    fts_close(tree);
    if (!whole)
        sentences_line(out, MESSAGE_TEXT(explain_folder_cut), path, (unsigned)FILES_MAX,
                       (unsigned)DEPTH_MAX);
    if (walk.of_cuda)
        sentences_line(out, MESSAGE_TEXT(explain_folder), path, walk.of_cuda, walk.in_the_way);
    else
        sentences_line(out, MESSAGE_TEXT(explain_folder_nothing), path);
    *problems = walk.in_the_way + walk.not_looked_at + !whole;
    return 0;
}

uint32_t explain_path(const char *path, const char *library_path, FILE *out, unsigned *problems,
                      struct error *why)
{
    struct stat status;
    if (!stat(path, &status) && S_ISDIR(status.st_mode))
        return explain_folder(path, library_path, out, problems, why);
    return explain_program(path, library_path, out, problems, why);
}
