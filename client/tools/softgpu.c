/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* softgpu: executes CUDA programs on the software GPU. */
#include <stdio.h>
#include <string.h>

#include "client/tools/run.h"

enum { STATUS_USAGE = 2 };

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "run"))
        return run_softgpu(argc - 1, argv + 1);
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        char *words[] = {argv[0], argv[1], NULL};
        return run_softgpu(2, words);
    }
    if (argc == 2 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
        puts("softgpu " GPUSHARE_VERSION);
        return 0;
    }
    fputs("usage: softgpu run [--] PROGRAM [ARGUMENT]...\nTry 'softgpu --help'.\n", stderr);
    return STATUS_USAGE;
}
