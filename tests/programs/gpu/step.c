/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/gpu/step.h"

#include <string.h>

/* A hang costs its own step. The calls that may block are many, so each may cost only so much. */
enum { LIMIT_S = 30, CALL_LIMIT_S = 12, REST_LIMIT_S = 180, SAMPLES_LIMIT_S = 500 };

#define FIRST(name, title, run, argument)                                                          \
    {                                                                                              \
        name, title, STEP_FIRST, LIMIT_S, run, argument, false                                     \
    }
#define CHECK(name, title, run, argument)                                                          \
    {                                                                                              \
        name, title, STEP_FIRST, LIMIT_S, run, argument, true                                      \
    }
#define CALL(name)                                                                                 \
    {                                                                                              \
        "blocks-" name, name " beside a kernel of 300 ms", STEP_FIRST, CALL_LIMIT_S,               \
            step_blocking, name, false                                                             \
    }
#define REST(name, title, run, argument)                                                           \
    {                                                                                              \
        name, title, STEP_REST, REST_LIMIT_S, run, argument, true                                  \
    }
#define SAMPLES(name, title, run, argument)                                                        \
    {                                                                                              \
        name, title, STEP_REST, SAMPLES_LIMIT_S, run, argument, true                               \
    }
#define QUESTION(name, title, run, argument)                                                       \
    {                                                                                              \
        name, title, STEP_REST, REST_LIMIT_S, run, argument, false                                 \
    }
#define TEST(name)                                                                                 \
    REST("test-" name, "integration test " name, step_program, "%F/tests/integration/test_" name)
#define ROW(name) REST("row-" name, "bench row " name, step_bench_row, name)

