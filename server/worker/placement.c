/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/placement.h"

#include <assert.h>
#include <string.h>

static struct place *place_of(struct share_client *client)
{
    return (struct place *)((char *)client - offsetof(struct place, share));
}

int places_open(struct places *places, struct partitions *partitions,
                const struct places_notice *notice)
{
    struct share share;
    /* share.h counts whole atoms; the remainder lies behind them. */
    int result = share_open(&share, partitions->count - (partitions->remainder ? 1 : 0),
                            partitions->atom_size, partitions->remainder);
    if (result)
        return result;
    *places = (struct places){.share = share, .partitions = partitions, .notice = *notice};
    pthread_mutex_init(&places->lock, NULL);
    return 0;
}

void places_close(struct places *places)
{
    if (!places->partitions)
        return;
    assert(!places->share.first && "a client is left");
    pthread_mutex_destroy(&places->lock);
    places->partitions = NULL;
}

/* ---- queues ---- */

static void queue_make(struct places *places, struct place *place)
{
    if (place->making)
        return;
    place->making = true;
    place->make_next = NULL;
    *(places->make_last ? &places->make_last->make_next : &places->make_first) = place;
    places->make_last = place;
    places->notice.to_make(places->notice.context);
}

static void forget_make(struct places *places, struct place *place)
{
    struct place *before = NULL, *at = places->make_first;
    if (!place->making)
        return;
    for (; at != place; at = at->make_next)
        before = at;
    *(before ? &before->make_next : &places->make_first) = place->make_next;
    if (places->make_last == place)
        places->make_last = before;
    place->making = false;
}

struct place *places_to_make(struct places *places, struct share_set *atoms)
{
    pthread_mutex_lock(&places->lock);
    struct place *place = places->make_first;
    if (place) {
        forget_make(places, place);
        *atoms = place->share.now;
    }
    pthread_mutex_unlock(&places->lock);
    return place;
}

static void leave_quiet(struct places *places, struct place *place)
{
    if (!place->quiet)
        return;
    *(place->quiet_next ? &place->quiet_next->quiet_previous : &places->quiet_last) =
        place->quiet_previous;
    *(place->quiet_previous ? &place->quiet_previous->quiet_next : &places->quiet_first) =
        place->quiet_next;
    place->quiet = false;
}

/* ---- from decisions to partitions ---- */

static void find_steady(struct place *place)
{
    bool steady = place->settled && place->working && !place->quiet && !place->held_since;
    __atomic_store_n(&place->steady, steady, __ATOMIC_RELAXED);
}

static void find_borrowed(struct places *places, struct place *place)
{
    struct share_set both = place->share.now;
    share_set_join(&both, &place->at);
    __atomic_store_n(&place->borrows, share_borrows(&places->share, &place->share, &both),
                     __ATOMIC_RELAXED);
}

static void drop_next(struct places *places, struct place *place)
{
    if (place->next)
        partition_put(places->partitions, place->next);
    place->next = NULL;
}

/* The atoms of a place are others now. */
static void aim(struct places *places, struct place *place)
{
    bool nowhere = share_set_empty(&place->share.now);
    drop_next(places, place);
    forget_make(places, place);
    place->settled = !nowhere && share_set_same(&place->share.now, &place->at);
    if (!place->settled && !nowhere) {
        place->next = partition_find(places->partitions, &place->share.now);
        if (!place->next)
            queue_make(places, place);
    }
    find_steady(place);
    find_borrowed(places, place);
    places->notice.changed(places->notice.context, place);
}

static void aim_all(struct places *places)
{
    struct share_client *client;
    while ((client = share_named(&places->share)))
        aim(places, place_of(client));
}

/* Own atoms changed hands: who was on them without moving may borrow now, or no more. */
static void find_all_borrowed(struct places *places)
{
    for (struct share_client *client = places->share.first; client; client = client->next)
        find_borrowed(places, place_of(client));
}

void places_made(struct places *places, struct place *place, struct partition *partition)
{
    pthread_mutex_lock(&places->lock);
    bool wanted =
        !place->next && !place->settled && !place->making && !share_set_empty(&place->share.now);
    if (!partition) {
        if (wanted)
            queue_make(places, place);
    } else if (wanted && share_set_same(&partition->atoms, &place->share.now)) {
        place->next = partition;
        places->notice.changed(places->notice.context, place);
    } else {
        partition_put(places->partitions, partition);
    }
    pthread_mutex_unlock(&places->lock);
}

/* ---- clients ---- */

int place_add(struct places *places, struct place *place, uint32_t request, uint32_t limit,
              char *why, size_t why_size)
{
    pthread_mutex_lock(&places->lock);
    int result = share_add(&places->share, &place->share, request, limit, why, why_size);
    if (result == 0) {
        aim_all(places);
        find_all_borrowed(places);
    }
    pthread_mutex_unlock(&places->lock);
    return result;
}

