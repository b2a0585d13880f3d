/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include "host_cuda.h"
#include "oracle.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace
{
const size_t stack_bytes = 64 << 10;

/* ---- fibers: a saved stack pointer each ---- */
#if defined(__x86_64__)
typedef void *Context;
extern "C" void corpus_switch(void **save, void *load);
/* Saves what the System V ABI says a callee must keep; the rest the compiler has saved. */
__asm__(".text\n.type corpus_switch,@function\ncorpus_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size corpus_switch,.-corpus_switch\n");
void context_switch(Context *save, Context *load)
{
    corpus_switch(save, *load);
}
void context_create(Context *context, char *stack, void (*entry)())
{
    void **top = (void **)(stack + stack_bytes) - 3;
    *--top = (void *)entry;
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    *context = top;
}
#else
typedef ucontext_t Context;
void context_switch(Context *save, Context *load)
{
    swapcontext(save, load);
}
void context_create(Context *context, char *stack, void (*entry)())
{
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = stack_bytes;
    makecontext(context, entry, 0);
}
#endif

enum State { READY, AT_BARRIER, AT_WARP, GONE };

struct Thread {
    Context context;
    uint3 index;
    State state;
    unsigned linear, barrier;
    /* What this lane brings to a warp operation, and what it takes home. */
    corpus_warp_op op;
    unsigned mask, arg, width;
    uint64_t value, result;
    bool done;
};

struct Barrier {
    unsigned threads, arrived, waiting, count; /* threads 0: all that live */
    int op, result;
};

std::vector<Thread> threads;
Barrier barriers[16];
unsigned live;
Thread *self;
Context scheduler;
const corpus_kernel *running;
void *const *running_params;
char *failure;
size_t failure_size;
bool failed;
char *stacks;
size_t stacks_for;
std::vector<uint64_t> dynamic_shared;

void fail(const char *what)
{
    if (!failed)
        snprintf(failure, failure_size, "block (%u,%u,%u) thread (%u,%u,%u): %s", blockIdx.x,
                 blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, what);
    failed = true;
}

void give_way()
{
    context_switch(&self->context, &scheduler);
    threadIdx = self->index;
}

/* ---- barriers ---- */
void barrier_check(unsigned id)
{
    Barrier &b = barriers[id];
    if (!b.arrived || b.arrived < (b.threads ? b.threads : live))
        return;
    b.result = b.op == 1 ? (int)b.count : b.op == 2 ? b.count == b.waiting : b.count != 0;
    for (Thread &t : threads)
        if (t.state == AT_BARRIER && t.barrier == id) {
            t.state = READY;
            t.result = (uint64_t)b.result;
        }
    b = Barrier{};
}

void barrier_join(unsigned id, unsigned count, int op)
{
    Barrier &b = barriers[id & 15];
    if (b.arrived && (b.threads != count || (b.op != op && op)))
        fail("one barrier used in two ways at once");
    b.threads = count;
    b.op = op;
    b.arrived++;
}

/* ---- warp operations ---- */
unsigned shuffle_source(const Thread &t, bool *inside)
{
    unsigned lane = t.linear & 31, segment = ~(t.width - 1) & 31, b = t.arg & 31;
    unsigned last = (lane & segment) | (t.width - 1), from = lane;
    *inside = true;
    switch (t.op) {
    case WARP_SHFL_IDX:
        from = (lane & segment) | (b & (t.width - 1));
        break;
    case WARP_SHFL_UP:
        *inside = lane >= b + (lane & segment);
        from = lane - b;
        break;
    case WARP_SHFL_DOWN:
        from = lane + b;
        *inside = from <= last;
        break;
    default:
        from = lane ^ b;
        *inside = from <= last;
    }
    return *inside ? from : lane;
}

uint64_t fold(corpus_warp_op op, uint64_t a, uint64_t b)
{
    unsigned x = (unsigned)a, y = (unsigned)b;
    switch (op) {
    case WARP_ADD:
        return x + y;
    case WARP_MIN_S:
        return (unsigned)((int)x < (int)y ? (int)x : (int)y);
    case WARP_MAX_S:
        return (unsigned)((int)x > (int)y ? (int)x : (int)y);
    case WARP_MIN_U:
        return x < y ? x : y;
    case WARP_MAX_U:
        return x > y ? x : y;
    case WARP_AND:
        return x & y;
    case WARP_OR:
        return x | y;
    default:
        return x ^ y;
    }
}

uint64_t vote(corpus_warp_op op, unsigned mask, unsigned ballot)
{
    switch (op) {
    case WARP_ALL:
        return ballot == mask;
    case WARP_ANY:
        return ballot != 0;
    case WARP_UNIFORM:
        return ballot == mask || ballot == 0;
    default:
        return ballot;
    }
}

/* All lanes of the mask are here: gives each its result. warp: the 32 from lane 0 on. */
void warp_complete(Thread *warp, unsigned mask)
{
    corpus_warp_op op = self->op;
    unsigned ballot = 0;
    uint64_t sum = 0;
    bool first = true, same = true;
    for (unsigned lane = 0; lane < 32; lane++) {
        if (!(mask >> lane & 1))
            continue;
        ballot |= (unsigned)(warp[lane].value != 0) << lane;
        same = same && warp[lane].value == self->value;
        sum = first ? warp[lane].value : fold(op, sum, warp[lane].value);
        first = false;
    }
    for (unsigned lane = 0; lane < 32; lane++) {
        if (!(mask >> lane & 1))
            continue;
        Thread &t = warp[lane];
        t.state = READY;
        if (op >= WARP_SHFL_IDX && op <= WARP_SHFL_XOR) {
            unsigned from = shuffle_source(t, &t.done);
            if (!(mask >> from & 1))
                fail("a shuffle reads a lane that takes no part");
            t.result = warp[from].value;
        } else if (op >= WARP_ALL && op <= WARP_BALLOT) {
            t.result = vote(op, mask, ballot);
        } else if (op == WARP_MATCH_ANY) {
            t.result = 0;
            for (unsigned other = 0; other < 32; other++)
                if ((mask >> other & 1) && warp[other].value == t.value)
                    t.result |= 1u << other;
        } else if (op == WARP_MATCH_ALL) {
            t.done = same;
            t.result = same ? mask : 0;
        } else {
            t.result = sum;
        }
    }
}

[[noreturn]] void thread_end()
{
    self->state = GONE;
    live--;
    for (unsigned id = 0; id < 16; id++)
        barrier_check(id);
    context_switch(&self->context, &scheduler);
    abort(); /* nobody switches to a thread that is gone */
}

void thread_main()
{
    threadIdx = self->index;
    running->call(running_params);
    thread_end();
}

/* One turn of every thread that can run; false if none could. */
bool turn(const std::vector<unsigned> &order)
{
    bool progress = false;
    for (unsigned i : order) {
        if (threads[i].state != READY)
            continue;
        self = &threads[i];
        context_switch(&scheduler, &self->context);
        progress = true;
        if (failed)
            break;
    }
    return progress;
}

/* A permutation of 0..n-1 for each order but 0. */
std::vector<unsigned> permutation(unsigned n, uint32_t order)
{
    std::vector<unsigned> p(n);
    uint64_t state = order * 0x9e3779b97f4a7c15u;
    for (unsigned i = 0; i < n; i++)
        p[i] = order == 1 ? n - 1 - i : i;
    for (unsigned i = n; order > 1 && i > 1; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::swap(p[i - 1], p[(state >> 33) % i]);
    }
    return p;
}

void run_block(const std::vector<unsigned> &order)
{
    unsigned count = (unsigned)threads.size();
    live = count;
    memset(barriers, 0, sizeof barriers);
    for (unsigned i = 0; i < count; i++) {
        Thread &t = threads[i];
        t = Thread{};
        t.linear = i;
        t.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
        context_create(&t.context, stacks + i * stack_bytes, thread_main);
    }
    while (live && !failed)
        if (!turn(order))
            fail("deadlock: every thread of the block waits");
}
} // namespace

