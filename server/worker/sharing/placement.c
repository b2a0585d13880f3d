/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/placement.h"

#include <assert.h>
#include <string.h>

#include "common/util.h"

static struct placement *placement_of(struct sm_allocation_client *client)
{
    return container_of(client, struct placement, allocation);
}

int placement_table_open(struct placement_table *places, struct partition_table *partitions,
                         const struct placement_events *notice)
{
    struct sm_allocation allocation;
    int result = partition_open_allocation(partitions, &allocation);
    if (result)
        return result;
    *places = (struct placement_table){
        .allocation = allocation, .partitions = partitions, .notice = *notice};
    pthread_mutex_init(&places->lock, NULL);
    return 0;
}

void placement_table_close(struct placement_table *places)
{
    if (!places->partitions)
        return;
    assert(!places->allocation.first && "a client is left");
    pthread_mutex_destroy(&places->lock);
    places->partitions = NULL;
}

/* ---- queues ---- */

static void queue_make(struct placement_table *places, struct placement *place)
{
    if (place->making)
        return;
    place->making = true;
    place->make_next = NULL;
    *(places->make_last ? &places->make_last->make_next : &places->make_first) = place;
    places->make_last = place;
    places->notice.to_make(places->notice.context);
}

static void forget_make(struct placement_table *places, struct placement *place)
{
    struct placement *before = NULL, *at = places->make_first;
    if (!place->making)
        return;
    for (; at != place; at = at->make_next)
        before = at;
    *(before ? &before->make_next : &places->make_first) = place->make_next;
    if (places->make_last == place)
        places->make_last = before;
    place->making = false;
}

struct placement *placement_next_to_make(struct placement_table *places,
                                         struct sm_group_set *sm_groups)
{
    pthread_mutex_lock(&places->lock);
    struct placement *place = places->make_first;
    if (place) {
        forget_make(places, place);
        *sm_groups = place->allocation.now;
    }
    pthread_mutex_unlock(&places->lock);
    return place;
}

static void leave_idle(struct placement_table *places, struct placement *place)
{
    if (!place->idle)
        return;
    *(place->idle_next ? &place->idle_next->idle_previous : &places->idle_last) =
        place->idle_previous;
    *(place->idle_previous ? &place->idle_previous->idle_next : &places->idle_first) =
        place->idle_next;
    place->idle = false;
}

/* ---- from decisions to partitions ---- */

static void find_steady(struct placement *place)
{
    bool steady = place->settled && place->working && !place->idle && !place->held_since;
    /* Relaxed: placement_enter says why an old value does no harm. */
    atomic_store_explicit(&place->steady, steady, memory_order_relaxed);
}

bool placement_is_home(struct placement_table *places, const struct placement *place,
                       const struct sm_group_set *sm_groups)
{
    pthread_mutex_lock(&places->lock);
    bool home = sm_allocation_owns(&place->allocation, sm_groups);
    pthread_mutex_unlock(&places->lock);
    return home;
}

void placement_foreign(struct placement_table *places, const struct placement *place,
                       struct sm_group_set *foreign)
{
    pthread_mutex_lock(&places->lock);
    sm_allocation_foreign(&places->allocation, &place->allocation, foreign);
    pthread_mutex_unlock(&places->lock);
}

static void find_borrowed(struct placement_table *places, struct placement *place)
{
    struct sm_group_set both = place->allocation.now;
    sm_group_set_join(&both, &place->at);
    atomic_store_explicit(&place->at_home, sm_allocation_owns(&place->allocation, &place->at),
                          memory_order_relaxed);
    /* Relaxed: the gate reads it as a hint, when it counts the next time. */
    atomic_store_explicit(&place->borrows,
                          sm_allocation_borrows(&places->allocation, &place->allocation, &both),
                          memory_order_relaxed);
}

static void drop_next(struct placement_table *places, struct placement *place)
{
    if (place->next)
        partition_put(places->partitions, place->next);
    place->next = NULL;
}

/* To be called when the SM groups of a client have changed. */
static void aim_placement(struct placement_table *places, struct placement *place)
{
    bool nowhere = sm_group_set_is_empty(&place->allocation.now);
    drop_next(places, place);
    forget_make(places, place);
    place->settled = !nowhere && sm_group_set_equals(&place->allocation.now, &place->at);
    if (!place->settled && !nowhere) {
        place->next = partition_find(places->partitions, &place->allocation.now);
        if (!place->next)
            queue_make(places, place);
    }
    find_steady(place);
    find_borrowed(places, place);
    places->notice.changed(places->notice.context, place);
}

