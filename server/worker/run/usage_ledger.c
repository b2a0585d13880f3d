/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/run/usage_ledger.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/ipc/shared_word.h"
#include "common/ipc/usage_counts.h"
#include "common/util.h"
#include "server/worker/client/bits.h"
#include "server/worker/worker.h"

/* ---- the memory ---- */

struct client_row {
    uint64_t number; /* 0: none */
    uint64_t accounts[PROTO_CLIENT_ACCOUNTS];
    struct carry_client carry;
    uint64_t launches, copies, copied_bytes, gpu_nanoseconds;
    uint64_t waits[LATENCY_BUCKETS], latencies[LATENCY_BUCKETS];
    uint64_t held_ns; /* because no multiprocessor was free */
};

/* turn: how often it was written; its parity says which copy is whole. 0: neither. */
struct client_slot {
    uint64_t turn;
    struct client_row copy[2];
};

struct account_slot {
    uint64_t turn;
    struct carry_account copy[2];
};

struct debts_slot {
    uint64_t turn;
    struct debts copy[2];
};

/* The supervisor reads the counts, and finds them at the beginning. */
struct ledger_memory {
    struct usage_counts_table counts;
    uint64_t version;
    uint64_t account_rows, client_rows; /* rows from here on were never written */
    struct debts_slot debts;
    struct account_slot accounts[LEDGER_ROWS];
    struct client_slot clients[LEDGER_ROWS];
};

_Static_assert(sizeof(struct ledger_memory) <= PROTO_LEDGER_BYTES, "what the supervisor makes");

/* Of this layout: a worker of another version that lays it out otherwise has another size. */
#define VERSION (UINT64_C(0x6c65646765720001) + (sizeof(struct ledger_memory) << 16))

/* The other copy is whole until this one is. */
static void slot_write(uint64_t *turn, void *copies, const void *row, size_t bytes)
{
    uint64_t next = *turn + 1;
    memcpy((uint8_t *)copies + (next & 1) * bytes, row, bytes);
    shared_word_publish(turn, next);
}

static bool slot_read(uint64_t *turn, const void *copies, void *row, size_t bytes)
{
    uint64_t latest = shared_word_read(turn);
    memcpy(row, (const uint8_t *)copies + (latest & 1) * bytes, bytes);
    return latest != 0;
}

#define SLOT_WRITE(slot, row) slot_write(&(slot)->turn, (slot)->copy, row, sizeof *(row))
#define SLOT_READ(slot, row)  slot_read(&(slot)->turn, (slot)->copy, row, sizeof *(row))

/* ---- what the last worker left ---- */

struct ledger_left {
    uint32_t client_count, account_count;
    struct left_client {
        struct client_row row;
        uint32_t at; /* of LEDGER_ROWS */
        bool taken;
    } * clients;
    struct left_account {
        struct carry_account carry;
        bool taken;
    } * accounts;
};

static void left_free(struct ledger_left *left)
{
    if (!left)
        return;
    free(left->clients);
    free(left->accounts);
    free(left);
}

/* Stored before the row is written, so that the next worker finds the row. */
static void grow_to(uint64_t *rows, uint32_t at)
{
    if (at >= shared_word_read(rows))
        shared_word_publish(rows, (uint64_t)at + 1);
}

/* To read a page of shared memory that was never written allocates it, so rows that were never
 * written are left alone: all of them are megabytes. */
static struct ledger_left *left_read(struct usage_ledger *ledger)
{
    struct ledger_memory *memory = ledger->memory;
    struct ledger_left *left = calloc(1, sizeof *left);
    if (left) {
        left->clients = calloc(LEDGER_ROWS, sizeof *left->clients);
        left->accounts = calloc(LEDGER_ROWS, sizeof *left->accounts);
    }
    if (!left || !left->clients || !left->accounts) {
        left_free(left);
        return NULL;
    }
    uint64_t client_rows = min(shared_word_read(&memory->client_rows), (uint64_t)LEDGER_ROWS);
    uint64_t account_rows = min(shared_word_read(&memory->account_rows), (uint64_t)LEDGER_ROWS);
    for (uint32_t i = 0; i < client_rows; i++) {
        struct left_client *client = &left->clients[left->client_count];
        if (SLOT_READ(&memory->clients[i], &client->row) && client->row.number) {
            client->at = i;
            ledger->clients[i] = (uint32_t)client->row.number;
            left->client_count++;
        }
    }
    for (uint32_t i = 0; i < account_rows; i++) {
        struct left_account *account = &left->accounts[left->account_count];
        if (SLOT_READ(&memory->accounts[i], &account->carry) && account->carry.number) {
            ledger->accounts[i] = account->carry.number;
            left->account_count++;
        }
    }
    return left;
}

