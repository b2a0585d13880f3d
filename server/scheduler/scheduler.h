/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * scheduler: decides which clients may hand work to one GPU now, and how much.
 *
 * It decides and does nothing else: it has no clock, no thread and no memory of its
 * own, and makes no call. Times are nanoseconds on any clock that does not go back.
 * The same calls give the same answers. One thread at a time; the worker's gate has a lock for it.
 *
 * MODES
 *   concurrent  Everybody at once. Time fractions are kept but not enforced (tell the
 *               client: scheduler_time_enforced). Only `duty` binds: a client's own
 *               device time, as scheduler_charge reports it, is held to that fraction.
 *   strict      One client at a time, for a lease. A client with a time request gets
 *               exactly that; the rest of the time is idle, or goes to clients without one.
 *   fair        One client at a time, for a lease. Everybody gets at least its request;
 *               time that nobody has a claim to goes in equal parts to those that want
 *               it, each up to its limit.
 *   turns       One client at a time on the whole GPU, for a quantum, first come first
 *               served; a turn ends early when its client has nothing to do.
 *
 * A PLAN (strict, lease 250 ms, precision 5 %: 5 s, 20 leases; a 50 %, b 33 %, c 10 %)
 *
 *   0    250   500   750  1000  1250        1750  2000   2272.7      4500  4750  4900 5000
 *   |  a  |  b  |  c  |  a  |  b  |  a     a  |  b  |  a  ||  b  | ... |  a  | b  | idle |
 *                                                                            150 ms
 *   a: 2500 ms, ten leases. b: 1650 ms, six leases and one of 150 ms. c: 500 ms, two.
 *   idle: 350 ms.
 *
 * The order follows from credit: a client's credit grows by its request all the time
 * that it has work, and what its leases take is charged to it. A lease begins only
 * with credit 0 or more, and goes to the client that has waited longest for its share (credit
 * / request), so leases are spread over the plan and everybody waits its turn only.
 * No lease of a request is longer than the client's share of one plan, so even one per
 * cent comes once a plan, and none is shorter than a tenth of a lease (5 ms at most). In
 * strict mode none is longer than what is left of the client's share of this plan, so at
 * its end nobody is above its share; what is left below the shortest lease is carried
 * over into the next plan, to the ten-thousandth of a nanosecond.
 *
 *   Worked: 33 % of lease 5 ms, precision 5 % (plan 100 ms): 33 ms = 6 leases and 3 ms.
 *   1/3 cannot be written; 33.33 % of 5 s is 1666.5 ms: six leases, 166.5 ms.
 *   0.05 % of 5 s is 2.5 ms, shorter than the shortest lease: one of 5 ms every two plans.
 *
 * CHARGES. In strict, fair and turns a lease is charged the time from its beginning
 * until the last of its work is done, and nobody else begins before that. A kernel
 * cannot be stopped, so a lease may end late: the overrun is charged too, and makes
 * debt. Debt grows smaller by the client's request, lease or no lease; until it is
 * paid the client gets no lease of its request. No work is accepted after a lease's
 * end, however much was submitted just before it, and the end is never put off: who
 * submits a long kernel at the last moment pays for all of it.
 *   Worked: request 10 %, lease 250 ms, a kernel of 300 ms begun at its end: 550 ms are
 *   charged; the next lease begins 5.5 s after this one did instead of 2.5 s.
 * A client that has nothing to do gives its lease back after a moment (idle_ns) and is
 * charged for that much. Credit of a client with nothing to do grows to one lease at
 * most: idleness is not saved up, and not taken from others later.
 * A client that came mid-plan has what its fraction of the rest of the plan is.
 *
 * IDLE TIME is counted apart from requests, one sum a client: the smallest is next, and
 * who comes back from idleness starts where the others are.
 *
 * LEASE GROUPS. Leases and partitions combine: clients whose multiprocessors overlap, directly
 * or through others, form a lease group, and each lease group has a lease of its own; clients of
 * different lease groups run at once. A time fraction is one of the lease group's time. (Of clients
 * x, y, z of which x and z don't overlap but y overlaps both, one runs at a time.)
 * Requests within a lease group must not come to more than 1 in the modes that enforce them, strict
 * and fair; the others take any, and can't be left for these while a sum is above 1.
 *
 * IN-FLIGHT LIMITS. A client may have `in_flight_limit` commands in flight, and no more than the
 * device is done with in in_flight_limit_ns at the client's own recent pace, but always two for
 * each of its queues that has work, and no more while nothing is known of that pace: what is in
 * flight can't be called back, so it bounds how soon anything else takes effect. Half of that while
 * it is on multiprocessors that another client may want back at any moment. Near the end of a lease
 * it may have only as many as will have begun by then, by the longest of its recent commands: so
 * overrun is seldom more than one kernel. (In fair mode and turns, while nobody else has work: by a
 * tenth of a lease later, 1 ms at least.)
 *
 * PRIORITY binds in concurrent mode, where clients meet on the device. Level 0 is the most urgent;
 * any number up to SCHEDULER_LEVELS - 1. While a client of a level has work, or had some in the
 * last linger_ns, all clients of lower urgency together may have no more than W =
 * max(low_in_flight_limit, low_ns / mean duration of the asking client's commands) commands in
 * flight. So a launch at that level waits for at most W commands of lower ones: with the defaults
 * for one kernel, or for 100 us of short ones. The first launch after linger_ns of silence may find
 * what was in flight before it: at most quiet_in_flight_limit commands of each client that is less
 * urgent than somebody who is connected.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_SCHEDULER_H
#define GPUSHARE_SERVER_SCHEDULER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/list.h"
#include "protocol.h"
#include "server/scheduler/debts.h"
#include "server/scheduler/plan.h"
#include "server/scheduler/share.h"

#define SCHEDULER_NEVER PLAN_NEVER

enum {
    SCHEDULER_LEVELS = 1024,
    SCHEDULER_IN_FLIGHT_MIN = 2, /* commands in flight of a queue with work; see IN-FLIGHT LIMITS */
    SCHEDULER_LEASE_GROUPS = SHARE_SM_GROUPS_MAX
};

struct scheduler_settings {
    enum proto_mode mode;
    uint64_t lease_ns;              /* 5 ms to 10 s */
    uint32_t precision;             /* hundredths of a per cent, 1 % to 50 % */
    uint64_t quantum_ns;            /* of turns: 5 ms to an hour */
    uint64_t idle_ns;               /* a lease is given back after so long without work; 0 chooses:
                                       a 50th of a lease, 1 ms at most; a 600th of a quantum (50 ms) */
    uint32_t in_flight_limit;       /* commands a client may have in flight, 1 or more */
    uint64_t in_flight_limit_ns;    /* see IN-FLIGHT LIMITS; 0: no bound in time */
    uint32_t quiet_in_flight_limit; /* see PRIORITY; 1 to in_flight_limit */
    uint32_t low_in_flight_limit;   /* see PRIORITY; 1 to quiet_in_flight_limit */
    uint64_t low_ns;
    uint64_t linger_ns;
};

/* Fractions in hundredths of a per cent. */
struct scheduler_limits {
    uint32_t request; /* of the time; 0 to limit */
    uint32_t limit;   /* of the time; 1 to PLAN_WHOLE */
    uint32_t duty;    /* of the time in concurrent mode; 1 to PLAN_WHOLE, which is no bound */
    uint32_t level;   /* of priority */
};

/* Why a client with work has to wait. */
enum scheduler_hold {
    SCHEDULER_HOLD_LEASE = PROTO_HOLD_LEASE,       /* others' leases, or its share is used up */
    SCHEDULER_HOLD_DUTY = PROTO_HOLD_DUTY,         /* its duty is */
    SCHEDULER_HOLD_PRIORITY = PROTO_HOLD_PRIORITY, /* more urgent work is about */
    SCHEDULER_HOLDS                                /* how many the scheduler has; others follow */
};

struct scheduler_lease_group;
struct scheduler_client;

/* Lives in its owner, zeroed before scheduler_add. Read only what stands under `for status`. */
struct scheduler_client {
    /* for status */
    struct scheduler_limits limits;
    uint64_t charged_ns;                    /* by leases, or in concurrent mode as reported */
    uint64_t leases;                        /* that it got */
    uint64_t throttled_ns[SCHEDULER_HOLDS]; /* it had work and was not let, until it last was */
    uint64_t mean_ns;                       /* of its recent commands; 0 unknown */
    uint32_t in_flight;                     /* commands */
    bool wants;                             /* has work to submit */
    /* set by the caller */
    uint32_t rings; /* queues of it that have work; 0 counts as 1 */
    bool borrows;   /* it runs on multiprocessors that another client calls its own */
    /* private */
    bool leased, on_extra, granted, present;
    bool low_turn;     /* was named by scheduler_decide from the list of lower levels */
    struct list *held; /* where it waits, or NULL */
    uint64_t ticket;   /* orders clients with work */
    uint32_t owner;    /* scheduler_own's, called at: */
    uint64_t arrived;
    uint64_t spends;  /* when it began to have what it may owe now */
    uint64_t peak_ns; /* the longest of its recent commands, fading */
    struct share_set sm_groups;
    struct scheduler_lease_group *lease_group;
    struct list_link link;       /* of all */
    struct list_link wants_link; /* of the lease group's with work */
    struct queue_link grant_link;
    struct list_link held_link;
    struct credit request, cap, duty;
    uint64_t extra_ns; /* of idle time */
    uint64_t debt_ns;  /* of turns */
    uint64_t charged_to;
    uint64_t waits_since;
};

struct scheduler_lease_group {
    struct share_set sm_groups;
    struct scheduler_client *holder; /* has the lease, or its last work is still running */
    struct list wants;               /* clients with work, in the order of their tickets */
    uint32_t wants_count;
    uint32_t in_flight;  /* commands of all its clients */
    uint64_t lease_ends; /* no work is accepted from then on */
    uint64_t idle_since; /* the holder; SCHEDULER_NEVER while it has work */
    uint64_t look_at;    /* nobody may have a lease before, unless somebody gets work */
    uint64_t extra_ns;   /* where who comes back from idleness starts */
    bool closing;        /* the lease is over, work is in flight */
};

struct scheduler {
    struct scheduler_settings settings;
    struct plan plan;
    uint64_t idle_ns;
    struct list clients;
    struct queue grants;      /* for scheduler_decide */
    struct list throttled;    /* by duty */
    uint64_t throttled_until; /* the first of them may go on */
    struct list lower;  /* wait for room below the in-flight limit of lower levels, in order */
    uint32_t low_turns; /* named for that room, have not asked for it yet: one at most */
    uint64_t tickets;
    uint32_t client_count, lease_group_count;
    struct scheduler_lease_group lease_groups[SCHEDULER_LEASE_GROUPS];
    struct debts debts; /* of clients that left */
    uint32_t total_in_flight;
    uint32_t level_busy[SCHEDULER_LEVELS]; /* clients with work or in flight */
    uint32_t level_clients[SCHEDULER_LEVELS];
    uint32_t first_level; /* the most urgent of all clients' levels */
    uint32_t level_in_flight[SCHEDULER_LEVELS];
    uint64_t level_seen[SCHEDULER_LEVELS]; /* until when it was busy */
    uint64_t about[SCHEDULER_LEVELS / 64]; /* levels busy, or lately so */
};

/* concurrent, 250 ms, 5 %, 30 s, in-flight limits of 128 (8 ms), 32 and 1 (100 us), linger 1 s. */
void scheduler_defaults(struct scheduler_settings *settings);

/* 0, or INVALID_VALUE and a sentence that names the setting, its value and its range. */
uint32_t scheduler_check(const struct scheduler_settings *settings, struct error *why);

/* Settings that scheduler_check accepts. Nothing to close. */
void scheduler_open(struct scheduler *scheduler, const struct scheduler_settings *settings,
                    uint64_t now);

/*
 * Other settings, with work in flight. Leases that run end now (their clients get
 * others), debt stays, credit too unless the mode is another, a new plan begins. 0, or
 * INVALID_VALUE: with the arithmetic, into a mode that enforces time while a lease group's
 * requests come to more than 1; or what scheduler_check says. Unless 0, nothing changed.
 */
uint32_t scheduler_set(struct scheduler *scheduler, const struct scheduler_settings *settings,
                       uint64_t now, struct error *why);

/*
 * A client arrives, without work. SM groups: where it may run; NULL or empty: everywhere.
 * Returns 0, or INVALID_VALUE: with the arithmetic in words, or with the limit that is out of its
 * range. Unless 0, nothing changed.
 */
uint32_t scheduler_add(struct scheduler *scheduler, struct scheduler_client *client,
                       const struct scheduler_limits *limits, const struct share_set *sm_groups,
                       uint64_t now, struct error *why);

/* Right after scheduler_add: names the client's owner; 0: none. The client inherits what other
 * clients of this owner still owed when they left. */
void scheduler_own(struct scheduler *scheduler, struct scheduler_client *client, uint32_t owner,
                   uint64_t now);

/* Other limits for a client, as scheduler_add. Its lease, credit and debt stay. */
uint32_t scheduler_update(struct scheduler *scheduler, struct scheduler_client *client,
                          const struct scheduler_limits *limits, uint64_t now, struct error *why);

/* The client runs elsewhere from now on (SM groups were lent, or reclaimed). Sums are not checked:
 * where they come to more than 1 for a while, everybody gets proportionally less. Leases go on
 * unless lease groups are joined or split. O(clients). */
void scheduler_place(struct scheduler *scheduler, struct scheduler_client *client,
                     const struct share_set *sm_groups, uint64_t now);

/* It leaves; what it has in flight is forgotten, so call it when that is done. Idempotent. */
void scheduler_remove(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now);

/* Whether a time fraction binds in this mode (or only the memory's, in concurrent mode). */
bool scheduler_time_enforced(const struct scheduler *scheduler);

/* ---- the hot path: each O(1), but for the choice of a lease's client: the lease group's clients
 * with work, once a lease ---- */

/* The client has work that could be submitted; has none any more (work in flight does not
 * count). Idempotent. */
void scheduler_wants(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now);
void scheduler_idle(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now);

struct scheduler_answer {
    uint32_t room;            /* commands that may be submitted now */
    enum scheduler_hold hold; /* without room: why; scheduler_decide names the client when it may
                                 go on. SCHEDULER_HOLDS: it may when work of its own is done */
    uint64_t until; /* with room: no longer than that. Without: ask again then; SCHEDULER_NEVER:
                       when work of this or another client is done */
};

/* Call scheduler_wants first. A visit that submits less than `room` need not ask again. */
struct scheduler_answer scheduler_may_submit(struct scheduler *scheduler,
                                             struct scheduler_client *client, uint64_t now);

/* It submitted so many commands (counted even beyond what was allowed). */
void scheduler_submitted(struct scheduler *scheduler, struct scheduler_client *client,
                         uint32_t commands, uint64_t now);

/* So many of its commands are done. Report them soon: the next lease begins when the last one's
 * work is done. */
void scheduler_done(struct scheduler *scheduler, struct scheduler_client *client, uint32_t commands,
                    uint64_t now);

/* Its pace: one after the other, this many commands (1 or more) took this time. */
void scheduler_pace(struct scheduler_client *client, uint32_t commands, uint64_t span_ns);

/* The device worked this time for it: in concurrent mode that is charged, and taken from its duty.
 */
void scheduler_charge(struct scheduler *scheduler, struct scheduler_client *client,
                      uint64_t device_ns, uint64_t now);

/* When something changes by time alone; SCHEDULER_NEVER. O(lease groups). */
uint64_t scheduler_next_event(const struct scheduler *scheduler, uint64_t now);

/*
 * Ends what is over, begins what can begin. Each call names one client that may submit now and
 * could not before; NULL: that was all. To be called at the next event, and after the calls above
 * when a client is on hold: leases change hands in them too.
 */
struct scheduler_client *scheduler_decide(struct scheduler *scheduler, uint64_t now);

/* Up to now: device time charged, the lease that runs included; time spent waiting for a reason. */
uint64_t scheduler_charged(const struct scheduler *scheduler, const struct scheduler_client *client,
                           uint64_t now);
uint64_t scheduler_throttled(const struct scheduler *scheduler,
                             const struct scheduler_client *client, enum scheduler_hold hold,
                             uint64_t now);

/* Commands that a client may have in flight by number and pace, those in flight included. */
uint32_t scheduler_in_flight_limit(const struct scheduler_settings *settings,
                                   const struct scheduler_client *client);

/* ---- priority ---- */

/* The device's stream priority for a level, when `levels` are in use: 0 is `greatest` (the smaller
 * number), levels - 1 is `least`, the others evenly between, rounded towards greatest. With one
 * level: greatest. */
int32_t scheduler_stream_priority(uint32_t level, uint32_t levels, int32_t greatest, int32_t least);

/* W of PRIORITY above, for a client with commands of this mean (0: unknown). */
uint32_t scheduler_low_in_flight_limit(const struct scheduler_settings *settings, uint64_t mean_ns);

#endif
