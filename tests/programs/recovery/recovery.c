/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * make chaos-recovery: workers, clients and supervisors that fault, crash, stop and are killed at
 * random instants, beside clients that verify their own data all the time (honest.h).
 *
 * usage: recovery sticky|kills|storm COUNT [SEED]
 * COUNT: rounds of each kind; of storm, seconds. Exit status 0: all of it holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/recovery/recovery.h"

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(unsigned count, unsigned seed, const char *again);
    } parts[] = {{"sticky", recovery_sticky}, {"kills", recovery_kills}, {"storm", recovery_storm}};
    char again[512];
    unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned seed = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : (unsigned)getpid();
    const char *device = getenv("TEST_SOFTGPU");
    for (size_t i = 0; count && i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(parts[i].name, argv[1]))
            continue;
        snprintf(again, sizeof again, "TEST_SOFTGPU=\"%s\" %s %s %u %u", device ? device : "",
                 argv[0], argv[1], count, seed);
        printf("seed %u: %s\n", seed, again);
        parts[i].run(count, seed, again);
        return 0;
    }
    fprintf(stderr, "usage: recovery sticky|kills|storm COUNT [SEED]\n");
    return 2;
}