static struct left_account *left_account(struct ledger_left *left, uint64_t number)
{
    for (uint32_t i = 0; number && i < left->account_count; i++)
        if (left->accounts[i].carry.number == number)
            return &left->accounts[i];
    return NULL;
}

/* ---- its life ---- */

void usage_ledger_init(struct usage_ledger *ledger)
{
    memset(ledger, 0, sizeof *ledger);
    ledger->shm = SHM_NONE;
    pthread_mutex_init(&ledger->lock, NULL);
}

void usage_ledger_close(struct usage_ledger *ledger)
{
    left_free(ledger->left);
    shm_release(&ledger->shm);
    ledger->left = NULL;
    ledger->memory = NULL;
    pthread_mutex_destroy(&ledger->lock);
}

/* Begins memory of another version. A worker that dies at any of these steps leaves all of them to
 * the next one. */
static int memory_begin(struct ledger_memory *memory)
{
    if (memory->version != VERSION && madvise(memory, PROTO_LEDGER_BYTES, MADV_REMOVE) < 0)
        return -errno;
    usage_counts_begin(&memory->counts);
    shared_word_publish(&memory->version, VERSION);
    return 0;
}

int usage_ledger_open(struct usage_ledger *ledger, struct worker *worker, int fd)
{
    struct debts *debts = malloc(sizeof *debts);
    struct shm shm;
    int result = debts ? shm_adopt(&shm, fd, PROTO_LEDGER_BYTES, true) : -ENOMEM;
    if (result < 0) {
        free(debts);
        return result;
    }
    pthread_mutex_lock(&ledger->lock);
    ledger->shm = shm;
    ledger->memory = shm.base;
    result = memory_begin(ledger->memory);
    ledger->left = result == 0 ? left_read(ledger) : NULL;
    if (ledger->left && SLOT_READ(&ledger->memory->debts, debts))
        gate_carry_debts(&worker->gate, debts);
    /* Rows that were not read must not be written over as if they were nobody's. */
    if (result == 0 && !ledger->left)
        result = -ENOMEM;
    if (result < 0) {
        ledger->memory = NULL;
        ledger->shm.fd = -1;
        shm_release(&ledger->shm);
    }
    pthread_mutex_unlock(&ledger->lock);
    free(debts);
    return result;
}

/* ---- writing ---- */

/* Under the lock. Returns LEDGER_ROWS if there is no room. */
static uint32_t client_at(struct usage_ledger *ledger, struct client *client)
{
    uint32_t at = client->ledger_at;
    if (at < LEDGER_ROWS && ledger->clients[at] == client->number)
        return at;
    for (at = 0; at < LEDGER_ROWS && ledger->clients[at]; at++)
        ;
    if (at < LEDGER_ROWS)
        ledger->clients[at] = client->number;
    return client->ledger_at = at;
}

/* The row of an account; a new one takes that of the account that was written longest ago. */
static uint32_t account_at(struct usage_ledger *ledger, struct account_entry *entry)
{
    uint64_t number = entry->time.number;
    uint32_t oldest = 0;
    if (ledger->accounts[entry->ledger_at] == number)
        return entry->ledger_at;
    for (uint32_t i = 0; i < LEDGER_ROWS; i++) {
        if (ledger->accounts[i] == number)
            return entry->ledger_at = i;
        if (!ledger->accounts[i]) {
            oldest = i;
            break;
        }
        if (ledger->used[i] < ledger->used[oldest])
            oldest = i;
    }
    ledger->accounts[oldest] = number;
    return entry->ledger_at = oldest;
}

static void note_account(struct usage_ledger *ledger, struct scheduler_account *account,
                         const struct carry_account *carry)
{
    struct account_entry *entry = container_of(account, struct account_entry, time);
    uint32_t at = account_at(ledger, entry);
    ledger->used[at] = ledger->ticks;
    grow_to(&ledger->memory->account_rows, at);
    SLOT_WRITE(&ledger->memory->accounts[at], carry);
}

