/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/quiet.h"

#include "common/units.h"
#include "common/util.h"
#include "server/scheduler/lateness.h"

/* Time that windows did not take is saved up for so long: then several calls that come at once need
 * not wait for one another's share. */
#define SAVED_NS (2000 * UNITS_MS)
/* The share holds over any time of this length, whatever was saved up before it. */
#define SPAN_NS (20000 * UNITS_MS)
/* How often a scene is looked at that changes without anybody saying so: often enough that waiting
 * is not seen in what a load takes; a thread that looks once a millisecond costs nothing. */
#define LOOK_NS UNITS_MS
/* Clients that are back after a recovery have the device for this part of each of its windows:
 * longer, and those that wait for their objects would have nothing for a second; shorter, and a
 * kernel of a millisecond would find no room. */
#define RESTORE_REST 3

void quiet_defaults(struct quiet_settings *settings)
{
    *settings = (struct quiet_settings){
        .limit_ns = 500 * UNITS_MS, .patience_ns = 1000 * UNITS_MS, .share_percent = 5};
}

static int64_t earned_in(const struct quiet *quiet, uint64_t ns)
{
    return (int64_t)(ns / 100 * quiet->settings.share_percent);
}

void quiet_begin(struct quiet *quiet, const struct quiet_settings *settings, uint64_t now)
{
    *quiet = (struct quiet){.settings = *settings, .looked_at = now, .next = QUIET_NEVER};
    quiet->credit = earned_in(quiet, SAVED_NS);
}

void quiet_set_limit(struct quiet *quiet, uint64_t limit_ns)
{
    quiet->settings.limit_ns = limit_ns;
}

static uint32_t count_debtors(const struct quiet *quiet)
{
    uint32_t debtors = 0;
    for (uint32_t i = 0; i < QUIET_USERS; i++)
        debtors += quiet->debts[i] > 0;
    return debtors;
}

/* The time that the user's windows may still take: its part of the savings, less its debt. */
static int64_t credit_of(const struct quiet *quiet, uint32_t user)
{
    uint32_t sharers = count_debtors(quiet) + (quiet->debts[user] <= 0);
    return earned_in(quiet, SAVED_NS) / sharers - quiet->debts[user];
}

/* All wait for what a user may take, and nobody else for what it takes beyond that. */
static void charge_loss(struct quiet *quiet, uint64_t lost)
{
    if (quiet->restores) {
        quiet->taken_ns += lost;
        return;
    }
    int64_t right = max(credit_of(quiet, quiet->payer), INT64_C(0));
    quiet->taken_ns += lost;
    quiet->credit -= min((int64_t)lost, right);
    quiet->debts[quiet->payer] += (int64_t)lost;
}

static void pay_debts(struct quiet *quiet, int64_t earned)
{
    uint32_t debtors = count_debtors(quiet);
    for (uint32_t i = 0; debtors && i < QUIET_USERS; i++)
        quiet->debts[i] = max(quiet->debts[i] - earned / debtors, INT64_C(0));
}

/* The time since the last look: windows earn their part of it; of an attempt it costs what clients
 * that have nothing left on the device could have used. */
static void settle_credit(struct quiet *quiet, uint32_t working, uint64_t now)
{
    uint64_t looked = quiet->looked_at, span = now - looked;
    quiet->looked_at = now;
    int64_t earned = earned_in(quiet, span) / 100 * (int64_t)(100 - 100 * SAVED_NS / SPAN_NS);
    quiet->credit = min(quiet->credit + earned, earned_in(quiet, SAVED_NS));
    pay_debts(quiet, earned);
    if (quiet->state < QUIET_DRAINING || quiet->worked == 0)
        return;
    /* An attempt is over at its end. A look that comes later was kept from it by a driver whose
     * call waited, and no window would pay for that in a minute. */
    uint64_t until = quiet->state == QUIET_DRAINING ? min(now, quiet->attempt_end) : now;
    uint64_t held = saturating_sub(until, looked);
    uint64_t lost = held / quiet->worked * (quiet->worked - min(working, quiet->worked));
    charge_loss(quiet, lost);
}

/* The client with the work that ends last; overdue work never seems to. NULL: there is none. */
static const struct quiet_work *find_last(const struct quiet_scene *scene)
{
    const struct quiet_work *last = NULL;
    for (uint32_t i = 0; i < scene->count; i++) {
        const struct quiet_work *work = &scene->works[i];
        if (!last || work->overdue > last->overdue ||
            (work->overdue == last->overdue && work->left_ns > last->left_ns))
            last = work;
    }
    return last;
}

static const struct quiet_work *find_more_urgent(const struct quiet_scene *scene)
{
    for (uint32_t i = 0; i < scene->count; i++)
        if (scene->works[i].level < scene->level)
            return &scene->works[i];
    return NULL;
}

/* The likely loss while the device drains: clients whose work ends early have to wait for
 * the last one. */
static int64_t likely_cost(const struct quiet_scene *scene)
{
    uint64_t last = 0, lost = 0;
    for (uint32_t i = 0; i < scene->count; i++)
        last = max(last, scene->works[i].likely_ns);
    for (uint32_t i = 0; i < scene->count; i++)
        lost += (last - scene->works[i].likely_ns) / scene->count;
    return (int64_t)lost;
}

/* The most that one window of this user may lose while the device drains: at first a tenth of what
 * may still be taken, and more the longer the call has waited, since a better moment may come. */
