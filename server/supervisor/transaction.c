/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/transaction.h"

#include <errno.h>
#include <stdlib.h>

int transaction_init(struct transaction *transaction, size_t room,
                     const struct transaction_work *work, void *context)
{
    *transaction = (struct transaction){.work = work, .context = context};
    if (room)
        transaction->moves = calloc(room, sizeof *transaction->moves);
    return room && !transaction->moves ? -ENOMEM : 0;
}

void transaction_free(struct transaction *transaction)
{
    free(transaction->moves);
    *transaction = (struct transaction){0};
}

/* ---- plan ---- */

/* The present values of everything that the change sets; a value in either form is resolved in
 * *now. */
static struct allowance back_from(const struct allowance *change, const struct allowance *now)
{
    struct allowance back = allowance_none;
    for (enum resource i = 0; i < RESOURCES; i++) {
        back.of_from[i] = now->of_from[i];
        if (allowance_has(change, i, ALLOWANCE_REQUEST))
            back.of[i].request = now->of[i].request;
        if (allowance_has(change, i, ALLOWANCE_LIMIT))
            back.of[i].limit = now->of[i].limit;
    }
    for (enum scalar i = 0; i < SCALARS; i++) {
        back.scalar_from[i] = now->scalar_from[i];
        if (change->scalar[i] != ALLOWANCE_UNSET)
            back.scalar[i] = now->scalar[i];
    }
    return back;
}

static struct transaction_move *add_move(struct transaction *transaction,
                                         enum transaction_subject subject, unsigned rank,
                                         uint32_t number)
{
    struct transaction_move *move = &transaction->moves[transaction->count++];
    move->subject = subject;
    move->rank = rank;
    move->number = number;
    return move;
}

void transaction_add_client(struct transaction *transaction, unsigned rank, uint32_t client,
                            const struct allowance *to, const struct allowance *now)
{
    if (allowance_equal(to, &allowance_none))
        return;
    struct transaction_move *move = add_move(transaction, TRANSACTION_CLIENT, rank, client);
    move->client.to = *to;
    move->client.back = back_from(to, now);
}

void transaction_add_device(struct transaction *transaction, unsigned rank, uint32_t device,
                            const struct schedule *to, const struct schedule *now, unsigned parts)
{
    if (!parts)
        return;
    struct transaction_move *move = add_move(transaction, TRANSACTION_DEVICE, rank, device);
    move->device.to = *to;
    move->device.back = *now;
    move->device.parts = parts;
}

void transaction_add_account(struct transaction *transaction, unsigned rank, uint32_t number)
{
    add_move(transaction, TRANSACTION_ACCOUNT, rank, number);
}

/* ---- carry out ---- */

static void note_refusal(struct transaction *transaction, const struct transaction_move *move,
                         int result, uint32_t error, const char *text)
{
    struct error why = {0};
    if (transaction->back)
        transaction->work->lose(transaction->context, move, result, error, text);
    else if (transaction->work->refuse(transaction->context, move, result, error, text, &why) &&
             !transaction->why.number)
        transaction->why = why;
}

static struct transaction_move *find_asked(struct transaction *transaction,
                                           enum transaction_subject subject, uint32_t number)
{
    for (size_t i = 0; i < transaction->count; i++) {
        struct transaction_move *move = &transaction->moves[i];
        if (move->asked && move->subject == subject && move->number == number)
            return move;
    }
    return NULL;
}

/* A worker answers about one client, or one device, in the order in which it was asked. */
static void take_answer(struct transaction *transaction, enum transaction_subject subject,
                        uint32_t number, uint32_t error, const char *text)
{
    struct transaction_move *move = find_asked(transaction, subject, number);
    move->asked = false;
    transaction->due--;
    if (error)
        note_refusal(transaction, move, 0, error, text);
    else
        move->made = !transaction->back;
    if (!transaction->due && transaction->work->ready)
        transaction->work->ready(transaction->context);
}

static void client_answered(void *context, uint32_t client, uint32_t error, const char *text)
{
    take_answer(context, TRANSACTION_CLIENT, client, error, text);
}

static void device_answered(void *context, uint32_t device, uint32_t error, const char *text)
{
    take_answer(context, TRANSACTION_DEVICE, device, error, text);
}

static void account_answered(void *context, uint32_t number, uint32_t error, const char *text)
{
    take_answer(context, TRANSACTION_ACCOUNT, number, error, text);
}

static void make_move(struct transaction *transaction, struct transaction_move *move)
{
    static change_done *const answered[] = {[TRANSACTION_CLIENT] = client_answered,
                                            [TRANSACTION_DEVICE] = device_answered,
                                            [TRANSACTION_ACCOUNT] = account_answered};
    int result = transaction->work->make(transaction->context, move, transaction->back,
                                         answered[move->subject], transaction);
    move->made = result == 1 && !transaction->back;
    move->asked = result == 0;
    transaction->due += result == 0;
    if (result < 0)
        note_refusal(transaction, move, result, 0, "");
}

static void take_rank(struct transaction *transaction, unsigned rank)
{
    for (size_t i = 0; i < transaction->count; i++) {
        const size_t at = transaction->back ? transaction->count - 1 - i : i;
        struct transaction_move *move = &transaction->moves[at];
        if (move->rank == rank && (transaction->back ? move->made : !transaction->why.number))
            make_move(transaction, move);
    }
}

static unsigned ranks_of(const struct transaction *transaction)
{
    unsigned ranks = 0;
    for (size_t i = 0; i < transaction->count; i++)
        if (transaction->moves[i].rank >= ranks)
            ranks = transaction->moves[i].rank + 1;
    return ranks;
}

static bool any_waits(const struct transaction *transaction)
{
    return transaction->due && !transaction->pipelined;
}

static void go_forwards(struct transaction *transaction)
{
    const unsigned ranks = ranks_of(transaction);
    while (transaction->rank < ranks && !transaction->why.number && !any_waits(transaction))
        take_rank(transaction, transaction->rank++);
    if (transaction->due)
        return;
    if (!transaction->why.number && transaction->work->commit)
        transaction->work->commit(transaction->context, &transaction->why);
    transaction->committed = !transaction->why.number;
    transaction->back = !transaction->committed;
}

static void go_back(struct transaction *transaction)
{
    while (transaction->rank && !any_waits(transaction))
        take_rank(transaction, --transaction->rank);
}

bool transaction_advance(struct transaction *transaction)
{
    if (!transaction->back)
        go_forwards(transaction);
    if (transaction->back)
        go_back(transaction);
    return !transaction->due && (transaction->back ? !transaction->rank : transaction->committed);
}

uint32_t transaction_settings(const struct transaction *transaction)
{
    uint32_t count = 0;
    for (size_t i = 0; i < transaction->count; i++) {
        const struct transaction_move *move = &transaction->moves[i];
        if (move->subject != TRANSACTION_DEVICE)
            continue;
        const unsigned parts =
            move->device.parts & schedule_differs(&move->device.back, &move->device.to);
        for (size_t k = 0; schedule_part_name(parts, k); k++)
            count++;
    }
    return count;
}

bool transaction_made_any(const struct transaction *transaction)
{
    for (size_t i = 0; i < transaction->count; i++)
        if (transaction->moves[i].made)
            return true;
    return false;
}
