/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Memory that clients keep idle: charged to them, and there for whoever needs it. */
#include "common/clock.h"
#include "server/supervisor/session/owned/lend.h"
#include "tests/unit/supervisor/fake.h"

static struct fake fake;

/* The words of the client's header, as the client sees them. */
static uint64_t *map_words(unsigned session)
{
    struct proto_client_header *header =
        mmap(NULL, PROTO_RING_FIRST, PROT_READ | PROT_WRITE, MAP_SHARED,
             fake_session(&fake, session)->header.fd, 0);
    assert_ptr_not_equal(header, MAP_FAILED);
    return header->idle;
}

static void unmap_words(uint64_t *words)
{
    munmap((uint8_t *)words - offsetof(struct proto_client_header, idle), PROTO_RING_FIRST);
}

static void stop(void)
{
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void it_serves_its_owners_next_request(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, NULL);
    uint64_t *words = map_words(0);
    words[3] = fake_alloc(&fake, fd, 8 * MIB);
    words[255] = fake_alloc(&fake, fd, 2 * MIB);
    fake_alloc(&fake, fd, 10 * MIB);
    assert_int_equal(words[3], 0);
    assert_int_equal(words[255], 0);
    FAKE_WAIT(&fake, fake.worker[0].mapped == 10 * MIB);
    unmap_words(words);
    close(fd);
    stop();
}

static void it_counts_as_free_for_its_owner(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 64 * MIB, NULL, NULL);
    uint64_t *words = map_words(0);
    uint64_t large = fake_alloc(&fake, fd, 8 * MIB);
    uint64_t small = fake_alloc(&fake, fd, 4096), other = fake_alloc(&fake, fd, 4096);
    words[0] = large;
    words[1] = small;
    /* A slab counts as free when all that is used of it is idle. */
    assert_int_equal(fake_usage(&fake, fd).used, 2 * MIB);
    words[2] = other;
    assert_int_equal(fake_usage(&fake, fd).used, 0);
    assert_int_equal(fake_first(&fake)->quotas[RESOURCE_MEMORY].used, 10 * MIB);
    words[0] = 0;
    assert_int_equal(fake_usage(&fake, fd).used, 8 * MIB);
    unmap_words(words);
    close(fd);
    stop();
}

static void it_goes_to_another_client_that_needs_it(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int idle = fake_attach(&fake, 0, 0, NULL, NULL), busy = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t *words = map_words(0);
    words[0] = fake_alloc(&fake, idle, 100 * MIB);
    words[1] = fake_alloc(&fake, idle, 100 * MIB);
    fake_alloc(&fake, busy, 56 * MIB);
    assert_int_not_equal(words[0], 0); /* there was room without it */
    fake_alloc(&fake, busy, 80 * MIB);
    assert_int_equal(words[0], 0);
    assert_int_not_equal(words[1], 0); /* one was enough */
    /* Small requests too, and where the device has no room though the quotas have. */
    fake_alloc(&fake, busy, 20 * MIB);
    fake_alloc(&fake, busy, 4096);
    assert_int_equal(words[1], 0);
    unmap_words(words);
    close(idle);
    close(busy);
    stop();
}

/* Small blocks share a region, whose charge falls only when all of them are free. */
static void what_lowers_no_charge_stays_with_its_owner(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int idle = fake_attach(&fake, 0, 0, NULL, NULL), busy = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t *words = map_words(0);
    uint64_t one = fake_alloc(&fake, idle, MIB / 2), other = fake_alloc(&fake, idle, MIB / 2);
    words[0] = one;
    words[1] = fake_alloc(&fake, idle, 200 * MIB);
    fake_alloc(&fake, busy, 100 * MIB);
    assert_int_equal(words[0], one);
    assert_int_equal(words[1], 0);
    /* A block that is named twice is one block: it is taken, and brings nothing. */
    words[2] = one;
    fake_alloc(&fake, busy, 150 * MIB);
    struct proto_memory_alloc body = {.count = 6 * MIB};
    fake_send(&fake, busy, PROTO_MEMORY_ALLOC, &body);
    fake_expect_failed(&fake, busy, PROTO_ERROR_OUT_OF_MEMORY, "256 MiB");
    assert_int_equal(fake_first(&fake)->quotas[RESOURCE_MEMORY].used, 2 * MIB);
    words[3] = other;
    fake_alloc(&fake, busy, 6 * MIB);
    assert_int_equal(words[3], 0);
    unmap_words(words);
    close(idle);
    close(busy);
    stop();
}