static void note_debts(struct usage_ledger *ledger, struct worker *worker)
{
    struct debts *debts = &ledger->memory->debts.copy[(ledger->memory->debts.turn + 1) & 1];
    if (gate_carried_debts(&worker->gate, &ledger->debts_noted, debts))
        shared_word_publish(&ledger->memory->debts.turn, ledger->memory->debts.turn + 1);
}

static void read_counts(struct client *client, struct client_row *row)
{
    row->number = client->number;
    row->launches = client->usage.launches;
    row->copies = client->usage.copies;
    row->copied_bytes = client->usage.copied_bytes;
    /* Relaxed: nothing but the sum is read. */
    row->gpu_nanoseconds =
        atomic_load_explicit(&client->usage.gpu_nanoseconds, memory_order_relaxed);
    memcpy(row->waits, client->usage.waits, sizeof row->waits);
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++)
        row->latencies[i] = atomic_load_explicit(&client->usage.latencies[i], memory_order_relaxed);
}

static void note_counts(struct usage_ledger *ledger, const struct client_row *row)
{
    const struct usage_counts counts = {.client = row->number,
                                        .launches = row->launches,
                                        .copies = row->copies,
                                        .copied_bytes = row->copied_bytes,
                                        .gpu_ns = row->gpu_nanoseconds};
    usage_counts_write(&ledger->memory->counts, &counts);
}

/* Under the lock. */
static void note_client(struct usage_ledger *ledger, struct worker *worker, struct client *client)
{
    struct gate_carried carried;
    struct client_row row = {.number = 0};
    struct placement_view view;
    bool idle;
    uint32_t at = client_at(ledger, client);
    placement_view(&worker->places, &client->place, clock_now(), &view);
    row.held_ns = client->held_before_ns + view.held_ns;
    client_lock(client);
    /* Asked before the counts are read: work may have ended since the meter last looked, and what
     * an idle client has used is not noted again. */
    idle = !meter_owes(&worker->meter, client);
    read_counts(client, &row);
    idle = idle && !client_in_flight(client) &&
           bits_next(client->shared.ready, 0, client->stream_count) == client->stream_count;
    bool added = gate_carry_take(&worker->gate, client, &carried);
    pthread_mutex_unlock(&client->lock);
    note_counts(ledger, &row);
    if (!added)
        return;
    client->ledger_idle = idle && !claim_is_busy(&carried.client.request);
    for (uint32_t i = 0; i < carried.count; i++) {
        row.accounts[i] = carried.accounts[i].number;
        if (row.accounts[i])
            note_account(ledger, carried.of[i], &carried.accounts[i]);
    }
    row.carry = carried.client;
    if (at < LEDGER_ROWS) {
        grow_to(&ledger->memory->client_rows, at);
        SLOT_WRITE(&ledger->memory->clients[at], &row);
    }
}

void usage_ledger_note(struct usage_ledger *ledger, struct worker *worker, struct client *client)
{
    pthread_mutex_lock(&ledger->lock);
    if (ledger->memory)
        note_client(ledger, worker, client);
    pthread_mutex_unlock(&ledger->lock);
}

/* Whether nothing of the client's row can have changed but by the clock. */
static bool is_idle(struct client *client)
{
    client_lock(client);
    bool idle = client->ledger_idle && !atomic_load(&client->signals.completer) &&
                bits_next(client->shared.ready, 0, client->stream_count) == client->stream_count;
    pthread_mutex_unlock(&client->lock);
    return idle;
}

void usage_ledger_tick(struct usage_ledger *ledger, struct worker *worker)
{
    pthread_mutex_lock(&ledger->lock);
    ledger->ticks++;
    for (uint32_t i = 0; ledger->memory && i < worker->client_count; i++)
        if (!is_idle(worker->clients[i]))
            note_client(ledger, worker, worker->clients[i]);
    pthread_mutex_unlock(&ledger->lock);
}

static void row_clear(struct usage_ledger *ledger, uint32_t at)
{
    static const struct client_row nobody;
    SLOT_WRITE(&ledger->memory->clients[at], &nobody);
    ledger->clients[at] = 0;
}

