/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/device/grid.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/list.h"
#include "common/util.h"
#include "server/softgpu/device/slowdown.h"
#include "server/softgpu/memory/memory.h"

/*
 * Warp instructions in one turn: about a millisecond. It bounds how long an
 * unmapping or an unregistering waits for blocks that may be touching the pages.
 */
enum { TURN_INSTRUCTIONS = 20000 };

/*
 * A block of a fill writes this much in one turn, about a millisecond of work, as
 * TURN_INSTRUCTIONS are; and it has as many threads as those of a common kernel.
 */
enum { FILL_BLOCK_ELEMENTS = 1 << 20, FILL_BLOCK_THREADS = 512 };

/*
 * So many instructions at the beginning of a block are timed by the real time that they take, at
 * most SHORT_NS of it: reading a thread's CPU time twice takes longer than a short block does. A
 * thread that loses its CPU meanwhile makes the block that much longer.
 */
enum { SHORT_INSTRUCTIONS = 1024, SHORT_NS = 50000 };

/* A modelled clock this far ahead of real time makes the block pause until real time is there. */
enum { AHEAD_NS = 50000 };

struct grid {
    struct block_launch launch; /* of a fill without a function, only its shape */
    struct fill fill;
    struct list_link link;         /* in device.pending */
    struct queue_link serial_link; /* in device.serial */
    struct engine_sequence turns;
    struct slowdown slowdown;
    struct operation *op;
    grid_complete *complete;
    struct device *device;
    struct stream *stream;
    uint32_t block_threads; /* rounded up to warps */
    uint32_t block_shared;
    uint64_t blocks, placed, ended;
    uint32_t next[3]; /* the index of the next block to be placed */
    uint64_t ready_at, end;
    void (*release)(void *owner);
    void *owner;
    uint8_t params[];
};

struct resident {
    struct engine_event event;
    struct engine_task task;
    struct grid *grid;
    unsigned sm;
    struct sm_stay *stay;
    uint32_t index[3];
    uint64_t start, clock;
    bool slept, computes;
    uint32_t slow_permille; /* in its next turn */
    struct block *block;
    struct queue_link link; /* in the store */
};

static struct queue store;
static atomic_ullong last_grid_id;

struct grid *grid_create_fill(const struct fill *fill)
{
    struct grid *grid = calloc(1, sizeof(*grid));

    if (!grid)
        return NULL;
    grid->fill = *fill;
    grid->blocks = (fill->count + FILL_BLOCK_ELEMENTS - 1) / FILL_BLOCK_ELEMENTS;
    grid->launch = (struct block_launch){
        .grid = {(uint32_t)grid->blocks, 1, 1},
        .threads = {FILL_BLOCK_THREADS, 1, 1},
        .sm_count = (uint32_t)device_settings()->sms,
    };
    grid->block_threads = FILL_BLOCK_THREADS;
    grid->block_shared = device_profile()->block_shared_reserved_bytes;
    return grid;
}

struct grid *grid_create(const struct launch *launch)
{
    struct grid *grid = calloc(1, sizeof(*grid) + launch->param_bytes);
    uint32_t threads = launch->threads[0] * launch->threads[1] * launch->threads[2];

    if (!grid)
        return NULL;
    if (launch->param_bytes > 0)
        memcpy(grid->params, launch->params, launch->param_bytes);
    grid->launch = (struct block_launch){
        .function = launch->function,
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .threads = {launch->threads[0], launch->threads[1], launch->threads[2]},
        .dynamic_shared_bytes = launch->dynamic_shared_bytes,
        .params = grid->params,
        .workspace = launch->workspace,
        .device = launch->device,
        .grid_id = atomic_fetch_add(&last_grid_id, 1) + 1,
        .timer_step_ns = (uint32_t)device_settings()->globaltimer_ns,
        .sm_count = (uint32_t)device_settings()->sms,
    };
    grid->release = launch->release;
    grid->owner = launch->owner;
    grid->blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    grid->block_threads = (threads + DEVICE_WARP - 1) / DEVICE_WARP * DEVICE_WARP;
    grid->block_shared = launch->static_shared_bytes + launch->dynamic_shared_bytes +
                         device_profile()->block_shared_reserved_bytes;
    return grid;
}