const struct step step_table[] = {
    FIRST("inventory", "driver, device, libraries, limits", step_inventory, ""),
    FIRST("jit", "PTX through the driver's compiler", step_jit, ""),
    FIRST("arenas", "the address arenas in ten fresh processes", step_arenas, ""),
    FIRST("registration", "registered memory at the host arena's base", step_registration, ""),
    FIRST("completion-memop", "a memory operation after a kernel", step_completion, "memop"),
    FIRST("completion-batch-memop", "a batch of them", step_completion, "batch-memop"),
    FIRST("completion-event", "an event after a kernel", step_completion, "event"),
    CALL("module-load-ptx"),
    CALL("module-load-cubin"),
    CALL("module-unload"),
    CALL("host-register"),
    CALL("host-unregister"),
    CALL("stream-create"),
    CALL("green-stream-create"),
    CALL("stream-destroy"),
    CALL("green-context-create"),
    CALL("green-context-destroy"),
    CALL("memory-create"),
    CALL("memory-map"),
    CALL("memory-set-access"),
    CALL("memory-unmap"),
    CALL("memory-release"),
    CALL("memory-export"),
    CALL("memory-import"),
    CALL("memory-alloc"),
    CALL("memory-free"),
    CALL("memset-default-stream"),
    CALL("function-attribute"),
    CALL("event-create"),
    CALL("event-destroy"),
    CALL("first-launch"),
    CALL("first-launch-local-memory"),
    CALL("first-launch-after-limit"),
    FIRST("partition-sizes", "partitions: sizes, overlap, number, cost", step_partition_sizes, ""),
    FIRST("partition-blocks", "whether blocks stay in partitions", step_partition_blocks, ""),
    FIRST("survival-creator", "memory after its creator faulted", step_survival, "creator"),
    FIRST("survival-user", "memory after its user faulted", step_survival, "user"),
    FIRST("survival-late-writes", "writes of a killed process", step_survival, "late-writes"),
    FIRST("standby", "the next process after one that was killed", step_standby, ""),
    FIRST("queues-17", "32 streams over 17 green contexts", step_queues, "17"),
    FIRST("queues-70", "32 streams over 70 green contexts", step_queues, "70"),
    FIRST("queues-17-balanced", "17, with balanced work queues", step_queues, "17-balanced"),
    FIRST("queues-70-balanced", "70, with balanced work queues", step_queues, "70-balanced"),
    FIRST("completion-latency", "word, event and host function", step_latency, ""),
    FIRST("launch-cost-1", "launches from one thread", step_launch_cost, "1"),
    FIRST("launch-cost-2", "launches from two threads", step_launch_cost, "2"),
    FIRST("launch-cost-8", "launches from eight threads", step_launch_cost, "8"),
    FIRST("graph-cost", "a launch beside a replayed graph", step_graph_cost, ""),
    CHECK("gpushare-vector-add", "a client through gpushare", step_example, "vector-add"),
    CHECK("gpushare-six-clients", "the demo's six clients", step_six_clients, ""),
    CHECK("gpushare-halves", "two clients on half the multiprocessors", step_halves, ""),
    CHECK("gpushare-strict-30-70", "mode strict, ten seconds", step_strict, ""),
    CHECK("gpushare-fault", "a fault and the next client", step_fault, ""),
    CHECK("corpus", "the kernel corpus against its oracle", step_corpus, "--seconds=26"),

    QUESTION("launch-cost-16", "launches from 16 threads", step_launch_cost, "16"),
    QUESTION("pinning-cost", "registration by kind of page", step_pinning_cost, ""),
    REST("worker-end-idle", "a killed worker, until the next client", step_worker_end, "idle"),
    REST("worker-end-endless", "the same beside an endless kernel", step_worker_end, "endless"),
    QUESTION("side-by-side", "two processes without gpushare", step_side_by_side, ""),
    REST("corpus-whole", "the corpus without a bound of time", step_corpus, NULL),
    REST("example-sgemm", "example sgemm", step_example, "sgemm"),
    REST("example-histogram", "example histogram", step_example, "histogram"),
    REST("example-kmeans", "example kmeans", step_example, "kmeans"),
    REST("example-nbody", "example nbody", step_example, "nbody"),
    REST("example-mandelbrot", "example mandelbrot", step_example, "mandelbrot"),
    TEST("client_api"),
    TEST("faults"),
    TEST("limits"),
    REST("dropin-programs", "test programs of the runtime and the driver", step_dropin_programs,
         ""),
    REST("dropin-heat", "a program of nvcc's, beside one that faults", step_dropin_heat, "heat"),
    REST("dropin-heat-python", "the same in Python", step_dropin_heat, "heat.py"),
    REST("dropin-torch", "PyTorch, elementwise, streams", step_dropin_python, "torch_elementwise"),
    REST("dropin-triton", "a kernel of Triton's", step_dropin_python, "triton_add"),
    REST("dropin-cuda-core", "a program of cuda.core's", step_dropin_python, "cuda_core"),
    REST("dropin-pace", "what CUDA's calls cost, both ways", step_dropin_pace, ""),
    SAMPLES("dropin-samples", "programs of the folder samples", step_dropin_samples, ""),
    ROW("threads_25_alone"),
    ROW("strict_share_error_points"),
    ROW("fair_busy_ratio"),
    ROW("fair_idle_split_error_points"),
    ROW("lease_5ms_loss"),
    ROW("threads_30_70_error"),
    ROW("share_change_ms"),
    ROW("reclaim_ms_p99"),
    ROW("priority_p99"),
    ROW("memory_exact_bytes"),
    ROW("accounting_error"),
};
const size_t step_count = sizeof step_table / sizeof *step_table;

#define BLOCKING(name, call, use)                                                                  \
    {                                                                                              \
        "blocks-" name, name "-does-not-wait",                                                     \
            call " neither waits for another client's kernel nor holds up launches", use,          \
            "make the call beforehand, or in a window in which no kernel runs, never on the "      \
            "submitter"                                                                            \
    }

