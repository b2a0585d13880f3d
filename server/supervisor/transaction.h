/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * transaction: changes of what many clients are granted and of how devices are shared, made whole
 * or not at all. An administrator's set and a reload fill one; nothing else changes several things
 * at a time.
 *
 * A transaction is a list of moves, each with a rank. Ranks are taken in order, so that what gives
 * room comes before what takes it; within a rank, in the order in which they were added. The first
 * refusal turns the transaction round: the moves that were made are taken back, the last one first,
 * so that each state on the way back was in force before. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_TRANSACTION_H
#define GPUSHARE_SERVER_SUPERVISOR_TRANSACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits/allowance.h"
#include "server/supervisor/account/change_done.h"
#include "server/supervisor/config/schedule.h"

enum transaction_subject {
    TRANSACTION_CLIENT,
    TRANSACTION_DEVICE,
    TRANSACTION_ACCOUNT, /* the owner of the transaction knows it by its number */
};

struct transaction_move {
    enum transaction_subject subject;
    uint32_t number; /* of the client, the device, or the move of an account */
    unsigned rank;
    union {
        struct {
            struct allowance to, back; /* back: the present values of all that `to` sets */
        } client;
        struct {
            struct schedule to, back;
            unsigned parts; /* bits of enum schedule_part */
        } device;
    };
    bool asked; /* its answer is due */
    bool made;  /* and not taken back */
};

/* The work of a transaction, and how its owner wants a refusal told. context: the owner's. */
struct transaction_work {
    /* Makes a move, or takes it back. Returns 1: done; 0: a worker is asked, and `done` is called
     * exactly once, not before this function returns; -errno: it is refused, and nothing has
     * changed. */
    int (*make)(void *context, const struct transaction_move *move, bool back, change_done *done,
                void *of_done);
    /* A move was refused. result: -errno of `make`, or 0 and the answer's error with its text. Sets
     * *why; or returns false if that does not count, as when the client has left. */
    bool (*refuse)(void *context, const struct transaction_move *move, int result, uint32_t error,
                   const char *text, struct error *why);
    /* A move could not be taken back: there is nothing better to go back to. As for refuse. */
    void (*lose)(void *context, const struct transaction_move *move, int result, uint32_t error,
                 const char *text);
    /* Every move is made: does at once all that needs no answer. 0; or an error number that *why
     * explains, after which the moves are taken back. NULL: there is nothing to do. */
    uint32_t (*commit)(void *context, struct error *why);
    /* All answers that were due are in, so transaction_advance can go on: it is called now or
     * later. The transaction may be freed here. NULL: the owner looks by itself. */
    void (*ready)(void *context);
};

struct transaction {
    const struct transaction_work *work;
    void *context;
    struct transaction_move *moves;
    size_t count, due;
    /* The next rank does not wait for the answers of this one: a worker carries changes out in
     * order, so one round is enough where a refusal is rare. */
    bool pipelined;
    unsigned rank; /* the next one forwards; backwards the one taken last */
    bool back;     /* the moves that were made are taken back */
    bool committed;
    struct error why; /* the first refusal; number 0: there was none */
};

/* Makes an empty transaction with room for so many moves. work stays the caller's. Returns 0, or
 * -ENOMEM: then it has no room, and there is nothing to free. */
int transaction_init(struct transaction *transaction, size_t room,
                     const struct transaction_work *work, void *context);

/* Frees the moves of a transaction of which no answer is due. One that is all zero has none. */
void transaction_free(struct transaction *transaction);

/* Adds a change of a client that is granted *now. Nothing is added if the change is empty. There is
 * room. */
void transaction_add_client(struct transaction *transaction, unsigned rank, uint32_t client,
                            const struct allowance *to, const struct allowance *now);

/* Adds a change of these parts of a device's schedule, which is *now; none if there are none. */
void transaction_add_device(struct transaction *transaction, unsigned rank, uint32_t device,
                            const struct schedule *to, const struct schedule *now, unsigned parts);

/* Adds a change of an account, which `make` knows by this number. */
void transaction_add_account(struct transaction *transaction, unsigned rank, uint32_t number);

/*
 * Goes as far as it can without further answers: begins the transaction, or goes on with it.
 * Returns whether it is over; `why` says then whether it was refused. It is not called again after
 * that. The owner may set `why` before or meanwhile: nothing more is made then, and what was made
 * is taken back.
 */
bool transaction_advance(struct transaction *transaction);

/* How many settings of devices its moves change, of those that people write. */
uint32_t transaction_settings(const struct transaction *transaction);

/* Whether a move is made and in force. */
bool transaction_made_any(const struct transaction *transaction);

#endif