void grid_destroy(struct grid *grid)
{
    if (!grid)
        return;
    engine_sequence_end(&grid->turns);
    if (grid->release)
        grid->release(grid->owner);
    free(grid);
}

unsigned grid_blocks_per_sm(uint32_t threads, uint32_t shared_bytes)
{
    uint32_t rounded = (threads + DEVICE_WARP - 1) / DEVICE_WARP * DEVICE_WARP;
    const struct profile *profile = device_profile();
    uint32_t by_threads = profile->sm_threads / rounded;
    uint32_t shared = shared_bytes + profile->block_shared_reserved_bytes;
    uint32_t by_shared = shared > 0 ? profile->sm_shared_bytes / shared : UINT32_MAX;

    return min(min(by_threads, by_shared), profile->sm_blocks);
}

/* ---- occupancy of one multiprocessor ------------------------------------------------ */

static bool sm_fits(const struct sm *sm, const struct grid *grid)
{
    const struct profile *profile = device_profile();

    return sm->blocks < profile->sm_blocks &&
           sm->threads + grid->block_threads <= profile->sm_threads &&
           sm->shared + grid->block_shared <= profile->sm_shared_bytes;
}

static void add_stay(struct sm *sum, const struct sm_stay *stay, uint64_t time)
{
    if (stay->threads > 0 && stay->start <= time && time < stay->end) {
        sum->blocks++;
        sum->threads += stay->threads;
        sum->shared += stay->shared;
    }
}

/* The blocks that were on the multiprocessor at a modelled time that may be past; the next end
 * behind it in *next. */
static struct sm load_at(const struct sm *sm, uint64_t time, uint64_t *next)
{
    struct sm then = {0};

    *next = UINT64_MAX;
    if (time >= sm->last_end) {
        then.blocks = sm->blocks;
        then.threads = sm->threads;
        then.shared = sm->shared;
        return then;
    }
    for (unsigned i = 0; i < DEVICE_SM_BLOCKS; i++) {
        add_stay(&then, &sm->present[i], time);
        add_stay(&then, &sm->past[i], time);
        if (sm->past[i].end > time && sm->past[i].end < *next)
            *next = sm->past[i].end;
    }
    return then;
}

/* Where and when a block would begin on a multiprocessor, and how loaded it is then. */
struct room {
    uint64_t start;
    unsigned threads;
};

/*
 * The room for a block from `time` on, at the earliest. Ends later than `time`
 * may have been handled already, where the CPU lags behind: what they freed must
 * not be used before it was free.
 */
static struct room room_from(const struct sm *sm, const struct grid *grid, uint64_t time)
{
    for (;;) {
        uint64_t next;
        struct sm then = load_at(sm, time, &next);

        if (next == UINT64_MAX || sm_fits(&then, grid))
            return (struct room){time, then.threads};
        time = next;
    }
}

static struct sm_stay *sm_take(struct sm *sm, const struct grid *grid, uint64_t start)
{
    struct sm_stay *stay = sm->present;

    while (stay->threads > 0) /* sm_fits() has seen that one is unused */
        stay++;
    *stay = (struct sm_stay){start, UINT64_MAX, grid->block_threads, grid->block_shared};
    sm->blocks++;
    sm->threads += grid->block_threads;
    sm->shared += grid->block_shared;
    return stay;
}

static void sm_release(struct sm *sm, struct sm_stay *stay, uint64_t end)
{
    stay->end = end;
    sm->past[sm->next_past] = *stay;
    sm->next_past = (sm->next_past + 1) % DEVICE_SM_BLOCKS;
    if (end > sm->last_end)
        sm->last_end = end;
    sm->blocks--;
    sm->threads -= stay->threads;
    sm->shared -= stay->shared;
    stay->threads = 0;
}

static void sm_mark_busy(struct device *device, unsigned index, uint64_t time)
{
    struct sm *sm = &device->sm[index];

    if (sm->blocks > 0 && time > sm->busy_mark)
        stats_add(&device->stats->sm[index].busy_ns, time - sm->busy_mark);
    if (time > sm->busy_mark)
        sm->busy_mark = time;
}

static void resident_turn(struct engine_task *task);
static void resident_fill(struct engine_task *task);
static void resident_happen(struct engine_event *event, uint64_t time);
static void resident_end(struct engine_event *event, uint64_t time);

