/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: ldd finds the libraries of an executable by having it loaded, so its file could do
 * as it likes. */
#include "client/tools/explain/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tools/explain/findings.h"
#include "client/tools/explain/linker_cache.h"
#include "common/messages.h"

/* Files that are tried for all libraries together. A program of two hundred libraries, each with
 * ten folders of its own, tries some two thousand. */
enum { PLACES_MAX = 100000 };

/* The search for one library. */
struct search {
    struct program *program;
    const char *library_path;
    const struct linker_cache *cache;
    const char *name;
    size_t by;
};

/* The first text of that tag, or NULL. */
static const char *text_of(const struct elf_file *file, int64_t tag)
{
    Elf64_Dyn entry;
    for (uint64_t i = 0; elf_file_dynamic(file, i, &entry); i++)
        if (entry.d_tag == tag)
            return elf_file_text(file, entry.d_un.d_val);
    return NULL;
}

/* ---- files ---- */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : strdup(".");
}

/* Takes path. The origin of a program is where its file lies, and that of a library the folder in
 * which it was found. */
static bool add_file(struct program *program, const struct elf_file *file, char *path, size_t by)
{
    char *real = program->count ? NULL : realpath(path, NULL);
    char *origin = path ? folder_of(real ? real : path) : NULL;
    free(real);
    if (!origin) {
        free(path);
        return false;
    }
    program->files[program->count++] = (struct program_file){*file, path, origin, by};
    return true;
}

/* Whether the file is the library. One of another kind of machine is passed over. */
static bool try_file(const struct search *search, const char *path)
{
    struct program *program = search->program;
    struct elf_file file;
    struct error why;
    if (program->places >= PLACES_MAX || program->count == PROGRAM_FILES_MAX) {
        program->cut = true;
        return false;
    }
    program->places++;
    if (elf_file_open(&file, path, &why))
        return false;
    if (file.head.e_machine == program->files[0].file.head.e_machine &&
        add_file(program, &file, strdup(path), search->by))
        return true;
    elf_file_close(&file);
    return false;
}

/* ---- folders ---- */

/* Writes a folder of a list with $ORIGIN replaced. False if it becomes too long. */
static bool expand(const char *from, size_t length, const char *origin, char to[PATH_MAX])
{
    static const char *const words[] = {"${ORIGIN}", "$ORIGIN"};
    size_t used = 0, end = length;
    for (size_t at = 0; at < end;) {
        const char *put = from + at;
        size_t bytes = 1, step = 1;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (end - at >= strlen(words[i]) && !strncmp(from + at, words[i], strlen(words[i]))) {
                put = origin;
                bytes = strlen(origin);
                step = strlen(words[i]);
                break;
            }
        if (bytes >= PATH_MAX - used)
            return false;
        memcpy(to + used, put, bytes);
        used += bytes;
        at += step;
    }
    to[used] = '\0';
    return true;
}

/* Looks into each folder of a list. */
static bool try_list(const struct search *search, const char *list, const char *separators,
                     const char *origin)
{
    char folder[PATH_MAX], path[2 * PATH_MAX];
    while (list && *list && !search->program->cut) {
        size_t length = strcspn(list, separators);
        if (expand(list, length, origin, folder)) {
            /* An empty one is the current folder. */
            snprintf(path, sizeof path, "%s/%s", *folder ? folder : ".", search->name);
            if (try_file(search, path))
                return true;
        }
        list += length + (list[length] != '\0');
    }
    return false;
}

/* The lists of the file that needs the library, and of those that need that one in turn. A file
 * with DT_RUNPATH has no DT_RPATH. */
static bool try_rpaths(const struct search *search)
{
    const struct program *program = search->program;
    size_t at = search->by;
    if (text_of(&program->files[at].file, DT_RUNPATH))
        return false;
    for (;; at = program->files[at].by) {
        const struct program_file *file = &program->files[at];
        if (!text_of(&file->file, DT_RUNPATH) &&
            try_list(search, text_of(&file->file, DT_RPATH), ":", file->origin))
            return true;
        if (!at)
            return false;
    }
}

static bool try_cache(const struct search *search)
{
    const char *path;
    uint32_t index = 0;
    while ((path = linker_cache_next(search->cache, search->name, &index)))
        if (try_file(search, path))
            return true;
    return false;
}

static bool find(const struct search *search)
{
    const struct program *program = search->program;
    const struct program_file *by = &program->files[search->by];
    char path[PATH_MAX];
    if (strchr(search->name, '/'))
        return expand(search->name, strlen(search->name), by->origin, path) &&
               try_file(search, path);
    return try_rpaths(search) ||
           try_list(search, search->library_path, ":;", program->files[0].origin) ||
           try_list(search, text_of(&by->file, DT_RUNPATH), ":", by->origin) || try_cache(search) ||
           try_list(search, "/lib64:/usr/lib64:/lib:/usr/lib", ":", "");
}

/* ---- the program ---- */

/* Notes that a name is looked for. False if it was before, or there are too many. */
static bool take_name(struct program *program, const char *name)
{
    for (size_t i = 0; i < program->names_count; i++)
        if (!strcmp(program->names[i], name))
            return false;
    if (program->names_count == PROGRAM_NAMES_MAX) {
        program->cut = true;
        return false;
    }
    program->names[program->names_count++] = name;
    return true;
}

static void find_needed(struct search *search)
{
    struct program *program = search->program;
    Elf64_Dyn entry;
    for (uint64_t i = 0; elf_file_dynamic(&program->files[search->by].file, i, &entry); i++) {
        if (entry.d_tag != DT_NEEDED)
            continue;
        search->name = elf_file_text(&program->files[search->by].file, entry.d_un.d_val);
        if (*search->name && findings_library(search->name) == FINDINGS_LIBRARY_OTHER &&
            take_name(program, search->name) && !find(search) && !program->cut)
            program->missing[program->missing_count++] = search->name;
        if (program->cut)
            return;
    }
}

struct program *program_open(const char *path, const char *library_path, struct error *why)
{
    struct program *program = calloc(1, sizeof *program);
    struct linker_cache cache;
    struct elf_file file;
    if (!program) {
        error_set(why, MESSAGE(explain_memory), path);
        return NULL;
    }
    if (elf_file_open(&file, path, why)) {
        free(program);
        return NULL;
    }
    if (!add_file(program, &file, strdup(path), 0)) {
        elf_file_close(&file);
        free(program);
        error_set(why, MESSAGE(explain_memory), path);
        return NULL;
    }
    linker_cache_open(&cache, "/etc/ld.so.cache");
    struct search search = {.program = program, .library_path = library_path, .cache = &cache};
    /* The list grows meanwhile. */
    for (size_t i = 0; i < program->count && !program->cut; i++) {
        search.by = i;
        find_needed(&search);
    }
    linker_cache_close(&cache);
    return program;
}

void program_close(struct program *program)
{
    for (size_t i = 0; i < program->count; i++) {
        elf_file_close(&program->files[i].file);
        free(program->files[i].path);
        free(program->files[i].origin);
    }
    free(program);
}