static void aim_named(struct placement_table *places)
{
    struct sm_allocation_client *client;
    while ((client = sm_allocation_next_changed(&places->allocation)))
        aim_placement(places, placement_of(client));
}

/* SM groups have got another owner: a client that runs on them, and does not move, may borrow now
 * or no longer. */
static void find_all_borrowed(struct placement_table *places)
{
    for (struct sm_allocation_client *client = places->allocation.first; client;
         client = client->next)
        find_borrowed(places, placement_of(client));
}

void placement_made(struct placement_table *places, struct placement *place,
                    struct partition *partition)
{
    pthread_mutex_lock(&places->lock);
    bool wanted = place->allocation.present && !place->next && !place->settled && !place->making &&
                  !sm_group_set_is_empty(&place->allocation.now);
    if (!partition) {
        if (wanted)
            queue_make(places, place);
    } else if (wanted && sm_group_set_equals(&partition->sm_groups, &place->allocation.now)) {
        place->next = partition;
        places->notice.changed(places->notice.context, place);
    } else {
        partition_put(places->partitions, partition);
    }
    pthread_mutex_unlock(&places->lock);
}

/* ---- clients ---- */

/* To be called when requests, limits or accounts have changed. Passes the error on. */
static uint32_t end_change(struct placement_table *places, uint32_t error)
{
    if (!error) {
        aim_named(places);
        find_all_borrowed(places);
    }
    pthread_mutex_unlock(&places->lock);
    return error;
}

uint32_t placement_add(struct placement_table *places, struct placement *place,
                       struct sm_allocation_account *account, uint32_t request, uint32_t limit,
                       struct error *why)
{
    pthread_mutex_lock(&places->lock);
    return end_change(places, sm_allocation_add(&places->allocation, &place->allocation, account,
                                                request, limit, why));
}

uint32_t placement_update(struct placement_table *places, struct placement *place, uint32_t request,
                          uint32_t limit, struct error *why)
{
    pthread_mutex_lock(&places->lock);
    return end_change(
        places, sm_allocation_update(&places->allocation, &place->allocation, request, limit, why));
}

uint32_t placement_move_account(struct placement_table *places, struct placement *place,
                                struct sm_allocation_account *account, struct error *why)
{
    pthread_mutex_lock(&places->lock);
    return end_change(places,
                      sm_allocation_move(&places->allocation, &place->allocation, account, why));
}

uint32_t placement_account_set(struct placement_table *places,
                               struct sm_allocation_account *account, uint32_t request,
                               uint32_t limit, struct error *why)
{
    pthread_mutex_lock(&places->lock);
    return end_change(places,
                      sm_allocation_account_set(&places->allocation, account, request, limit, why));
}

void placement_set_time(struct placement_table *places, struct placement *place, uint32_t request)
{
    pthread_mutex_lock(&places->lock);
    place->allocation.time_request = request;
    pthread_mutex_unlock(&places->lock);
}

void placement_bind_time(struct placement_table *places, bool binds)
{
    pthread_mutex_lock(&places->lock);
    sm_allocation_bind_time(&places->allocation, binds);
    end_change(places, 0);
}

void placement_notify(struct placement_table *places, struct placement *place)
{
    pthread_mutex_lock(&places->lock);
    places->notice.changed(places->notice.context, place);
    pthread_mutex_unlock(&places->lock);
}

void placement_remove(struct placement_table *places, struct placement *place)
{
    pthread_mutex_lock(&places->lock);
    if (place->allocation.present) {
        sm_allocation_remove(&places->allocation, &place->allocation);
        leave_idle(places, place);
        forget_make(places, place);
        drop_next(places, place);
        /* Its client may still be there, and end work or a making. */
        place->working = false;
        aim_named(places);
        find_all_borrowed(places);
    }
    pthread_mutex_unlock(&places->lock);
}