static void out_of_memory(void)
{
    device_fail(CUDA_ERR_LAUNCH_FAILED, "a kernel failed: the software GPU is out of host memory");
}

static void set_event(struct engine_event *event, uint64_t time)
{
    if (engine_at(event, time) < 0)
        out_of_memory();
}

/* No event waits for a block that is known to compute for long. */
static void turn_queue(struct resident *resident)
{
    resident->slow_permille = slowdown_permille(&resident->grid->slowdown, resident->grid->device);
    if (resident->computes)
        engine_run(&resident->task);
    else if (engine_run_ordered(&resident->grid->turns, &resident->task, resident->clock) < 0)
        out_of_memory();
}

/* Counted, not divided: a division takes longer than all else that this does. */
static void take_index(struct grid *grid, uint32_t index[3])
{
    memcpy(index, grid->next, sizeof grid->next);
    for (int axis = 0; axis < 3 && ++grid->next[axis] == grid->launch.grid[axis]; axis++)
        grid->next[axis] = 0;
    grid->placed++;
}

/* Places the grid's next block on the multiprocessor, which has room for it. */
static void place_block(struct grid *grid, unsigned index, uint64_t time)
{
    struct device *device = grid->device;
    struct sm *sm = &device->sm[index];
    struct resident *resident = QUEUE_TAKE(&store, struct resident, link);

    if (!resident)
        resident = malloc(sizeof(*resident));
    if (!resident) {
        out_of_memory();
        return;
    }
    time = room_from(sm, grid, time).start;
    memset(resident, 0, sizeof(*resident));
    resident->event.happen = resident_happen;
    resident->task.run = grid->fill.count > 0 ? resident_fill : resident_turn;
    resident->computes = grid->fill.count > 0;
    resident->grid = grid;
    resident->sm = index;
    resident->start = resident->clock = time;
    take_index(grid, resident->index);
    sm_mark_busy(device, index, time);
    if (sm->blocks == 0)
        sm->busy_mark = time;
    resident->stay = sm_take(sm, grid, time);
    slowdown_block_came(&grid->slowdown, device);
    turn_queue(resident);
}

/* ---- which grid, which multiprocessor ----------------------------------------------------- */

/* Whether a new grid goes before one that waits. A stream's priority is the lower the more urgent.
 */
static bool goes_before(const struct grid *grid, const struct grid *waiting)
{
    /* Its blocks that are there wait for the rest. If another such grid took the room, neither
     * would ever end. */
    if (waiting->launch.workspace && waiting->placed)
        return false;
    if (waiting->stream->priority != grid->stream->priority)
        return waiting->stream->priority > grid->stream->priority;
    return !device_settings()->grid_order && device_random() % 2 == 0;
}

static void pending_insert(struct grid *grid)
{
    struct list *pending = &grid->device->pending;
    struct list_link *before = list_last(pending);

    while (before && goes_before(grid, container_of(before, struct grid, link)))
        before = list_previous(pending, before);
    if (before)
        list_insert_after(before, &grid->link);
    else
        list_prepend(pending, &grid->link);
}

/*
 * Room appeared on one multiprocessor: fills it from the waiting grids. The first
 * of them that may run here goes first; as long as it has blocks left nobody
 * overtakes it, or small blocks would keep large ones waiting for ever.
 */
static void fill_sm(struct device *device, unsigned index, uint64_t time)
{
    struct grid *grid;

    LIST_FOR_EACH (grid, &device->pending, link) {
        if (!sm_set_has(&grid->stream->sms, index))
            continue;
        while (grid->placed < grid->blocks && sm_fits(&device->sm[index], grid) &&
               !engine_stopped())
            place_block(grid, index, max(time, grid->ready_at));
        if (grid->placed < grid->blocks || engine_stopped())
            return;
        list_remove(&grid->link);
    }
}

/* The multiprocessors where no grid stands before this one in the list. */
static struct sm_set unclaimed_sms(const struct grid *grid)
{
    struct sm_set set = grid->stream->sms;
    const struct grid *other;

    LIST_FOR_EACH (other, &grid->device->pending, link) {
        if (other == grid)
            break;
        for (size_t i = 0; i < sizeof(set.words) / sizeof(set.words[0]); i++)
            set.words[i] &= ~other->stream->sms.words[i];
    }
    return set;
}

static bool room_better(struct room a, struct room b)
{
    return a.start != b.start ? a.start < b.start : a.threads < b.threads;
}

