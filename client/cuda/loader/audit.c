/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * libgpushare-audit.so: has the dynamic linker find gpushare's CUDA libraries instead of others,
 * wherever a program looks for them: by RPATH, by RUNPATH, by an absolute path, with dlopen. The
 * libraries are those in this library's own folder; GPUSHARE_AUDIT_DRIVER names another
 * libcuda.so.1. rtld-audit(7) has the interface.
 *
 * The dynamic linker loads it where LD_AUDIT names it, into a namespace of its own, in the program
 * and in the programs that it executes; never into a setuid program.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

API unsigned la_version(unsigned version);
API char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag);

/* The names that programs ask for, and ours. */
static struct library {
    const char *asked, *ours;
    char path[4096]; /* "" until the dynamic linker asked for it: not in the folder */
} libraries[] = {
    {"libcuda.so.1", "libcuda.so.1", ""},
    {"libcuda.so", "libcuda.so.1", ""},
    {"libcudart.so.12", "libcudart.so.12", ""},
    {"libcudart.so.13", "libcudart.so.13", ""},
};

enum { LIBRARIES = sizeof libraries / sizeof *libraries };

static void take_path(struct library *library, int folder, const char *beside, const char *name)
{
    int length = snprintf(library->path, sizeof library->path, "%.*s%s", folder, beside, name);
    if (length >= (int)sizeof library->path || access(library->path, R_OK))
        *library->path = '\0';
}

static void find_paths(void)
{
    const char *driver = getenv("GPUSHARE_AUDIT_DRIVER");
    Dl_info self;
    if (!dladdr((void *)find_paths, &self) || !self.dli_fname)
        return;
    const char *slash = strrchr(self.dli_fname, '/');
    int folder = slash ? (int)(slash - self.dli_fname + 1) : 0;
    for (int i = 0; i < LIBRARIES; i++) {
        struct library *library = &libraries[i];
        if (driver && !strcmp(library->ours, "libcuda.so.1"))
            take_path(library, 0, "", driver);
        else
            take_path(library, folder, self.dli_fname, library->ours);
    }
}

unsigned la_version(unsigned version)
{
    find_paths();
    /* A dynamic linker that is older than this build's has fewer calls, of which these two are. */
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* The dynamic linker takes the answer in place of the name, at each step of its search. */
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    (void)cookie;
    (void)flag;
    for (int i = 0; i < LIBRARIES; i++)
        if (!strcmp(base, libraries[i].asked) && *libraries[i].path)
            return libraries[i].path;
    return (char *)name;
}