static int64_t loss_allowed(const struct quiet *quiet, uint32_t user, uint64_t waited)
{
    int64_t credit = min(quiet->credit, credit_of(quiet, user));
    uint64_t patience = quiet->settings.patience_ns;
    uint64_t percent = waited < patience ? 10 + 90 * waited / patience : 100;
    return credit / 100 * (int64_t)percent;
}

static void wait_for(struct quiet *quiet, const struct quiet_work *work, uint64_t now)
{
    quiet->state = QUIET_WAITING;
    quiet->waits_for = work ? work->client : 0;
    quiet->next = now + LOOK_NS;
}

static void begin_drain(struct quiet *quiet, const struct quiet_scene *scene, uint64_t left,
                        uint64_t now)
{
    quiet->state = QUIET_DRAINING;
    quiet->worked = scene->between ? 1 : scene->count;
    quiet->payer = scene->user;
    quiet->restores = scene->restores;
    quiet->attempt = now;
    quiet->attempt_end = now + left + left / 2 + LATENESS_NS;
    quiet->waits_for = 0;
    quiet->next = now;
}

static void look_at_waiting(struct quiet *quiet, const struct quiet_scene *scene, uint64_t now)
{
    uint64_t waited = saturating_sub(now, scene->asked_at);
    bool patient = waited < quiet->settings.patience_ns;
    uint64_t bound = patient ? quiet->settings.limit_ns : max(quiet->settings.limit_ns, waited);
    const struct quiet_work *last = find_last(scene);
    const struct quiet_work *urgent = patient ? find_more_urgent(scene) : NULL;
    bool spent = !scene->restores &&
                 loss_allowed(quiet, scene->user, waited) < (patient ? likely_cost(scene) : 0);
    uint64_t again = scene->restores ? max(quiet->again, quiet->restore_again) : quiet->again;
    quiet->width = !last ? QUIET_WIDE : patient ? QUIET_SHORT : QUIET_SINGLE;
    if (!last && spent && (scene->between || now - quiet->busy < QUIET_IDLE_NS))
        wait_for(quiet, NULL, now);
    else if (!last)
        begin_drain(quiet, scene, 0, now);
    else if (last->overdue || last->left_ns > bound)
        wait_for(quiet, last, now);
    else if (urgent || spent || now < again)
        wait_for(quiet, urgent ? urgent : last, now);
    else
        begin_drain(quiet, scene, last->left_ns, now);
}

static void look_at_draining(struct quiet *quiet, const struct quiet_scene *scene, uint64_t now)
{
    if (scene->count == 0 && !scene->others) {
        quiet->state = QUIET_OPEN;
        quiet->windows++;
        quiet->width = QUIET_WIDE;
        quiet->next = QUIET_NEVER;
        return;
    }
    quiet->next = quiet->attempt_end;
    if (now < quiet->attempt_end)
        return;
    quiet->failed++;
    quiet->restores = false;
    quiet->again = now + (quiet->attempt_end - quiet->attempt);
    wait_for(quiet, find_last(scene), now);
}

void quiet_look(struct quiet *quiet, const struct quiet_scene *scene, uint64_t now)
{
    settle_credit(quiet, scene->count, now);
    if (scene->count)
        quiet->busy = now;
    if (quiet->state == QUIET_OPEN)
        return;
    if (!scene->asked) {
        quiet->state = QUIET_RESTING;
        quiet->width = QUIET_WIDE;
        quiet->waits_for = 0;
        quiet->next = QUIET_NEVER;
    } else if (quiet->state == QUIET_DRAINING) {
        look_at_draining(quiet, scene, now);
    } else {
        look_at_waiting(quiet, scene, now);
    }
}

/* Whether one user's turn is before the other's; both ask. */
static bool goes_before(const struct quiet *quiet, const struct quiet_asker *askers, uint32_t one,
                        uint32_t other)
{
    if (askers[one].restores != askers[other].restores)
        return askers[one].restores;
    bool has_credit = credit_of(quiet, one) > 0, other_has = credit_of(quiet, other) > 0;
    if (has_credit != other_has)
        return has_credit;
    if (askers[one].level != askers[other].level)
        return askers[one].level < askers[other].level;
    if (quiet->debts[one] != quiet->debts[other])
        return quiet->debts[one] < quiet->debts[other];
    return askers[one].asked_at < askers[other].asked_at;
}

uint32_t quiet_choose(const struct quiet *quiet, const struct quiet_asker *askers)
{
    uint32_t best = QUIET_USERS;
    for (uint32_t i = 0; i < QUIET_USERS; i++)
        if (askers[i].asked_at != QUIET_NEVER &&
            (best == QUIET_USERS || goes_before(quiet, askers, i, best)))
            best = i;
    return best;
}

void quiet_made(struct quiet *quiet, uint32_t user, uint64_t now)
{
    uint32_t payer = quiet->payer;
    quiet->payer = user;
    settle_credit(quiet, 0, now);
    quiet->payer = payer;
}

void quiet_end(struct quiet *quiet, uint64_t wanted, uint64_t now)
{
    settle_credit(quiet, 0, now);
    if (quiet->worked == 0)
        charge_loss(quiet, saturating_sub(now, wanted));
    if (quiet->restores)
        quiet->restore_again = now + (now - quiet->attempt) / RESTORE_REST;
    quiet->restores = false;
    quiet->state = QUIET_RESTING;
    quiet->worked = 0;
    quiet->next = now;
}