/*
 * The best room that any multiprocessor of the set has now for a block of the
 * grid, and in rooms[] what each has: start UINT64_MAX for none.
 */
static struct room find_rooms(const struct grid *grid, const struct sm_set *set, struct room *rooms)
{
    struct room best = {UINT64_MAX, 0};

    for (unsigned i = 0; i < grid->launch.sm_count; i++) {
        rooms[i].start = UINT64_MAX;
        if (!sm_set_has(set, i) || !sm_fits(&grid->device->sm[i], grid))
            continue;
        rooms[i] = room_from(&grid->device->sm[i], grid, grid->ready_at);
        if (room_better(rooms[i], best))
            best = rooms[i];
    }
    return best;
}

/* Places as many blocks of a new grid as fit, evenly. */
static void spread_blocks(struct grid *grid)
{
    const unsigned count = grid->launch.sm_count;
    /* Hardware does not promise that blocks begin at multiprocessor 0. */
    const unsigned first = device_settings()->scatter ? device_random() % count : 0;
    const struct sm_set set = unclaimed_sms(grid);
    struct room rooms[SETTINGS_MAX_SMS], best;

    while (grid->placed < grid->blocks && !engine_stopped()) {
        best = find_rooms(grid, &set, rooms);
        if (best.start == UINT64_MAX)
            break;
        for (unsigned i = 0; i < count && grid->placed < grid->blocks && !engine_stopped(); i++) {
            unsigned index = (first + i) % count;

            if (rooms[index].start == best.start && rooms[index].threads == best.threads)
                place_block(grid, index, best.start);
        }
    }
}

static void run_grid(struct grid *grid, uint64_t time)
{
    grid->ready_at = grid->end = time;
    pending_insert(grid);
    spread_blocks(grid);
    if (grid->placed == grid->blocks)
        list_remove(&grid->link);
}

void grid_start(struct grid *grid, struct operation *op, grid_complete *complete, uint64_t time)
{
    bool alone;

    grid->op = op;
    grid->complete = complete;
    grid->stream = op->stream;
    grid->device = op->stream->device;
    grid->ready_at = time;
    slowdown_begin(&grid->slowdown, &grid->stream->sms);
    if (!device_settings()->serialize) {
        run_grid(grid, time);
        return;
    }
    alone = queue_is_empty(&grid->device->serial);
    queue_append(&grid->device->serial, &grid->serial_link);
    if (alone)
        run_grid(grid, time);
}

static void grid_end(struct grid *grid)
{
    struct device *device = grid->device;
    uint64_t end = grid->end;
    struct grid *next;

    if (grid->fill.count == 0)
        stats_add(&device->stats->kernels, 1);
    queue_take(&device->serial);   /* this one, if grids run one at a time */
    grid->complete(grid->op, end); /* the grid may be gone behind it */
    next = QUEUE_FIRST(&device->serial, struct grid, serial_link);
    if (next)
        run_grid(next, max(next->ready_at, end));
}

/* ---- the life of a resident block
 * ---------------------------------------------------------------- */

static void resident_end(struct engine_event *event, uint64_t time)
{
    struct resident *resident = container_of(event, struct resident, event);
    struct grid *grid = resident->grid;
    struct device *device = grid->device;
    unsigned index = resident->sm;
    struct stats_sm *stats = &device->stats->sm[index];

    sm_mark_busy(device, index, time);
    stats_add(&stats->block_ns, time - resident->start);
    stats_add(&stats->thread_ns, (time - resident->start) * grid->block_threads);
    stats_add(&stats->blocks, 1);
    sm_release(&device->sm[index], resident->stay, time);
    slowdown_block_went(&grid->slowdown, device);
    queue_prepend(&store, &resident->link);
    grid->end = max(grid->end, time);
    if (++grid->ended == grid->blocks)
        grid_end(grid);
    fill_sm(device, index, time);
}

static void resident_happen(struct engine_event *event, uint64_t time)
{
    struct resident *resident = container_of(event, struct resident, event);

    (void)time;
    turn_queue(resident);
}

/* The CPU time of instructions where they have no price; 0 where they have one. */
struct cost {
    uint64_t ns;
    uint32_t rate; /* of block_run */
};