static void a_full_device_takes_it_as_well(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int idle = fake_attach(&fake, 0, 0, NULL, NULL), busy = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t *words = map_words(0);
    words[0] = fake_alloc(&fake, idle, 32 * MIB);
    fake.worker[0].refuse_map = 1;
    fake_alloc(&fake, busy, 16 * MIB);
    assert_int_equal(words[0], 0);
    words[1] = fake_alloc(&fake, idle, 32 * MIB);
    /* A look that is not due is waited for, and then the device, which refuses once, has room. */
    FAKE_WAIT(&fake, !session_lend_due_in(fake_session(&fake, 1)));
    fake.worker[0].refuse_map = 1;
    fake_alloc(&fake, busy, 4096);
    assert_int_equal(words[1], 0);
    unmap_words(words);
    close(idle);
    close(busy);
    stop();
}

static void a_request_waits_for_it_and_not_for_ever(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int idle = fake_attach(&fake, 0, 0, NULL, NULL), busy = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t *words = map_words(0);
    struct proto_memory_alloc body = {.count = 100 * MIB};
    words[0] = fake_alloc(&fake, idle, 200 * MIB);
    fake.worker[0].hold_frees = true;
    fake_send(&fake, busy, PROTO_MEMORY_ALLOC, &body);
    fake_settle(&fake);
    assert_int_equal(words[0], 0);
    assert_int_equal(fake_take(&fake, busy), CHANNEL_EMPTY);
    fake_expect_failed(&fake, busy, PROTO_ERROR_OUT_OF_MEMORY, "200 MiB");
    fake_send(&fake, busy, PROTO_MEMORY_ALLOC, &body);
    fake_expect_failed(&fake, busy, PROTO_ERROR_OUT_OF_MEMORY, "200 MiB"); /* at once */
    fake_release(&fake.worker[0]);
    fake_settle(&fake);
    fake_alloc(&fake, busy, 100 * MIB);
    unmap_words(words);
    close(idle);
    close(busy);
    stop();
}

/* Whether there is room or not: the server looks when the user's time for that has come. */
static void looks_at_others_have_a_part_of_the_time(void **state)
{
    (void)state;
    const uint64_t rest = 200 * UNITS_MS;
    fake_open(&fake, 1, 256 * MIB);
    int idle = fake_attach(&fake, 0, 0, NULL, NULL), busy = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t *words = map_words(0);
    struct proto_memory_alloc body = {.count = 100 * MIB};
    uint64_t *next = &fake_session(&fake, 1)->user_share->next_look;
    words[0] = fake_alloc(&fake, idle, 200 * MIB);
    uint64_t due = *next = clock_now() + rest;
    fake_send(&fake, busy, PROTO_MEMORY_ALLOC, &body);
    FAKE_WAIT(&fake, words[0] == 0);
    assert_true(clock_now() >= due);
    fake_expect(&fake, busy, PROTO_MEMORY_ALLOCATED);
    due = *next = clock_now() + rest;
    body.count = 200 * MIB;
    fake_send(&fake, busy, PROTO_MEMORY_ALLOC, &body);
    fake_expect_failed(&fake, busy, PROTO_ERROR_OUT_OF_MEMORY, "256 MiB");
    assert_true(clock_now() >= due);
    unmap_words(words);
    close(idle);
    close(busy);
    stop();
}

