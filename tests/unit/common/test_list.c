/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Lists and queues: every way in and out, from every place, and loops whose entries leave. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "common/list.h"

/* Of greater alignment than its link, so that no pointer to one may be made from the list itself.
 */
struct item {
    _Alignas(64) int number;
    struct list_link link;
    struct queue_link queued;
};

static struct item items[5] = {
    {.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}, {.number = 4}};

static void take_all_out(void)
{
    for (int i = 0; i < 5; i++) {
        items[i].link = (struct list_link){0};
        items[i].queued = (struct queue_link){0};
    }
}

/* The numbers as decimal digits, the first behind a 1; the same backwards must be its reverse. */
static int written(const struct list *list)
{
    int forwards = 1, backwards = 1, place = 1;
    const struct item *item;
    LIST_FOR_EACH (item, list, link) {
        forwards = forwards * 10 + item->number;
        place *= 10;
    }
    assert_null(item);
    int reversed = 0, unit = 1;
    for (struct list_link *at = list_last(list); at; at = list_previous(list, at)) {
        reversed += container_of(at, struct item, link)->number * unit;
        unit *= 10;
    }
    backwards = place + reversed;
    assert_int_equal(forwards, backwards);
    return forwards;
}

static int queue_written(const struct queue *queue)
{
    int number = 1;
    const struct item *item;
    QUEUE_FOR_EACH (item, queue, queued)
        number = number * 10 + item->number;
    assert_null(item);
    if (queue->first)
        assert_null(queue->last->next);
    return number;
}

static void entries_stand_in_the_order_of_insertion(void **state)
{
    (void)state;
    take_all_out();
    static struct list list = LIST_INIT(list);
    assert_true(list_is_empty(&list));
    assert_null(LIST_FIRST(&list, struct item, link));
    assert_null(LIST_LAST(&list, struct item, link));
    assert_int_equal(written(&list), 1);
    list_append(&list, &items[2].link);
    list_append(&list, &items[3].link);
    list_prepend(&list, &items[1].link);
    list_insert_after(&items[3].link, &items[4].link);
    list_insert_after(&items[1].link, &items[0].link);
    assert_int_equal(written(&list), 110234);
    assert_false(list_is_empty(&list));
    assert_ptr_equal(LIST_FIRST(&list, struct item, link), &items[1]);
    assert_ptr_equal(LIST_LAST(&list, struct item, link), &items[4]);
    assert_ptr_equal(list_next(&list, &items[0].link), &items[2].link);
    assert_null(list_next(&list, &items[4].link));
    assert_null(list_previous(&list, &items[1].link));
}

static void a_link_leaves_from_anywhere_and_only_once(void **state)
{
    (void)state;
    take_all_out();
    static struct list list;
    list_init(&list);
    for (int i = 0; i < 5; i++)
        list_append(&list, &items[i].link);
    list_remove(&items[2].link);
    assert_int_equal(written(&list), 10134);
    list_remove(&items[0].link);
    list_remove(&items[4].link);
    assert_int_equal(written(&list), 113);
    assert_false(list_is_linked(&items[4].link));
    list_remove(&items[4].link);
    assert_int_equal(written(&list), 113);
    list_remove(&items[3].link);
    list_remove(&items[1].link);
    assert_true(list_is_empty(&list));
    list_append(&list, &items[4].link);
    assert_int_equal(written(&list), 14);
}

static void one_list_is_put_behind_another(void **state)
{
    (void)state;
    take_all_out();
    static struct list list = LIST_INIT(list), from = LIST_INIT(from);
    list_append_list(&list, &from);
    assert_int_equal(written(&list), 1);
    list_append(&from, &items[0].link);
    list_append(&from, &items[1].link);
    list_append_list(&list, &from);
    assert_int_equal(written(&list), 101);
    assert_true(list_is_empty(&from));
    list_append(&from, &items[2].link);
    list_append_list(&list, &from);
    list_append_list(&list, &from);
    assert_int_equal(written(&list), 1012);
    assert_int_equal(written(&from), 1);
}

static void the_entry_at_hand_may_leave_and_be_freed(void **state)
{
    (void)state;
    struct list list = LIST_INIT(list);
    struct queue queue = {0};
    for (int i = 0; i < 4; i++) {
        struct item *item = aligned_alloc(64, sizeof *item);
        assert_non_null(item);
        *item = (struct item){.number = i};
        list_append(&list, &item->link);
        queue_append(&queue, &item->queued);
    }
    struct item *item, *inner;
    int seen = 0, pairs = 0;
    LIST_FOR_EACH (item, &list, link)
        LIST_FOR_EACH (inner, &list, link)
            pairs++;
    assert_int_equal(pairs, 16);
    LIST_FOR_EACH (item, &list, link)
        if (item->number == 2)
            break;
    assert_int_equal(item->number, 2);
    LIST_FOR_EACH (item, &list, link) {
        list_remove(&item->link);
        seen++;
    }
    assert_int_equal(seen, 4);
    assert_true(list_is_empty(&list));
    QUEUE_FOR_EACH (item, &queue, queued)
        free(item);
}

static void a_queue_is_first_in_first_out(void **state)
{
    (void)state;
    take_all_out();
    struct queue queue = {0};
    assert_true(queue_is_empty(&queue));
    assert_null(QUEUE_FIRST(&queue, struct item, queued));
    assert_null(QUEUE_TAKE(&queue, struct item, queued));
    queue_append(&queue, &items[1].queued);
    queue_append(&queue, &items[2].queued);
    queue_prepend(&queue, &items[0].queued);
    assert_int_equal(queue_written(&queue), 1012);
    assert_ptr_equal(QUEUE_FIRST(&queue, struct item, queued), &items[0]);
    assert_ptr_equal(QUEUE_TAKE(&queue, struct item, queued), &items[0]);
    assert_ptr_equal(QUEUE_TAKE(&queue, struct item, queued), &items[1]);
    assert_ptr_equal(QUEUE_TAKE(&queue, struct item, queued), &items[2]);
    assert_null(QUEUE_TAKE(&queue, struct item, queued));
    queue_prepend(&queue, &items[3].queued);
    queue_append(&queue, &items[4].queued);
    assert_int_equal(queue_written(&queue), 134);
}

static void a_link_leaves_a_queue_from_anywhere(void **state)
{
    (void)state;
    for (int gone = 0; gone < 3; gone++) {
        take_all_out();
        struct queue queue = {0};
        for (int i = 0; i < 3; i++)
            queue_append(&queue, &items[i].queued);
        assert_false(queue_remove(&queue, &items[3].queued));
        assert_true(queue_remove(&queue, &items[gone].queued));
        assert_false(queue_remove(&queue, &items[gone].queued));
        queue_append(&queue, &items[4].queued);
        static const int left[] = {1124, 1024, 1014};
        assert_int_equal(queue_written(&queue), left[gone]);
    }
    struct queue queue = {0};
    queue_append(&queue, &items[3].queued);
    assert_true(queue_remove(&queue, &items[3].queued));
    assert_true(queue_is_empty(&queue));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_stand_in_the_order_of_insertion),
        cmocka_unit_test(a_link_leaves_from_anywhere_and_only_once),
        cmocka_unit_test(one_list_is_put_behind_another),
        cmocka_unit_test(the_entry_at_hand_may_leave_and_be_freed),
        cmocka_unit_test(a_queue_is_first_in_first_out),
        cmocka_unit_test(a_link_leaves_a_queue_from_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