const struct step_assumption step_assumptions[] = {
    {"inventory", "one-address-space", "host and device share one address space",
     "the address plan: one address for host, device and every client",
     "translate every pointer in parameters and memory: not to be done; the device is refused"},
    {"inventory", "virtual-memory-management", "memory can be created, mapped and unmapped apart",
     "client windows, limits, memory that outlives the worker", "the device is refused"},
    {"inventory", "memory-by-descriptor", "device memory can be a POSIX descriptor",
     "the supervisor keeps what must outlive a worker", "faults lose all memory; say so in status"},
    {"inventory", "host-registration", "memory of the process can be registered",
     "shared host buffers and completion words",
     "allocate them with cuMemHostAlloc in the worker and map them in clients by other means"},
    {"inventory", "registered-pointer-is-the-same",
     "registered memory has the same address for the device", "the address plan's host arena",
     "the worker refuses the device with a reason (it does)"},
    {"inventory", "64-bit-memory-operations", "a stream can write 64-bit words",
     "completion timelines", "events that the completer polls, and words written by the CPU"},
    {"inventory", "no-pageable-access", "kernels cannot reach memory that is not registered",
     "a stray pointer of a client's kernel faults instead of changing the worker",
     "warn at start; with several users refuse unless allowed; document uvm_disable_hmm=1"},
    {"inventory", "shared-compute-mode", "the device takes several contexts",
     "a standby worker, several trust domains", "no standby, one domain; say so in status"},
    {"inventory", "not-under-mps", "the process is not a client of MPS",
     "partitions hold exactly; faults are our own", "the worker refuses to run under MPS"},
    {"inventory", "two-copy-engines", "copies in both directions overlap",
     "uploads and downloads of different clients run at once",
     "one copy at a time; shares of copies become part of the schedule"},
    {"inventory", "green-contexts", "the driver has green contexts",
     "shares of the multiprocessors", "duty cycles (as without them today), said in status"},

    {"jit", "ptx-compiles", "the driver compiles PTX", "modules are loaded as rewritten PTX",
     "ask for cubins; name the missing library when the server starts"},

    {"arenas", "host-arena", "16 TiB of addresses are free for the host arena",
     "host buffers have one address in every process", "choose base and size by a ladder at start"},
    {"arenas", "device-arena-before-context",
     "the device arena can be reserved at its base right after cuInit, in every process",
     "a client keeps its addresses when its worker is replaced",
     "walk down a ladder of bases and sizes before the address plan is made"},
    {"arenas", "device-arena-after-context", "the same with a context",
     "a standby worker with a context can take over", "standby workers go without a context"},

    {"registration", "registered-memfd", "a sealed memfd can be registered at the host arena",
     "shared host buffers, completion words", "other memory for them (cuMemHostAlloc, dma-buf)"},
    {"registration", "one-pointer", "its device address is its host address",
     "pointers to host buffers work in kernels", "the device is refused"},
    {"registration", "copy-across-registrations", "one copy may span two registrations",
     "server/worker copies a client's buffer in one call, whatever its registrations",
     "cut copies and fills at multiples of 64 MiB from the buffer's start"},
    {"registration", "copy-within-registrations", "copies within registrations work",
     "all copies of host buffers", "register each buffer whole"},

    {"completion-memop", "memop-on-green-stream",
     "a memory operation works on a green context's stream, after the kernel before it",
     "completion timelines", "events that the completer polls, and words written by the CPU"},
    {"completion-batch-memop", "batch-memop-on-green-stream", "a batch of memory operations does",
     "one call writes the client's word and the server's own copy",
     "two single operations, or one and no second word"},
    {"completion-event", "event-on-green-stream",
     "an event of the primary context works on a green context's stream",
     "order between streams, accounting", "events created with the green context current"},
    {"completion-event", "event-orders-partitions",
     "a stream of one partition can wait for an event of another's",
     "order between a client's streams; changes of a running client's share",
     "the submitter holds work back until the event is seen"},

    BLOCKING("module-load-ptx", "loading PTX", "modules are loaded while others run"),
    BLOCKING("module-load-cubin", "loading a cubin", "modules are loaded while others run"),
    BLOCKING("module-unload", "unloading a module", "modules are unloaded while others run"),
    BLOCKING("host-register", "registering 64 MiB", "clients attach and allocate host buffers"),
    BLOCKING("host-unregister", "unregistering 64 MiB", "every client's end"),
    BLOCKING("stream-create", "creating a stream", "helper streams"),
    BLOCKING("green-stream-create", "creating a green context's stream",
             "the submitter gives a ring a stream of its partition"),
    BLOCKING("stream-destroy", "destroying a stream", "partitions are given up"),
    BLOCKING("green-context-create", "creating a green context", "shares change while others run"),
    BLOCKING("green-context-destroy", "destroying a green context", "shares change"),
    BLOCKING("memory-create", "cuMemCreate of 64 MiB", "allocation"),
    BLOCKING("memory-map", "cuMemMap", "allocation"),
    BLOCKING("memory-set-access", "cuMemSetAccess", "allocation"),
    BLOCKING("memory-unmap", "cuMemUnmap", "free"),
    BLOCKING("memory-release", "cuMemRelease", "free"),
    BLOCKING("memory-export", "exporting memory", "allocation: the supervisor keeps a descriptor"),
    BLOCKING("memory-import", "importing memory", "a new worker takes memory over"),
    BLOCKING("memory-alloc", "cuMemAlloc", "nothing today"),
    BLOCKING("memory-free", "cuMemFree", "nothing today"),
    BLOCKING("memset-default-stream", "a memset on the default stream",
             "memory is cleared before a client gets it"),
    BLOCKING("function-attribute", "cuFuncSetAttribute", "a client raises dynamic shared memory"),
    BLOCKING("event-create", "creating an event", "the pool of events grows"),
    BLOCKING("event-destroy", "destroying an event", "a client's end"),
    BLOCKING("first-launch", "the first launch of a loaded kernel", "the submitter's launches"),
    BLOCKING("first-launch-local-memory", "a first launch with 8 KiB of local memory a thread",
             "the submitter's launches"),
    BLOCKING("first-launch-after-limit",
             "the same launch after the context's stack limit was raised",
             "room for local memory is made by that limit alone"),

    {"partition-sizes", "groups-are-small",
     "the smallest group is at most a twelfth of the multiprocessors", "the granularity of shares",
     "coarser shares, or groups without co-scheduling"},
    {"partition-sizes", "groups-can-be-joined", "groups of one split can be joined",
     "a partition is any set of groups", "one split for each partition"},
    {"partition-sizes", "partitions-may-overlap", "two partitions may share groups",
     "limits that add up to more than the device", "time-slicing where limits overlap"},
    {"partition-sizes", "remainder-is-usable", "the remainder works as a group",
     "no multiprocessor lies idle", "clients with all the device get the unsplit resource"},
    {"partition-sizes", "whole-device-partition", "the unsplit resource makes a partition",
     "clients without a limit", "the union of all groups"},
    {"partition-sizes", "enough-partitions", "48 partitions can exist at once",
     "server/worker keeps 16 partitions beside those in use",
     "keep fewer; one that can't be made drops those that are kept already"},
    {"partition-blocks", "blocks-stay-in-partitions",
     "blocks stay on their partition though the primary context is current",
     "limits of threads are enforced", "make the green context current for each launch"},

    {"survival-creator", "memory-survives-its-creator",
     "memory held by descriptor survives a fault and SIGKILL of the process that created it",
     "a fault costs no memory", "a keeper process without a context creates it"},
    {"survival-user", "memory-survives-its-user",
     "it survives the fault of a process that only mapped it", "a fault costs no memory",
     "faults lose all memory; say so in status"},
    {"survival-late-writes", "no-writes-after-death",
     "a killed process's kernels have stopped once its pidfd is readable",
     "the hand-over barrier of a new worker", "wait longer, or fresh memory for the innocent"},

    {"standby", "standby-is-sooner",
     "a process that has called cuInit runs its first kernel sooner after another's death than one "
     "that is started then",
     "the setting standby: driver",
     "leave standby: none, or take context where a second context has room"},

    {"queues-17", "streams-independent-17",
     "an endless kernel blocks no other of 32 streams over 17 green contexts",
     "32 streams for all clients", "fewer streams, or balanced work queues (CUDA 13.1)"},
    {"queues-70", "streams-independent-70", "the same over 70 green contexts",
     "a partition for each client", "fewer partitions, or balanced work queues"},
    {"queues-17-balanced", "streams-independent-17-balanced",
     "the same over 17 with balanced work queues", "what the server would ask for from 13.1 on",
     "leave work queues as they are"},
    {"queues-70-balanced", "streams-independent-70-balanced",
     "the same over 70 with balanced work queues", "what the server would ask for from 13.1 on",
     "leave work queues as they are"},

    {"completion-latency", "word-is-as-quick",
     "a word is seen no later than an event or a host function's write (within 5 us)",
     "completion timelines", "events that the completer polls"},
    {"graph-cost", "launch-is-as-cheap-as-a-graph",
     "a launch costs its thread no more than a quarter above a replayed one-node graph",
     "the submitter launches kernels one by one", "keep a one-node graph for each hot kernel"},
};
const size_t step_assumption_count = sizeof step_assumptions / sizeof *step_assumptions;

const struct step_part step_parts[] = {
    {"arenas-attempt", step_arenas_attempt},
    {"survival", step_survival_part},
    {"standby", step_standby_part},
    {"client", step_client_part},
    {"side", step_side_part},
};
const size_t step_part_count = sizeof step_parts / sizeof *step_parts;

const struct step *step_find(const char *name)
{
    for (size_t i = 0; i < step_count; i++)
        if (!strcmp(step_table[i].name, name))
            return &step_table[i];
    return NULL;
}

bool step_is_meant(const struct step *step, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(step->name, name, length) &&
           (step->name[length] == 0 || (step->name[length] == '-' && !step_find(name)));
}
