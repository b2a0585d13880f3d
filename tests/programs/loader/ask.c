/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Prints the version of the driver that it finds: as it was linked; or of the library at a path; or
 * as a child that it executes finds it.
 *
 *   ask | ask PATH | ask exec
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);

int main(int count, char **words)
{
    int (*init)(unsigned) = cuInit, (*get)(int *) = cuDriverGetVersion;
    int version = 0;
    if (count > 1 && !strcmp(words[1], "exec")) {
        execl(words[0], words[0], (char *)NULL);
        return 3;
    }
    if (count > 1) {
        void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 4;
        }
        *(void **)&init = dlsym(library, "cuInit");
        *(void **)&get = dlsym(library, "cuDriverGetVersion");
    }
    if (init(0) || get(&version))
        return 5;
    printf("%d\n", version);
    return 0;
}