void usage_ledger_forget(struct usage_ledger *ledger, struct worker *worker, struct client *client)
{
    pthread_mutex_lock(&ledger->lock);
    uint32_t at = client->ledger_at;
    if (ledger->memory) {
        note_debts(ledger, worker);
        if (at < LEDGER_ROWS && ledger->clients[at] == client->number)
            row_clear(ledger, at);
    }
    client->ledger_at = LEDGER_ROWS;
    pthread_mutex_unlock(&ledger->lock);
}

/* ---- the next worker ---- */

static void give_counts(struct client *client, const struct client_row *row)
{
    client_lock(client);
    client->usage.launches = row->launches;
    client->usage.copies = row->copies;
    client->usage.copied_bytes = row->copied_bytes;
    memcpy(client->usage.waits, row->waits, sizeof row->waits);
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++)
        atomic_store_explicit(&client->usage.latencies[i], row->latencies[i], memory_order_relaxed);
    pthread_mutex_unlock(&client->lock);
    client->held_before_ns = row->held_ns;
}

static struct left_client *left_client(struct ledger_left *left, uint32_t number)
{
    for (uint32_t i = 0; left && i < left->client_count; i++)
        if (!left->clients[i].taken && left->clients[i].row.number == number)
            return &left->clients[i];
    return NULL;
}

/* The supervisor bills what these have beyond the largest that it has read. They are written before
 * the row, and for a client without a row too. */
static void take_billed(struct usage_ledger *ledger, uint32_t number, struct client_row *row)
{
    struct usage_counts counts;
    if (!ledger->memory || !usage_counts_read(&ledger->memory->counts, number, &counts))
        return;
    row->launches = max(row->launches, counts.launches);
    row->copies = max(row->copies, counts.copies);
    row->copied_bytes = max(row->copied_bytes, counts.copied_bytes);
    row->gpu_nanoseconds = max(row->gpu_nanoseconds, counts.gpu_ns);
}

static void give_carried(struct usage_ledger *ledger, struct worker *worker, struct client *client,
                         const struct client_row *row)
{
    struct gate_carried carried = {.client = row->carry};
    for (; carried.count < PROTO_CLIENT_ACCOUNTS; carried.count++) {
        struct left_account *account = left_account(ledger->left, row->accounts[carried.count]);
        if (account && !account->taken)
            carried.accounts[carried.count] = account->carry;
        if (account)
            account->taken = true;
    }
    gate_carry_give(&worker->gate, client, &carried);
}

void usage_ledger_give(struct usage_ledger *ledger, struct worker *worker, struct client *client)
{
    struct left_client *known = left_client(ledger->left, client->number);
    struct client_row row = known ? known->row : (struct client_row){.number = client->number};
    take_billed(ledger, client->number, &row);
    give_counts(client, &row);
    gate_carry_use(&worker->gate, client, row.gpu_nanoseconds);
    if (!known)
        return;
    give_carried(ledger, worker, client, &row);
    client->ledger_at = known->at;
    known->taken = true;
}

static bool comes_back(const struct worker *worker, uint32_t number)
{
    const struct client *client = worker->attaching;
    while (client && client->number != number)
        client = client->control.next_attaching;
    return client || worker_find_client((struct worker *)worker, number);
}

/* Without its first client, an account has none. */
static bool has_clients(const struct worker *worker, uint64_t number)
{
    const struct account_entry *entry = worker->accounts.first;
    while (entry && entry->time.number != number)
        entry = entry->next;
    return entry && entry->time.clients;
}

void usage_ledger_settle(struct usage_ledger *ledger, struct worker *worker)
{
    struct ledger_left *left = ledger->left;
    bool waits = false;
    pthread_mutex_lock(&ledger->lock);
    for (uint32_t i = 0; left && i < left->client_count; i++) {
        struct left_client *known = &left->clients[i];
        uint64_t account = known->row.accounts[0];
        if (known->taken || comes_back(worker, (uint32_t)known->row.number)) {
            waits |= !known->taken;
            continue;
        }
        const struct left_account *of =
            has_clients(worker, account) ? NULL : left_account(left, account);
        if (account)
            gate_carry_leave(&worker->gate, account, &known->row.carry, of ? &of->carry : NULL);
        known->taken = true;
        note_debts(ledger, worker);
        row_clear(ledger, known->at);
    }
    if (!waits) {
        left_free(left);
        ledger->left = NULL;
    }
    pthread_mutex_unlock(&ledger->lock);
}
