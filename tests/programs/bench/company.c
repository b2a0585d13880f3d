/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/company.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/bench/bench.h"

enum { SERVERS_MAX = 4 };

static unsigned expected;

static struct {
    const struct server *server;
    struct scene *scene;
} companies[SERVERS_MAX];

unsigned company_draw(unsigned kinds, uint64_t seed)
{
    unsigned all[32], count = 0;
    for (unsigned i = 0; i < 32; i++)
        if (kinds & 1u << i)
            all[count++] = 1u << i;
    if (!count)
        return 0;
    /* The second draw may hit the first one's: then it is one kind alone. */
    unsigned one = all[bench_draw(&seed, 0, count - 1)];
    return one | all[bench_draw(&seed, 0, count - 1)];
}

void company_names(unsigned kinds, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (unsigned i = 0; i < 32 && used < size; i++)
        if (kinds & 1u << i)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     scene_name(1u << i));
}

void company_expect(unsigned kinds)
{
    char seed[16];
    expected = kinds;
    snprintf(seed, sizeof seed, "%u", (unsigned)bench_seed);
    if (setenv("TEST_SEED", seed, 1))
        bench_die("out of memory");
}

bool company_expected(void)
{
    return expected;
}

const char *const *company_server_args(void)
{
    static const char *const none[] = {NULL};
    return expected & SCENE_STREAMS ? scene_server_args : none;
}

void company_begin(const struct server *server)
{
    size_t at = 0;
    if (!expected)
        return;
    while (at < SERVERS_MAX && companies[at].server)
        at++;
    if (at == SERVERS_MAX)
        bench_die("more than %d servers have neighbours", SERVERS_MAX);
    fflush(NULL); /* otherwise the neighbours would write the same text a second time */
    companies[at].server = server;
    companies[at].scene = scene_begin(server, expected);
}

void company_end(const struct server *server)
{
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        if (companies[i].server != server)
            continue;
        companies[i].server = NULL;
        if (scene_end(companies[i].scene))
            bench_die("a neighbour could not go on");
    }
}