int place_update(struct places *places, struct place *place, uint32_t request, uint32_t limit,
                 char *why, size_t why_size)
{
    pthread_mutex_lock(&places->lock);
    int result = share_update(&places->share, &place->share, request, limit, why, why_size);
    if (result == 0) {
        aim_all(places);
        find_all_borrowed(places);
    }
    pthread_mutex_unlock(&places->lock);
    return result;
}

void place_tell(struct places *places, struct place *place)
{
    pthread_mutex_lock(&places->lock);
    places->notice.changed(places->notice.context, place);
    pthread_mutex_unlock(&places->lock);
}

void place_remove(struct places *places, struct place *place)
{
    pthread_mutex_lock(&places->lock);
    if (place->share.present) {
        share_remove(&places->share, &place->share);
        leave_quiet(places, place);
        forget_make(places, place);
        drop_next(places, place);
        aim_all(places);
        find_all_borrowed(places);
    }
    pthread_mutex_unlock(&places->lock);
}

void place_quiet(struct places *places, struct place *place, uint64_t now)
{
    pthread_mutex_lock(&places->lock);
    if (place->working && !place->quiet) {
        place->quiet = true;
        place->quiet_since = now;
        place->quiet_next = NULL;
        place->quiet_previous = places->quiet_last;
        *(places->quiet_last ? &places->quiet_last->quiet_next : &places->quiet_first) = place;
        places->quiet_last = place;
        find_steady(place);
    }
    pthread_mutex_unlock(&places->lock);
}

uint64_t places_tick(struct places *places, uint64_t now)
{
    uint64_t next = PLACE_NEVER;
    struct place *place;
    pthread_mutex_lock(&places->lock);
    while (next == PLACE_NEVER && (place = places->quiet_first)) {
        if (now < place->quiet_since + PLACE_LINGER_NS) {
            next = place->quiet_since + PLACE_LINGER_NS;
            continue;
        }
        leave_quiet(places, place);
        place->working = false;
        share_idle(&places->share, &place->share);
        aim_all(places);
    }
    pthread_mutex_unlock(&places->lock);
    return next;
}

static void take_back(struct places *places, struct place *place)
{
    leave_quiet(places, place);
    if (place->working)
        return;
    place->working = true;
    share_wants(&places->share, &place->share);
    aim_all(places);
}

static bool move(struct places *places, struct place *place, struct partition **to)
{
    if (!place->next)
        return false;
    *to = place->next;
    place->next = NULL;
    place->at = (*to)->atoms;
    place->settled = true;
    find_borrowed(places, place);
    return true;
}

static enum place_answer answer(struct places *places, struct place *place, struct partition **to)
{
    if (place->settled)
        return PLACE_STAY;
    if (move(places, place, to))
        return PLACE_MOVE;
    bool somewhere = !share_set_empty(&place->share.now) && !share_set_empty(&place->at);
    return somewhere && share_may_use(&places->share, &place->share, &place->at) ? PLACE_STAY
                                                                                 : PLACE_HOLD;
}

enum place_answer place_enter(struct places *places, struct place *place, struct partition **to,
                              uint64_t now)
{
    if (__atomic_load_n(&place->steady, __ATOMIC_RELAXED))
        return PLACE_STAY;
    pthread_mutex_lock(&places->lock);
    take_back(places, place);
    enum place_answer said = answer(places, place, to);
    if (said == PLACE_HOLD && !place->held_since)
        place->held_since = now;
    if (said != PLACE_HOLD && place->held_since) {
        place->held_ns += now - place->held_since;
        place->held_since = 0;
    }
    find_steady(place);
    pthread_mutex_unlock(&places->lock);
    return said;
}

enum place_answer place_settle(struct places *places, struct place *place, struct partition **to)
{
    pthread_mutex_lock(&places->lock);
    enum place_answer said = place->settled            ? PLACE_STAY
                             : move(places, place, to) ? PLACE_MOVE
                                                       : PLACE_HOLD;
    find_steady(place);
    pthread_mutex_unlock(&places->lock);
    return said;
}

void place_look(struct places *places, const struct place *place, uint64_t now,
                struct place_view *view)
{
    pthread_mutex_lock(&places->lock);
    const struct share *share = &places->share;
    /* A remainder that the driver does not let join other atoms is counted with the whole alone. */
    uint32_t has = share_multiprocessors(share, &place->share.now);
    uint32_t most = share_most(share, &place->share);
    *view = (struct place_view){
        .multiprocessors = has == share->total ? places->partitions->total : has,
        .most = most == share->total ? places->partitions->total : most,
        .atoms = place->share.now,
        .held_since = place->held_since,
        .held_ns = place->held_ns + (place->held_since ? now - place->held_since : 0),
    };
    pthread_mutex_unlock(&places->lock);
}