static enum block_state run_short(struct resident *resident, struct cost *cost, uint64_t *clock,
                                  uint64_t *wake, struct fault *fault)
{
    uint64_t before = engine_now();
    enum block_state state =
        block_run(resident->block, SHORT_INSTRUCTIONS, clock, cost->rate, wake, fault);
    cost->ns = min(engine_now() - before, (uint64_t)SHORT_NS);
    return state;
}

static enum block_state run_long(struct resident *resident, struct cost *cost, uint64_t *clock,
                                 uint64_t *wake, struct fault *fault)
{
    uint64_t before = engine_thread_ns();
    enum block_state state =
        block_run(resident->block, TURN_INSTRUCTIONS, clock, cost->rate, wake, fault);
    cost->ns += engine_thread_ns() - before;
    return state;
}

/* One turn of the block, with the time that it took. */
static enum block_state run_block(struct resident *resident, uint64_t *clock, uint64_t *wake,
                                  struct fault *fault)
{
    const uint32_t slow = resident->slow_permille;
    const uint64_t nominal = device_settings()->instruction_ps;
    /* 0 would mean that instructions last as long as they take the CPU. */
    const uint64_t slowed = max(nominal * slow / 1000, (uint64_t)1);
    struct cost cost = {.rate = nominal > 0 ? (uint32_t)slowed : 0};
    enum block_state state = BLOCK_READY;

    block_set_pace(resident->block, slow);
    if (cost.rate) {
        state = block_run(resident->block, TURN_INSTRUCTIONS, clock, cost.rate, wake, fault);
    } else {
        if (!resident->computes)
            state = run_short(resident, &cost, clock, wake, fault);
        if (state == BLOCK_READY)
            state = run_long(resident, &cost, clock, wake, fault);
    }
    if (state == BLOCK_ASLEEP)
        resident->slept = true;
    /* A sleeping block lasts as long as it sleeps: the time that the interpreter spends on that
     * would be an error of the model. A whole turn without sleep is work, though. */
    if (!resident->slept || state == BLOCK_READY)
        *clock += cost.ns * slow / 1000;
    return state;
}

static void resident_turn(struct engine_task *task)
{
    struct resident *resident = container_of(task, struct resident, task);
    enum block_state state = BLOCK_FAULTED;
    struct fault fault;
    uint64_t clock = resident->clock, wake = 0;

    fault.kind = FAULT_NONE; /* clearing all of it takes as long as a warp */
    memory_enter();
    if (!resident->block)
        resident->block = block_create(&resident->grid->launch, resident->index, resident->sm);
    if (resident->block)
        state = run_block(resident, &clock, &wake, &fault);
    memory_leave();
    if (resident->block && (state == BLOCK_DONE || state == BLOCK_FAULTED)) {
        block_destroy(resident->block);
        resident->block = NULL;
    }
    engine_lock();
    resident->clock = clock;
    resident->computes = state == BLOCK_READY;
    if (state == BLOCK_DONE) {
        resident->event.happen = resident_end;
        set_event(&resident->event, resident->clock);
    } else if (state == BLOCK_ASLEEP) {
        if (wake > resident->clock)
            resident->clock = wake;
        set_event(&resident->event, resident->clock);
    } else if (state == BLOCK_READY && resident->clock <= engine_now() + AHEAD_NS) {
        turn_queue(resident);
    } else if (state == BLOCK_READY) {
        set_event(&resident->event, resident->clock);
    } else if (fault.kind != FAULT_NONE) {
        device_fault(&fault);
    } else {
        out_of_memory();
    }
}

/* All of a block of a fill. */
static void resident_fill(struct engine_task *task)
{
    struct resident *resident = container_of(task, struct resident, task);
    const struct fill *fill = &resident->grid->fill;
    const uint64_t first = (uint64_t)resident->index[0] * FILL_BLOCK_ELEMENTS;
    uint64_t before = engine_thread_ns(), fault = 0, took;
    bool good = memory_fill(fill->address + first * fill->width, fill->value, fill->width,
                            min(fill->count - first, (uint64_t)FILL_BLOCK_ELEMENTS), &fault);

    took = engine_thread_ns() - before;
    engine_lock();
    if (good) {
        resident->event.happen = resident_end;
        set_event(&resident->event, resident->clock + took * resident->slow_permille / 1000);
    } else {
        device_fail_address("fill", fault);
    }
}
