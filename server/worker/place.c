/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/place.h"

#include <string.h>

static struct place *place_of(struct share_client *client)
{
    return (struct place *)((char *)client - offsetof(struct place, share));
}

int places_open(struct places *places, struct partitions *partitions)
{
    memset(places, 0, sizeof *places);
    places->partitions = partitions;
    /* share.h counts whole atoms; the remainder lies behind them. */
    return share_open(&places->share, partitions->count - (partitions->remainder ? 1 : 0),
                      partitions->atom_size, partitions->remainder);
}

/* ---- queues ---- */

static void name(struct places *places, struct place *place)
{
    if (place->named)
        return;
    place->named = true;
    place->named_next = NULL;
    *(places->named_last ? &places->named_last->named_next : &places->named_first) = place;
    places->named_last = place;
}

struct place *places_named(struct places *places)
{
    struct place *place = places->named_first;
    if (!place)
        return NULL;
    places->named_first = place->named_next;
    if (!places->named_first)
        places->named_last = NULL;
    place->named = false;
    return place;
}

static void queue_make(struct places *places, struct place *place)
{
    if (place->making)
        return;
    place->making = true;
    place->make_next = NULL;
    *(places->make_last ? &places->make_last->make_next : &places->make_first) = place;
    places->make_last = place;
}

struct place *places_to_make(struct places *places, struct share_set *atoms)
{
    struct place *place = places->make_first;
    if (!place)
        return NULL;
    places->make_first = place->make_next;
    if (!places->make_first)
        places->make_last = NULL;
    place->making = false;
    *atoms = place->share.now;
    return place;
}

static void forget_named(struct places *places, struct place *place)
{
    struct place *before = NULL, *at = places->named_first;
    if (!place->named)
        return;
    for (; at != place; at = at->named_next)
        before = at;
    *(before ? &before->named_next : &places->named_first) = place->named_next;
    if (places->named_last == place)
        places->named_last = before;
    place->named = false;
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

static void drop_next(struct places *places, struct place *place)
{
    if (place->next)
        partition_put(places->partitions, place->next);
    place->next = NULL;
}

static void find_borrowed(struct places *places, struct place *place)
{
    struct share_set both = place->share.now;
    share_set_join(&both, &place->at);
    place->borrows = share_borrows(&places->share, &place->share, &both);
}

/* The atoms of a place are others now. */
static void aim(struct places *places, struct place *place)
{
    drop_next(places, place);
    forget_make(places, place);
    bool nowhere = share_set_empty(&place->share.now);
    place->settled = !nowhere && share_set_same(&place->share.now, &place->at);
    find_borrowed(places, place);
    name(places, place);
    if (place->settled || nowhere)
        return;
    place->next = partition_find(places->partitions, &place->share.now);
    if (!place->next)
        queue_make(places, place);
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
    bool wanted = !place->next && !place->settled && !place->making;
    if (!partition) {
        if (wanted && !share_set_empty(&place->share.now))
            queue_make(places, place);
        return;
    }
    if (!wanted || !share_set_same(&partition->atoms, &place->share.now)) {
        partition_put(places->partitions, partition);
        return;
    }
    place->next = partition;
    name(places, place);
}

/* ---- clients ---- */

int place_add(struct places *places, struct place *place, uint32_t request, uint32_t limit,
              char *why, size_t why_size)
{
    int result = share_add(&places->share, &place->share, request, limit, why, why_size);
    if (result)
        return result;
    aim_all(places);
    /* share.h names those whose atoms changed; this one never had any. */
    if (!place->next && !place->making)
        aim(places, place);
    find_all_borrowed(places);
    return 0;
}

int place_update(struct places *places, struct place *place, uint32_t request, uint32_t limit,
                 char *why, size_t why_size)
{
    int result = share_update(&places->share, &place->share, request, limit, why, why_size);
    if (result)
        return result;
    aim_all(places);
    find_all_borrowed(places);
    return 0;
}

void place_remove(struct places *places, struct place *place)
{
    if (!place->share.present)
        return;
    share_remove(&places->share, &place->share);
    leave_quiet(places, place);
    forget_named(places, place);
    forget_make(places, place);
    drop_next(places, place);
    aim_all(places);
    find_all_borrowed(places);
}

void place_work(struct places *places, struct place *place)
{
    leave_quiet(places, place);
    if (place->working)
        return;
    place->working = true;
    share_wants(&places->share, &place->share);
    aim_all(places);
}

void place_quiet(struct places *places, struct place *place, uint64_t now)
{
    if (!place->working || place->quiet)
        return;
    place->quiet = true;
    place->quiet_since = now;
    place->quiet_next = NULL;
    place->quiet_previous = places->quiet_last;
    *(places->quiet_last ? &places->quiet_last->quiet_next : &places->quiet_first) = place;
    places->quiet_last = place;
}

uint64_t places_tick(struct places *places, uint64_t now)
{
    struct place *place;
    while ((place = places->quiet_first)) {
        uint64_t due = place->quiet_since + PLACE_LINGER_NS;
        if (now < due)
            return due;
        leave_quiet(places, place);
        place->working = false;
        share_idle(&places->share, &place->share);
        aim_all(places);
    }
    return PLACE_NEVER;
}

static enum place_answer answer(struct places *places, struct place *place, struct partition **to)
{
    if (place->settled)
        return PLACE_STAY;
    if (place->next) {
        *to = place->next;
        place->next = NULL;
        place->at = (*to)->atoms;
        place->settled = true;
        find_borrowed(places, place);
        return PLACE_MOVE;
    }
    bool somewhere = !share_set_empty(&place->share.now) && !share_set_empty(&place->at);
    return somewhere && share_may_use(&places->share, &place->share, &place->at) ? PLACE_STAY
                                                                                 : PLACE_HOLD;
}

enum place_answer place_enter(struct places *places, struct place *place, struct partition **to,
                              uint64_t now)
{
    if (place->settled && !place->held_since)
        return PLACE_STAY;
    enum place_answer said = answer(places, place, to);
    if (said == PLACE_HOLD && !place->held_since)
        place->held_since = now;
    if (said != PLACE_HOLD && place->held_since) {
        place->held_ns += now - place->held_since;
        place->held_since = 0;
    }
    return said;
}

uint32_t place_has(const struct places *places, const struct place *place)
{
    uint32_t has = share_multiprocessors(&places->share, &place->share.now);
    return has == places->share.total ? places->partitions->total : has;
}

uint32_t place_most(const struct places *places, const struct place *place)
{
    uint32_t most = share_most(&places->share, &place->share);
    return most == places->share.total ? places->partitions->total : most;
}
