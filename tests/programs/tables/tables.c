/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * tables: prints a table of the code, a row on each line, as the compiler understands it. Tests
 * that compare such a table with a page or a library need not read C.
 *
 *   tables driver    the symbols that the drop-in libcuda.so.1 is to export
 *   tables softgpu   the variables of the software GPU: name, usual value, strict value
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/cuda/front/driver_exports.h"
#include "server/softgpu/softgpu_settings.h"

static int print_driver(void)
{
#define E(name, symbol, version, parameters) puts(#symbol);
    DRIVER_EXPORTS(E)
    DRIVER_EXPORTS_PER_THREAD(E)
#undef E
    return 0;
}

static int print_softgpu(void)
{
#define X(member, variable, least, most, usual, strict)                                            \
    printf("%s %" PRIu64 " %" PRIu64 "\n", variable, (uint64_t)(usual), (uint64_t)(strict));
    SOFTGPU_SETTINGS(X)
#undef X
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "driver") == 0)
        return print_driver();
    if (argc == 2 && strcmp(argv[1], "softgpu") == 0)
        return print_softgpu();
    fprintf(stderr, "usage: tables driver|softgpu\n");
    return 2;
}