static void a_lower_limit_takes_it(void **state)
{
    (void)state;
    struct allowance change = allowance_none;
    struct proto_attached attached;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 64 * MIB, NULL, &attached);
    uint64_t *words = map_words(0);
    words[0] = fake_alloc(&fake, fd, 32 * MIB);
    change.of[RESOURCE_MEMORY].limit = 40 * MIB;
    assert_int_equal(change_set(fake.supervisor, attached.client, &change,
                                &(struct change_asker){"a test", NULL, NULL}),
                     1);
    assert_int_not_equal(words[0], 0);
    change.of[RESOURCE_MEMORY].limit = 16 * MIB;
    assert_int_equal(change_set(fake.supervisor, attached.client, &change,
                                &(struct change_asker){"a test", NULL, NULL}),
                     1);
    assert_int_equal(words[0], 0);
    FAKE_WAIT(&fake, fake_first(&fake)->quotas[RESOURCE_MEMORY].used == 0);
    unmap_words(words);
    close(fd);
    stop();
}

static void a_client_that_requests_memory_waits_for_it(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int idle = fake_attach(&fake, 0, 0, NULL, NULL), fd = fake_greet(&fake);
    uint64_t *words = map_words(0);
    struct proto_attach body = {.allowance = PROTO_ALLOWANCE_UNSET, .name = "test"};
    words[0] = fake_alloc(&fake, idle, 200 * MIB);
    body.allowance.memory.request = 100 * MIB;
    body.allowance.memory.limit = 100 * MIB;
    fake.worker[0].hold_frees = true;
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    fake_settle(&fake);
    assert_int_equal(words[0], 0);
    assert_int_equal(fake_take(&fake, fd), CHANNEL_EMPTY);
    fake_release(&fake.worker[0]);
    fake_expect(&fake, fd, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    fake_alloc(&fake, fd, 100 * MIB);
    /* Nobody keeps anything idle now. */
    int late = fake_greet(&fake);
    uint64_t used = fake_alloc(&fake, idle, 100 * MIB);
    fake_send(&fake, late, PROTO_ATTACH, &body);
    fake_expect_failed(&fake, late, PROTO_ERROR_NO_ROOM, "100 MiB");
    /* One that waited for too long is refused, and may ask again. */
    words[7] = used;
    fake.worker[0].hold_frees = true;
    fake_send(&fake, late, PROTO_ATTACH, &body);
    fake_expect_failed(&fake, late, PROTO_ERROR_NO_ROOM, "100 MiB");
    fake_release(&fake.worker[0]);
    fake_settle(&fake);
    fake_send(&fake, late, PROTO_ATTACH, &body);
    fake_expect(&fake, late, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    unmap_words(words);
    close(idle);
    close(fd);
    close(late);
    stop();
}

static void words_that_name_nothing_of_the_client_are_passed_over(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, NULL),
        other = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t *words = map_words(0);
    uint64_t own = fake_alloc(&fake, fd, 8 * MIB), strange = fake_alloc(&fake, other, 8 * MIB);
    words[0] = strange;
    words[1] = own + 512;
    words[2] = UINT64_MAX;
    words[3] = words[4] = own; /* twice, and freed once */
    fake_alloc(&fake, fd, 16 * MIB);
    assert_int_equal(words[0], strange);
    assert_int_equal(words[1], own + 512);
    assert_int_equal(words[2], UINT64_MAX);
    assert_int_equal(words[3], 0);
    assert_int_equal(words[4], own);
    assert_int_equal(fake_first(&fake)->quotas[RESOURCE_MEMORY].used, 16 * MIB);
    fake_free(&fake, other, strange);
    unmap_words(words);
    close(fd);
    close(other);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_serves_its_owners_next_request),
        cmocka_unit_test(it_counts_as_free_for_its_owner),
        cmocka_unit_test(it_goes_to_another_client_that_needs_it),
        cmocka_unit_test(what_lowers_no_charge_stays_with_its_owner),
        cmocka_unit_test(a_full_device_takes_it_as_well),
        cmocka_unit_test(a_request_waits_for_it_and_not_for_ever),
        cmocka_unit_test(looks_at_others_have_a_part_of_the_time),
        cmocka_unit_test(a_lower_limit_takes_it),
        cmocka_unit_test(a_client_that_requests_memory_waits_for_it),
        cmocka_unit_test(words_that_name_nothing_of_the_client_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