void *corpus_dynamic_shared()
{
    return dynamic_shared.data();
}

unsigned corpus_dynamic_shared_bytes()
{
    return running->dynamic_shared;
}

unsigned corpus_lane()
{
    return self->linear & 31;
}

void corpus_yield()
{
    give_way();
}

void corpus_exit()
{
    thread_end();
}

long long clock64()
{
    static long long now;
    return ++now;
}

int corpus_barrier(unsigned id, unsigned count, int op, bool predicate)
{
    barrier_join(id, count, op);
    Barrier &b = barriers[id & 15];
    b.waiting++;
    b.count += predicate;
    self->state = AT_BARRIER;
    self->barrier = id & 15;
    barrier_check(id & 15);
    give_way();
    return (int)self->result;
}

void corpus_barrier_arrive(unsigned id, unsigned count)
{
    barrier_join(id, count, 0);
    barrier_check(id & 15);
}

uint64_t corpus_warp(corpus_warp_op op, unsigned mask, uint64_t value, unsigned arg, unsigned width,
                     bool *done)
{
    Thread *warp = self - (self->linear & 31);
    unsigned lanes = (unsigned)(threads.data() + threads.size() - warp);
    if (lanes < 32)
        mask &= (1u << lanes) - 1;
    if (!(mask >> (self->linear & 31) & 1))
        fail("a lane outside the mask takes part in a warp operation");
    self->op = op, self->mask = mask, self->value = value, self->arg = arg, self->width = width;
    self->state = AT_WARP;
    bool all = true;
    for (unsigned lane = 0; lane < 32; lane++)
        if (mask >> lane & 1)
            all = all && warp[lane].state == AT_WARP && warp[lane].op == op &&
                  warp[lane].mask == mask;
    if (all)
        warp_complete(warp, mask);
    give_way();
    if (done)
        *done = self->done;
    return self->result;
}

extern "C" __attribute__((visibility("default"))) int corpus_run(const corpus_kernel *kernel,
                                                                 void *const *params,
                                                                 uint32_t order, char *error,
                                                                 size_t error_size)
{
    size_t count = (size_t)kernel->block[0] * kernel->block[1] * kernel->block[2];
    if (count > stacks_for) {
        if (stacks)
            munmap(stacks, stacks_for * stack_bytes);
        void *fresh = mmap(nullptr, count * stack_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        stacks = fresh == MAP_FAILED ? nullptr : (char *)fresh;
        stacks_for = stacks ? count : 0;
        if (!stacks) {
            snprintf(error, error_size, "no memory for %zu stacks", count);
            return -1;
        }
    }
    running = kernel, running_params = params;
    failure = error, failure_size = error_size, failed = false;
    blockDim = {kernel->block[0], kernel->block[1], kernel->block[2]};
    gridDim = {kernel->grid[0], kernel->grid[1], kernel->grid[2]};
    threads.resize(count);
    auto thread_order = permutation((unsigned)count, order);
    auto block_order = permutation(gridDim.x * gridDim.y * gridDim.z, order);
    for (unsigned b : block_order) {
        blockIdx = {b % gridDim.x, b / gridDim.x % gridDim.y, b / (gridDim.x * gridDim.y)};
        dynamic_shared.assign(kernel->dynamic_shared / 8 + 2, 0xa5a5a5a5a5a5a5a5u);
        run_block(thread_order);
        if (failed)
            return -1;
    }
    return 0;
}
