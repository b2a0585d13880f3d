/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * quiet: when a quiet window opens: a time in which nothing runs on the device.
 *
 * Some calls of the driver wait until the device is idle, and keep everybody's launches waiting
 * meanwhile (loading a module, giving back registered memory). They are made in a quiet window: no
 * client may submit, what runs ends, the calls are made, everybody goes on. These are the
 * decisions; the worker's quiet_window.c carries them out.
 *
 *   from               to         when
 *   RESTING, WAITING   DRAINING   a call waits, and the rules below allow a window
 *   RESTING, WAITING   WAITING    a call waits, and they do not
 *   WAITING, DRAINING  RESTING    no call waits any more
 *   DRAINING           WAITING    the attempt took too long
 *   DRAINING           OPEN       nothing runs
 *   OPEN               RESTING    the calls were made; the next look sees whether others wait
 *
 * A window begins only
 *   - while no work on the device has outlived what was expected of it;
 *   - if all that runs is expected to end within limit_ns;
 *   - if no client runs that is more urgent than the one that waits;
 *   - at a moment at which the clients' work is likely to end so close together that windows have
 *     time left for what is lost in between;
 *   - if windows have had less than share_percent of the device's time in the last 20 s. Device
 * time that is idle only because clients are held back counts; the time in which everybody's last
 * work still runs doesn't;
 *   - if the user whose call asks has had less than its part of that. Users who owe something have
 * equal parts. Time beyond its user's part is a debt of that user alone, who pays it
 * back out of its part; others do not wait for it.
 *
 * A call that restores a client of a lost worker comes first, whatever windows have had, and its
 * window is charged to nobody: that client has nothing at all. When such a window is over, clients
 * that are back have a third of its time before the next one.
 *
 * A device on which nothing runs is quiet at once. That costs what clients that come meanwhile have
 * to wait. Windows that had their share wait until nothing has run for QUIET_IDLE_NS.
 *
 * Between two leases nothing has to be drained: a window there costs the time of its calls alone.
 *
 * An attempt ends after one and a half times the expectation and LATENESS_NS; then clients have
 * at least as long as it took before the next one.
 *
 * While a call waits, streams have less in flight (width), so that work ends sooner, and closer
 * together. After patience_ns they may have one command each, the expectation may be as long as the
 * call has waited, and neither priority nor the moment is a reason any more. So as long as kernels
 * end at all, no call waits for ever.
 *
 * Pure: no clock, thread or memory of its own. Times are nanoseconds of one clock.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_QUIET_H
#define GPUSHARE_SERVER_SCHEDULER_QUIET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/units.h"

/* Accounts of users. Two users may have one, by chance. */
enum { QUIET_USERS = 64, QUIET_USER_BITS = 6 };

/* The account of an owner. Fibonacci hashing: the numbers of users in containers differ in their
 * higher bits alone. */
static inline uint32_t quiet_user(uint32_t owner)
{
    return (owner * UINT32_C(2654435769)) >> (32 - QUIET_USER_BITS);
}

enum quiet_state { QUIET_RESTING, QUIET_WAITING, QUIET_DRAINING, QUIET_OPEN };

/* The most that a stream may have in flight: as much as ever; what lasts QUIET_SHORT_NS, or one
 * command; one command. */
enum quiet_width { QUIET_WIDE, QUIET_SHORT, QUIET_SINGLE };

#define QUIET_SHORT_NS (4 * UNITS_MS) /* half of the usual, and long beside a look of 0.5 ms */
#define QUIET_IDLE_NS  (10 * UNITS_MS)

struct quiet_settings {
    uint64_t limit_ns;
    uint64_t patience_ns;
    uint32_t share_percent; /* 1 to 100 */
};

/* A client's work on the device. */
struct quiet_work {
    uint32_t client;
    uint32_t level;     /* of priority, 0 the most urgent */
    uint64_t left_ns;   /* until all of it is expected to have ended */
    uint64_t likely_ns; /* until it has, as likely later as earlier */
    bool overdue;       /* some of it should have ended before */
};

/* The calls of a user that may ask for a window. */
struct quiet_asker {
    uint64_t asked_at; /* the first of them was made; QUIET_NEVER: there is none */
    uint32_t level;    /* the most urgent of their clients' */
    bool restores;     /* one of them restores a client */
};

/* The scene of a decision. */
struct quiet_scene {
    const struct quiet_work *works; /* of the clients that have work on the device */
    uint32_t count;
    bool others;       /* work that is no client's runs too, or begins to */
    bool between;      /* a lease has ended, and the next one waits for this look */
    bool asked;        /* a call waits that may ask for a window */
    uint32_t user;     /* whose call that is, as quiet_choose says; below QUIET_USERS */
    uint64_t asked_at; /* the first of this user's calls was made */
    uint32_t level;    /* the most urgent of their clients' */
    bool restores;     /* one of them restores a client */
};

struct quiet {
    struct quiet_settings settings;
    enum quiet_state state;
    enum quiet_width width;
    uint64_t attempt;       /* DRAINING: when it began */
    uint64_t attempt_end;   /* and when it is given up */
    uint64_t again;         /* after an attempt that failed: no other one before */
    bool restores;          /* DRAINING, OPEN: a call asked that restores a client */
    uint64_t restore_again; /* no other window of that kind before */
    uint32_t worked;        /* clients that had work when it began; 1 between leases */
    uint64_t busy;          /* when a look last found work */
    uint64_t looked_at;     /* when it was last looked at */
    int64_t credit;         /* ns that windows may still take */
    int64_t
        debts[QUIET_USERS]; /* ns that each user's windows took, and its part has not paid for */
    uint32_t payer;         /* the user whose window it is */
    uint32_t waits_for;     /* WAITING: the client whose work is in the way; 0: nobody's */
    uint64_t next;          /* when to look again at the latest; QUIET_NEVER */
    /* for status */
    uint64_t windows;  /* that were open */
    uint64_t failed;   /* attempts that were given up */
    uint64_t taken_ns; /* device time that windows and attempts took */
};

#define QUIET_NEVER UINT64_MAX

/* 500 ms, 1 s, 5 %. */
void quiet_defaults(struct quiet_settings *settings);

void quiet_begin(struct quiet *quiet, const struct quiet_settings *settings, uint64_t now);

/* The limit from the next look on. */
void quiet_set_limit(struct quiet *quiet, uint64_t limit_ns);

/* Returns the user whose turn it is among those that ask. Those with a client to restore come
 * first, then those who have some of their part left. Then the most urgent is next, then the one
 * that owes least, then the one that has waited longest. askers: QUIET_USERS of them. QUIET_USERS:
 * none asks.
 */
uint32_t quiet_choose(const struct quiet *quiet, const struct quiet_asker *askers);

/*
 * Looks at the scene and takes the steps that follow from it: afterwards state, width, waits_for
 * and next are what holds. From OPEN nothing leads but quiet_end. While it is DRAINING or OPEN no
 * client may submit; a step to DRAINING is looked at again when no client submits any more.
 */
void quiet_look(struct quiet *quiet, const struct quiet_scene *scene, uint64_t now);

/* A call of this user was made in the open window: it pays for the time since the last one. */
void quiet_made(struct quiet *quiet, uint32_t user, uint64_t now);

/* The calls of the window are made. wanted: the first client came that could not submit because of
 * it; QUIET_NEVER: none did. */
void quiet_end(struct quiet *quiet, uint64_t wanted, uint64_t now);

#endif