void placement_idle(struct placement_table *places, struct placement *place, uint64_t now)
{
    pthread_mutex_lock(&places->lock);
    if (place->working && !place->idle) {
        place->idle = true;
        place->idle_since = now;
        place->idle_next = NULL;
        place->idle_previous = places->idle_last;
        *(places->idle_last ? &places->idle_last->idle_next : &places->idle_first) = place;
        places->idle_last = place;
        find_steady(place);
    }
    pthread_mutex_unlock(&places->lock);
}

uint64_t placement_tick(struct placement_table *places, uint64_t now)
{
    uint64_t next = PLACEMENT_NEVER;
    struct placement *place;
    pthread_mutex_lock(&places->lock);
    while (next == PLACEMENT_NEVER && (place = places->idle_first)) {
        if (now < place->idle_since + PLACEMENT_LINGER_NS) {
            next = place->idle_since + PLACEMENT_LINGER_NS;
            continue;
        }
        leave_idle(places, place);
        place->working = false;
        sm_allocation_idle(&places->allocation, &place->allocation);
        aim_named(places);
    }
    pthread_mutex_unlock(&places->lock);
    return next;
}

static void take_back(struct placement_table *places, struct placement *place)
{
    leave_idle(places, place);
    if (place->working)
        return;
    place->working = true;
    sm_allocation_wants(&places->allocation, &place->allocation);
    aim_named(places);
}

static bool take_next_partition(struct placement_table *places, struct placement *place,
                                struct partition **to)
{
    if (!place->next)
        return false;
    *to = place->next;
    place->next = NULL;
    place->at = (*to)->sm_groups;
    place->settled = true;
    find_borrowed(places, place);
    return true;
}

static enum placement_answer find_answer(struct placement_table *places, struct placement *place,
                                         struct partition **to)
{
    if (place->settled)
        return PLACEMENT_STAY;
    if (take_next_partition(places, place, to))
        return PLACEMENT_MOVE;
    bool somewhere =
        !sm_group_set_is_empty(&place->allocation.now) && !sm_group_set_is_empty(&place->at);
    return somewhere && sm_allocation_may_use(&places->allocation, &place->allocation, &place->at)
               ? PLACEMENT_STAY
               : PLACEMENT_HOLD;
}

enum placement_answer placement_enter(struct placement_table *places, struct placement *place,
                                      struct partition **to, uint64_t now)
{
    /* Relaxed: the value changes under the lock, and a visit that still sees the old one counts as
     * a visit a moment earlier. */
    if (atomic_load_explicit(&place->steady, memory_order_relaxed))
        return PLACEMENT_STAY;
    pthread_mutex_lock(&places->lock);
    take_back(places, place);
    enum placement_answer said = find_answer(places, place, to);
    if (said == PLACEMENT_HOLD && !place->held_since)
        place->held_since = now;
    if (said != PLACEMENT_HOLD && place->held_since) {
        place->held_ns += now - place->held_since;
        place->held_since = 0;
    }
    find_steady(place);
    pthread_mutex_unlock(&places->lock);
    return said;
}

enum placement_answer placement_apply(struct placement_table *places, struct placement *place,
                                      struct partition **to)
{
    pthread_mutex_lock(&places->lock);
    enum placement_answer said = place->settled                           ? PLACEMENT_STAY
                                 : take_next_partition(places, place, to) ? PLACEMENT_MOVE
                                                                          : PLACEMENT_HOLD;
    find_steady(place);
    pthread_mutex_unlock(&places->lock);
    return said;
}

void placement_view(struct placement_table *places, const struct placement *place, uint64_t now,
                    struct placement_view *view)
{
    pthread_mutex_lock(&places->lock);
    const struct sm_allocation *allocation = &places->allocation;
    uint32_t has = partition_multiprocessors(places->partitions, &place->allocation.now);
    uint32_t most = sm_allocation_max(allocation, &place->allocation);
    /* The allocation doesn't count a remainder that may join no other SM groups. */
    if (most == allocation->total)
        most = places->partitions->total;
    /* On a last SM group that is larger than the others it may have more than its limit. */
    most = max(most, has);
    *view = (struct placement_view){
        .multiprocessors = has,
        .max_multiprocessors = most,
        .sm_groups = place->allocation.now,
        .held_since = place->held_since,
        .held_ns = place->held_ns + (place->held_since ? now - place->held_since : 0),
    };
    pthread_mutex_unlock(&places->lock);
}
