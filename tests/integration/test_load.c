/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The bench's clients (tests/programs/bench/load.h), against the real server: rows judge them by
 * their spans, so each kernel that ran has one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"

#define MS UINT64_C(1000000)

enum { STREAMS = 3, LONG_SECONDS = 120 };

/* Each kernel has a stream. The first one outlives the client, the others take 1 and 2 ms. */
static void leaves_a_stream_behind(struct load *child)
{
    while (load_resting(child))
        usleep(1000);
    load_launch(child, LONG_SECONDS * 1000 * MS);
    for (uint32_t i = 1; i < STREAMS; i++)
        load_wait(child, load_launch(child, i * MS));
}

static void streams_that_are_ahead_have_their_spans(void **state)
{
    const char *env[] = {"SOFTGPU_CONTENTION_PERCENT=0", "SOFTGPU_VARIATION_PERCENT=0", NULL};
    const struct load_spec spec = {.name = "uneven",
                                   .kernel_ns = MS,
                                   .most = STREAMS,
                                   .streams = STREAMS,
                                   .behave = leaves_a_stream_behind};
    struct server *server = bench_server_soft(env);
    struct load *load = load_start(server, &spec);
    (void)state;
    load_go(load);
    load_finish(load);
    assert_int_equal(load->page->launches, STREAMS);
    assert_int_equal(load_whole(load), 0);
    assert_int_equal(load_spans(load), STREAMS - 1);
    const struct span *one = &load->spans[0], *two = &load->spans[1];
    assert_true(one->end - one->begin >= MS && two->end - two->begin >= 2 * MS);
    assert_true(two->begin >= one->end);
    assert_true(load_ns(load, one->begin, two->end) >= 3 * MS);
    load_free(load);
    bench_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_are_ahead_have_their_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
