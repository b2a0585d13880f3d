/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * scheduler: decides which clients may hand work to one GPU now, and how much.
 *
 * It decides and does nothing else. It has no clock, no thread and no memory of its own, and makes
 * no system call. Times are nanoseconds on any clock that does not go back. The same sequence of
 * calls gives the same answers. One thread at a time may call; the worker's gate has a lock for
 * that.
 *
 * MODES
 *   concurrent  All clients run at once. Time fractions are kept but not enforced, and
 *               the client is told so (scheduler_time_enforced). Only `duty` binds: a
 *               client's own device time, as scheduler_charge reports it, is held to
 *               that fraction. While kernels fill the device, each account has an equal
 *               part of it (server/scheduler/balance.h).
 *   strict      One client at a time, for a lease. A client with a time request gets
 *               exactly that. The rest of the time stays idle, or goes to clients
 *               without a request.
 *   fair        One client at a time, for a lease. Each client gets at least its
 *               request. Time that no request claims goes in equal parts to the clients
 *               that want it, each up to its limit.
 *   turns       One client at a time on the whole GPU, for a quantum, first come first
 *               served by account. A turn is its account's: another of the account's clients
 *               goes on with it when one has nothing to do. For a pause of a tenth of the
 *               quantum others are guests, as below. After a longer one the turn is over.
 *
 * A PLAN (strict, lease 250 ms, precision 5 %: 5 s, 20 leases; a 50 %, b 33 %, c 10 %)
 *
 *   0    250   500   750  1000  1250  1500  1750  2000  2250 2273   2523   2773   3023
 *   |  a  |  b  |  a  |  c  |  a  |  b  |  a  |  b  |  a  | idle |  b   |  a   |  c   | ...
 *
 *   In the first plan: a has ten leases, 2500 ms. b has seven, 1750 ms, and waits for that at the
 *   beginning of the next one. c has two, 500 ms.
 *
 * The order follows from credit. A client's credit grows by its request for as long as the client
 * has work, and its leases are charged to it. A lease begins only with a credit of 0 or more.
 *
 * It goes to the client whose request will have paid for it first. This is "earliest eligible
 * virtual deadline first" (Stoica and Abdel-Wahab, 1995). No client is ahead of its request, or
 * behind it, by much more than one lease, and its leases are spread over the plan.
 *
 * A lease by request is no longer than the client's share of one plan, so even one per cent comes
 * once in each plan. It is no shorter than a tenth of a lease, or 5 ms if that is less. Credit is
 * kept to the ten-thousandth of a nanosecond, so nothing is lost by rounding.
 *
 *   Worked: 0.05 % of 5 s is 2.5 ms, shorter than the shortest lease: one of 5 ms every two plans.
 *
 * PAUSES. A client without work earns no credit. While it pauses, a credit above 0 lapses as if the
 * client had the device: a client that had the device for itself would have lost that time, too. So
 * a client that computes and pauses in turns is owed its request of what it would have alone.
 *
 * After a tenth of a plan without work it is owed nothing. It begins again with a credit of 0, as a
 * client that arrives does, or with what it still owes.
 *
 * A client that pauses for a moment would find the device taken by a lease each time it comes back.
 * So when it could be owed more than 4/9 of a lease by then, others are its guests: they get its
 * time with little work in flight, and their lease ends when it has work again. A client whose
 * kernels would make it wait too long gets no lease in its pause.
 *
 * CHARGES. In strict, fair and turns a lease is charged for the time from its beginning until the
 * last of its work is done. No other client begins before that. A kernel cannot be stopped, so a
 * lease may end late: the overrun is charged too, and becomes debt. Debt shrinks by the client's
 * request, with or without a lease. Until it is paid, the client gets no lease by its request.
 *
 * No work is accepted after a lease's end, however much was submitted just before, and the end is
 * never put off. A client that submits a long kernel at the last moment pays for all of it.
 *
 *   Worked: request 10 %, lease 250 ms, a kernel of 300 ms begun at its end: 550 ms are
 *   charged; the next lease begins 5.5 s after this one did instead of 2.5 s.
 *
 * A client that has nothing to do gives its lease back after a moment (idle_ns), and is charged for
 * the time until then.
 *
 * IDLE TIME is counted apart from requests, as one sum for each account. The account with the
 * smallest sum is next, and of its clients the one that had least of the account's time. An account
 * or a client that comes back from idleness starts with the sum that the others have reached.
 *
 * ACCOUNTS. A client is scheduled in an account: a user's, for instance. Idle time is divided among
 * accounts, turns go round by account, and an account may have a request and a limit of its own
 * (server/scheduler/account.h). Where the text above speaks of a client with a request, that is
 * also an account with a request, for all of its clients that have none.
 *
 * LEASE GROUPS. Leases and partitions combine. Clients whose multiprocessors overlap, directly or
 * through others, form a lease group, and each lease group has a lease of its own. Clients of
 * different lease groups run at once. A time fraction is a fraction of the lease group's time. If y
 * overlaps both x and z, the three form one lease group and run one at a time, even though x and z
 * don't overlap.
 *
 * In strict and fair mode the requests within a lease group must not come to more than 1. The other
 * modes accept any requests, and can't be left for strict or fair while a sum is above 1.
 *
 * IN-FLIGHT LIMITS. Commands that are in flight can't be called back, so their number bounds how
 * soon any decision takes effect. A client may have at most `in_flight_limit` commands in flight,
 * and no more than the device finishes in in_flight_limit_ns at the client's recent pace.
 *
 * Two commands are always allowed for each of its queues that has work, and no more than that while
 * the pace is unknown. A lease begins with two commands, because the pace of an earlier lease says
 * nothing of those of this one, and with one if commands took longer than in_flight_limit_ns. Each
 * of its first SCHEDULER_TESTED_ENOUGH that is done makes room for one more.
 *
 * In concurrent mode a queue gets its two even where the client's other queues have taken all that
 * the limit allows, since work of one queue may take any time, or never end. Of all queues these
 * few together are no more than in_flight_limit, or quiet_in_flight_limit where that binds.
 *
 * While the client is on multiprocessors that another client may want back at any moment, the limit
 * in time is halved, and one command is always allowed for all of its queues together.
 *
 * Near the end of a lease a client may have only as many commands in flight as will have begun by
 * then, judged by the longest of its recent commands. So an overrun is seldom more than one kernel.
 *
 * In strict and fair mode all commands in flight but one are judged by struct scheduler_pair, too,
 * and then end a quarter of a lease after the lease at the latest. A client without limits that is
 * alone is exempt.
 *
 * In fair mode and turns, while no other client of the lease group has work, the limit in time is
 * four times as long, so that a busy processor does not idle the device. It looks a tenth of a
 * lease beyond the lease's end, and 1 ms at least.
 *
 * PRIORITY binds in concurrent mode, where clients meet on the device. Level 0 is the most urgent;
 * levels go up to SCHEDULER_LEVELS - 1. A level counts as busy while a client of it has work, or
 * had some within the last linger_ns. While a level is busy, all clients of less urgent levels
 * together may have no more than W = max(low_in_flight_limit, low_ns / mean duration of the asking
 * client's commands) commands in flight.
 *
 * So a launch at a busy level waits for at most W commands of less urgent ones: with the defaults
 * for one kernel, or for 100 us of short ones. The first launch after linger_ns of silence may find
 * more. Each client that is less urgent than some connected client has at most
 * quiet_in_flight_limit commands in flight.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_SCHEDULER_H
#define GPUSHARE_SERVER_SCHEDULER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/list.h"
#include "protocol.h"
#include "server/scheduler/account.h"
#include "server/scheduler/claim.h"
#include "server/scheduler/debts.h"
#include "server/scheduler/plan.h"
#include "server/scheduler/sm/sm_allocation.h"

#define SCHEDULER_NEVER PLAN_NEVER

enum {
    SCHEDULER_LEVELS = 1024,
    /* commands in flight for each queue with work, unless it borrows; see IN-FLIGHT LIMITS */
    SCHEDULER_IN_FLIGHT_MIN = 2,
    /* commands of a lease that tell how long its others may be */
    SCHEDULER_TESTED_ENOUGH = 8,
    SCHEDULER_LEASE_GROUPS = SM_GROUPS_MAX,
    SCHEDULER_WIDTH = 1024 /* of a client whose kernels fill its multiprocessors */
};

struct scheduler_schedule {
    enum proto_mode mode;
    uint64_t lease_ns;   /* 5 ms to 10 s */
    uint32_t precision;  /* hundredths of a per cent, 1 % to 50 % */
    uint64_t quantum_ns; /* the length of a turn: 5 ms to an hour */
    /* A lease without work ends after this time. 0 chooses: a 50th of a lease, 1 ms at most; in
     * turns a 600th of a quantum, which is 50 ms with the defaults. */
    uint64_t idle_ns;
    uint32_t in_flight_limit;       /* commands a client may have in flight, 1 or more */
    uint64_t in_flight_limit_ns;    /* 0: no bound in time */
    uint32_t quiet_in_flight_limit; /* see PRIORITY; 1 to in_flight_limit */
    uint32_t low_in_flight_limit;   /* see PRIORITY; 1 to quiet_in_flight_limit */
    uint64_t low_ns;
    uint64_t linger_ns;
};

/*
 * A client's limits as the scheduler enforces them, in hundredths of a per cent.
 *
 * This is not struct allowance. The scheduler stands below common/limits, and divides time alone;
 * what it is given is worked out (server/worker/control/control_limits.c): a duty stands for a
 * limit of threads where the device can't be divided. Nothing is unset here.
 */
struct scheduler_limits {
    uint32_t request; /* of the time, guaranteed; 0 to limit */
    uint32_t limit;   /* of the time, at most; 1 to PLAN_WHOLE */
    uint32_t duty;    /* of the time in concurrent mode; PLAN_WHOLE: no bound */
    uint32_t level;   /* of priority; 0 is the most urgent */
};

/* The accounts that a client counts in. */
struct scheduler_accounts {
    /* The first is the one that it is scheduled in; of the others the limits hold for it, too. */
    struct scheduler_account *of[PROTO_CLIENT_ACCOUNTS];
    uint32_t count;
};

/* Why a client with work has to wait. */
enum scheduler_hold {
    /* another client has the lease, or its own share is used up */
    SCHEDULER_HOLD_LEASE = PROTO_HOLD_LEASE,
    SCHEDULER_HOLD_DUTY = PROTO_HOLD_DUTY,         /* its duty is used up */
    SCHEDULER_HOLD_PRIORITY = PROTO_HOLD_PRIORITY, /* a more urgent level is busy */
    SCHEDULER_HOLDS                                /* how many the scheduler has; others follow */
};

struct scheduler_lease_group;
struct scheduler_client;

/* Two commands of a client that were both so long came within some dozen of each other. Kept for
 * the ten plans over which a client's share is promised, and for twenty at most. */
struct scheduler_pair {
    uint64_t last_ns;   /* the last long command, fading with each */
    uint64_t lately_ns; /* from begun_at on; the shorter of the two, less if they were far apart */
    uint64_t before_ns; /* of the ten plans and more before that */
    uint64_t begun_at;
};

/* A client, which lives in memory of the caller's. Zero it before scheduler_add. The caller
 * reads only the members under `for status`. */
struct scheduler_client {
    /* for status */
    struct scheduler_limits limits;
    uint64_t charged_ns; /* device time charged by leases; in concurrent mode as reported */
    uint64_t leases;     /* leases and turns that it had */
    /* How long it had work and had to wait, for each reason, before its present wait. */
    uint64_t throttled_ns[SCHEDULER_HOLDS];
    uint64_t mean_ns;   /* mean duration of its recent commands; 0: unknown */
    uint32_t in_flight; /* commands */
    bool wants;         /* has work to submit */
    /* set by the caller */
    uint32_t rings; /* how many of its queues have work; 0 counts as 1 */
    uint32_t width; /* how much of its multiprocessors one of its kernels fills, as far as is known:
                       1 to SCHEDULER_WIDTH; 0: all */
    bool borrows;   /* it runs on multiprocessors of another client's request */
    /* private */
    bool leased, on_extra, granted, present;
    bool guest;        /* its lease ends when a client comes back that is owed something or
                          whose account has the turn */
    bool ahead;        /* its account had more time than another one with work (balance.h) */
    bool low_turn;     /* named by scheduler_decide as the next of the lower levels */
    struct list *held; /* the list in which it waits, or NULL */
    uint64_t ticket;   /* order among clients with work; smaller is earlier */
    struct kept_place kept;
    struct scheduler_accounts accounts;
    struct scheduler_account self; /* its account, if it was given none */
    struct account_part part;
    struct list_link pausing_link; /* in its account's list of clients that pause */
    struct claim *pays;            /* that its present lease is charged to, unless on_extra */
    uint64_t arrived;
    uint64_t spends;  /* the debt that it may have now comes from device time since then */
    uint64_t peak_ns; /* the longest of its recent commands; older ones count less */
    uint64_t tested;  /* commands that are done in its lease */
    struct scheduler_pair pair;
    struct sm_group_set sm_groups;
    struct sm_group_set foreign; /* others' SM groups: some of them may be on loan to it */
    struct scheduler_lease_group *lease_group;
    struct list_link link;       /* in the list of all clients */
    struct list_link wants_link; /* in its lease group's list of clients with work */
    struct queue_link grant_link;
    struct list_link held_link;
    struct claim request;
    struct credit cap, duty;
    /* Its sum of its account's time, idle time and the account's request; and the sum with which
     * a client of the account comes back. */
    uint64_t extra_ns, account_floor_ns;
    uint64_t account_extra_ns; /* its account's sum of idle time in this lease group */
    uint64_t charged_to;
    uint64_t held_since;
};

/* In turns: the turn under way, or interrupted by a pause. That pause is not the claim's
 * (claim.h): it begins with the end of the work, before the lease is given back. */
struct scheduler_turn {
    const struct scheduler_account *account; /* NULL: none */
    uint64_t ends;
    uint64_t idle_since; /* since when its client had nothing to do */
};

struct scheduler_lease_group {
    struct sm_group_set sm_groups;
    /* The client that has the lease, or whose last work still runs. */
    struct scheduler_client *holder;
    struct list wants; /* clients with work, in the order of their tickets */
    uint32_t wants_count;
    uint32_t in_flight;  /* commands in flight of all its clients */
    uint64_t lease_ends; /* from then on no work is accepted */
    uint64_t idle_since; /* since when the holder has no work; SCHEDULER_NEVER: it has some */
    uint64_t look_at;    /* no client can get a lease before, unless one gets work */
    uint64_t extra_ns;   /* the sum of idle time with which an account comes back */
    uint64_t drained_at; /* in a pause: from then on nothing of the holder is in flight; or
                            SCHEDULER_NEVER */
    struct scheduler_turn turn;
    bool closing; /* the lease is over, and its work is still in flight */
    bool crowded; /* see balance.h */
};

struct scheduler {
    struct scheduler_schedule schedule;
    struct plan plan;
    uint64_t idle_ns;
    struct list clients;
    struct queue grants;      /* clients that scheduler_decide will name */
    struct list throttled;    /* clients that wait for their duty */
    uint64_t throttled_until; /* when the first of them may go on */
    struct list ahead;        /* clients that wait for other accounts (balance.h) */
    bool look_at_balance;     /* time was reported, or a client's work ended */
    /* clients that wait for room below the in-flight limit of lower levels, in order */
    struct list lower;
    /* Clients named for that room that have not asked for it yet: one at most. */
    uint32_t low_turns;
    uint64_t tickets;
    uint64_t sums; /* sums of requests that were counted */
    uint32_t client_count, lease_group_count;
    struct scheduler_lease_group lease_groups[SCHEDULER_LEASE_GROUPS];
    struct debts debts; /* the debts of clients that left */
    /* Of the scheduler, which then lets nobody submit. That clients have nothing to do is another
     * thing (claim.h). */
    bool paused;
    bool stops_between; /* scheduler_stop_between */
    bool between;       /* paused by that */
    uint32_t total_in_flight;
    uint32_t level_busy[SCHEDULER_LEVELS]; /* clients with work, or with commands in flight */
    uint32_t level_clients[SCHEDULER_LEVELS];
    uint32_t first_level; /* the most urgent level that any client has */
    uint32_t level_in_flight[SCHEDULER_LEVELS];
    uint64_t level_seen[SCHEDULER_LEVELS]; /* when it was last busy */
    uint64_t about[SCHEDULER_LEVELS / 64]; /* bitmap of levels that are busy, or were lately */
};

/* Sets the defaults: concurrent; lease 250 ms, precision 5 %, quantum 30 s; in-flight limits of
 * 128 commands (8 ms), 32 when quiet, and 1 (100 us) for lower levels; linger 1 s. */
void scheduler_defaults(struct scheduler_schedule *schedule);

/* 0, or INVALID_VALUE and a sentence that names the setting, its value and its range. */
uint32_t scheduler_check(const struct scheduler_schedule *schedule, struct error *why);

/* Initialises *scheduler with settings that scheduler_check accepts. There is nothing to close. */
void scheduler_open(struct scheduler *scheduler, const struct scheduler_schedule *schedule,
                    uint64_t now);

/*
 * Changes the settings while work is in flight. Present leases end now, and their clients get
 * others. Debt stays; credit stays too, unless the mode changes. A new plan begins.
 *
 * Returns 0, or INVALID_VALUE with a sentence in *why: for what scheduler_check refuses, and with
 * the arithmetic if the new mode enforces time, the old one did not, and the requests of a lease
 * group come to more than 1. Unless the result is 0, nothing has changed.
 */
uint32_t scheduler_set(struct scheduler *scheduler, const struct scheduler_schedule *schedule,
                       uint64_t now, struct error *why);

/*
 * Adds a client, which has no work yet. sm_groups: where it may run; NULL or empty for everywhere.
 * accounts: at least one, initialised by scheduler_account_open; NULL: it has an account of its
 * own. The client inherits the debts that other clients of its account left behind.
 *
 * Returns 0, or an error number with a sentence in *why: INVALID_VALUE for a limit out of range,
 * and NO_ROOM with the arithmetic if the mode enforces time and the requests of the client's lease
 * group would come to more than 1, or those of its account's clients to more than the account's
 * request. Unless the result is 0, nothing has changed. O(clients).
 */
uint32_t scheduler_add(struct scheduler *scheduler, struct scheduler_client *client,
                       const struct scheduler_limits *limits,
                       const struct scheduler_accounts *accounts,
                       const struct sm_group_set *sm_groups, uint64_t now, struct error *why);

/* Changes a client's limits, and moves it to other accounts, at least one; accounts: NULL for those
 * that it has. Returns as scheduler_add does. The client's lease, credit and debt stay; what its
 * former account's request owes it stays there. O(clients). */
uint32_t scheduler_update(struct scheduler *scheduler, struct scheduler_client *client,
                          const struct scheduler_limits *limits,
                          const struct scheduler_accounts *accounts, uint64_t now,
                          struct error *why);

/* Initialises an account without clients, without a request and without a limit. number: not 0.
 * name: for sentences; it stays the caller's. */
void scheduler_account_open(struct scheduler_account *account, uint64_t number, const char *name,
                            uint64_t now);

/*
 * Sets what the clients of an account may have of the time together, in hundredths of a per cent:
 * request 0 (none) to limit, limit 1 to PLAN_WHOLE. Returns 0, or an error number with a sentence
 * in *why: INVALID_VALUE for a value out of range, and where the mode enforces time with the
 * arithmetic, as scheduler_add does. Nothing has changed then. O(clients of the account x clients).
 */
uint32_t scheduler_account_set(struct scheduler *scheduler, struct scheduler_account *account,
                               uint32_t request, uint32_t limit, uint64_t now, struct error *why);

/* Sets the part of the time, 1 to PLAN_WHOLE (no bound), that all clients of an account may have
 * together in concurrent mode. */
void scheduler_account_set_duty(struct scheduler *scheduler, struct scheduler_account *account,
                                uint32_t duty, uint64_t now);

/* Whether a duty bounds the client: its own, or one of its accounts. */
bool scheduler_has_duty(const struct scheduler_client *client);

/* Says which SM groups belong to others (sm_allocation_foreign); before, none do. The client leaves
 * them when their owner has work, so its request of time is not summed with requests there. */
void scheduler_set_foreign(struct scheduler_client *client, const struct sm_group_set *foreign);

/* Says that the client runs on other SM groups from now on, because some were lent or taken
 * back. Sums of requests are not checked: while they come to more than 1, each client gets
 * proportionally less. Leases go on, unless lease groups are joined or split. O(clients). */
void scheduler_place(struct scheduler *scheduler, struct scheduler_client *client,
                     const struct sm_group_set *sm_groups, uint64_t now);

/* Removes a client. Commands that it has in flight are forgotten, so call it when they are done.
 * Its debts are kept for the account's other clients. Idempotent. */
void scheduler_remove(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now);

/* Whether time fractions bind in the present mode, which is strict or fair. In turns they have
 * no effect; in concurrent mode only `duty` binds. */
bool scheduler_time_enforced(const struct scheduler *scheduler);

/* ---- the hot path; a call is O(1), and where a lease passes on O(its group's clients with
 * work) ---- */

/* scheduler_wants: the client has work to submit. scheduler_idle: it has none any more. Work in
 * flight does not count as work here. Both are idempotent. */
void scheduler_wants(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now);
void scheduler_idle(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now);

struct scheduler_answer {
    /* Commands that the client may submit now. */
    uint32_t room;
    /* Without room: the reason. scheduler_decide names the client when it may go on.
     * SCHEDULER_HOLDS: the client waits for commands of its own. */
    enum scheduler_hold hold;
    /* With room: it lasts until then. Without: ask again then; SCHEDULER_NEVER: ask when commands
     * of this or another client are done. */
    uint64_t until;
};

/* Returns what the client may submit now. Call scheduler_wants before it. Within one visit a
 * caller that has submitted fewer than `room` commands need not ask again. */
struct scheduler_answer scheduler_may_submit(struct scheduler *scheduler,
                                             struct scheduler_client *client, uint64_t now);

/* Reports that the client submitted this many commands. They count even if they exceed the room. */
void scheduler_submitted(struct scheduler *scheduler, struct scheduler_client *client,
                         uint32_t commands, uint64_t now);

/* Reports that this many of the client's commands are done. Report it soon: the next lease
 * begins when the last one's work is done. */
void scheduler_done(struct scheduler *scheduler, struct scheduler_client *client, uint32_t commands,
                    uint64_t now);

/* Reports that the client has not submitted this many of the commands that were reported as
 * submitted: none of them has run, so they say nothing of the lengths of others. */
void scheduler_give_back(struct scheduler *scheduler, struct scheduler_client *client,
                         uint32_t commands, uint64_t now);

/* Reports the client's pace: this many commands (at least 1), one after the other, took span_ns. */
void scheduler_pace(struct scheduler_client *client, uint32_t commands, uint64_t span_ns);

/* Reports device time that the client used. In concurrent mode it is charged, and counts against
 * the client's duty; in other modes leases are charged instead, and this has no effect. */
void scheduler_charge(struct scheduler *scheduler, struct scheduler_client *client,
                      uint64_t device_ns, uint64_t now);

/*
 * A pause: the caller lets nobody submit, whatever the answers are. No lease ends or begins, and
 * nobody is named. Work in flight is charged as ever, to its own client; from when nothing of a
 * lease's client is in flight until scheduler_resume, its lease stands still and costs it nothing.
 */
void scheduler_pause(struct scheduler *scheduler, uint64_t now);
void scheduler_resume(struct scheduler *scheduler, uint64_t now);

/*
 * A pause that costs no client anything: when a lease has ended next, and nothing of any client is
 * in flight, no other begins: a pause has begun then, with scheduler->between set until
 * scheduler_resume. on: whether that is wanted; from then on, or not any more.
 */
void scheduler_stop_between(struct scheduler *scheduler, bool on);

/* When the next change by time alone is due: `now` if it is due already, SCHEDULER_NEVER if
 * there is none. O(lease groups). */
uint64_t scheduler_next_event(const struct scheduler *scheduler, uint64_t now);

/*
 * Ends leases that are over and begins leases that can begin. Each call names one client that may
 * submit now and could not before; NULL when there is no more. Call it, until it returns NULL, at
 * the next event and, while any client waits, after the calls above: leases change hands in those
 * too.
 */
struct scheduler_client *scheduler_decide(struct scheduler *scheduler, uint64_t now);

/* The device time charged to the client, its present lease included; and the time that it has
 * waited for one reason, its present wait included. Both up to `now`. */
uint64_t scheduler_charged(const struct scheduler *scheduler, const struct scheduler_client *client,
                           uint64_t now);
uint64_t scheduler_throttled(const struct scheduler *scheduler,
                             const struct scheduler_client *client, enum scheduler_hold hold,
                             uint64_t now);

/* The number of commands that a client may have in flight by the in-flight limits. Commands that
 * are in flight count. alone: it has the lease, and no other client waits for one. */
uint32_t policy_in_flight_limit(const struct scheduler_schedule *schedule,
                                const struct scheduler_client *client, bool alone);

/* Commands that a client which has as many in flight as it may can add nevertheless: `lacking` are
 * those that its queues with work lack for SCHEDULER_IN_FLIGHT_MIN each. See IN-FLIGHT LIMITS. */
uint32_t scheduler_least_room(const struct scheduler *scheduler,
                              const struct scheduler_client *client, uint32_t lacking);

/* ---- priority ---- */

/* The device's stream priority for a level, when `levels` levels are in use. Level 0 gets
 * `greatest`, which is the smaller number; level levels - 1 gets `least`. The others lie evenly
 * between, rounded towards greatest. With one level the result is greatest. */
int32_t scheduler_stream_priority(uint32_t level, uint32_t levels, int32_t greatest, int32_t least);

/* W of PRIORITY above, for a client whose commands have this mean duration (0: unknown). */
uint32_t policy_concurrent_low_limit(const struct scheduler_schedule *schedule, uint64_t mean_ns);

#endif
