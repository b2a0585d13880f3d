/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: of 200 ms of kernels of 100 us, leases of 5 ms must keep nine tenths */
/* Leases of a whole worker on the software GPU, counted by words that the kernels write. */
#include "common/clock.h"
#include "tests/unit/worker/timed.h"

#ifdef ARENA_THREAD_SANITIZER
#define KEPT_MIN 0.1 /* the worker itself takes its time */
#else
#define KEPT_MIN 0.9
#endif

/* Four clients with 5 ms each, of kernels of 100 us, beside one that has the device alone. Other
 * work of the machine takes part, so the best of some rounds counts. */
static void short_leases_keep_the_device_busy(void **state)
{
    (void)state;
    double kept = 0;
    for (uint32_t i = 0; i < PEERS; i++)
        arrive(i);
    harness_set_mode(PROTO_MODE_FAIR, 5 * MS);
    for (int round = 0; round < 8 && kept < KEPT_MIN; round++) {
        keep_busy(1, 100000, 30 * MS);
        uint64_t alone = keep_busy(1, 100000, 200 * MS);
        finish(1);
        keep_busy(PEERS, 100000, 30 * MS);
        uint64_t start = clock_now();
        uint64_t together = keep_busy(PEERS, 100000, 200 * MS);
        uint64_t most = (clock_now() - start) / 100000;
        finish(PEERS);
        print_message("alone %lu kernels, four with leases of 5 ms %lu\n", alone, together);
        /* Kernels of one block would fit beside each other: that they never did. */
        assert_true(together <= most + most / 50 + 8);
        if ((double)together / (double)alone > kept)
            kept = (double)together / (double)alone;
    }
    assert_true(kept >= KEPT_MIN);
    for (uint32_t i = 0; i < PEERS; i++) {
        uint64_t launched = peers[i]->producers[0].value - 1;
        assert_int_equal(word(i), launched);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(short_leases_keep_the_device_busy, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
