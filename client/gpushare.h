/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * gpushare: run kernels on an NVIDIA GPU that many processes share at the same time.
 *
 * A server (gpushared) owns the device; this library is how a program becomes one of
 * its clients. Link with -lgpushare-client. Nothing of CUDA is needed, neither to
 * compile nor to run: kernels come as PTX text (nvcc -ptx), a cubin or a fatbin.
 *
 *     gpushare_connection *gpu;
 *     gpushare_module *module;
 *     gpushare_function *add;
 *     gpushare_address a, b;
 *     uint32_t n = 1 << 20;
 *     void *arguments[] = {&a, &b, &n};                 // in the kernel's own order
 *     struct gpushare_dim grid = {4096, 1, 1}, block = {256, 1, 1};
 *
 *     if (gpushare_connect(NULL, &gpu) != GPUSHARE_SUCCESS)
 *         die(gpushare_error_text());                   // check every call so
 *     gpushare_module_load_file(gpu, "add.ptx", &module);
 *     gpushare_module_function(module, "add", &add);
 *     gpushare_memory_alloc(gpu, n * 4, &a);
 *     gpushare_memory_alloc(gpu, n * 4, &b);
 *     gpushare_copy_to_device(gpu, a, input, n * 4);
 *     gpushare_launch(add, grid, block, 0, NULL, arguments);
 *     gpushare_copy_from_device(gpu, output, b, n * 4); // waits for the kernel
 *     gpushare_close(&gpu);
 *
 * WHAT HOLDS FOR EVERY CALL
 *
 *   Units        sizes and offsets are in bytes unless a comment says otherwise.
 *   Result       GPUSHARE_SUCCESS (0), or an error number. gpushare_error_text() then says
 *                what went wrong, with the culprit and the remedy. Outputs are written on
 *                success only.
 *   NULL         a NULL connection, function, module or event is refused with
 *                GPUSHARE_ERROR_NOT_INITIALIZED (connection) or INVALID_HANDLE; a NULL
 *                output or input pointer with INVALID_VALUE. Where NULL means
 *                something (options, streams, an object to free), the call says so.
 *   Threads      any thread may make any call at any time, except that an object must
 *                not be in use by another thread while it is destroyed. Threads wait
 *                for each other only where they use the same stream. Requests that threads send the
 *                server at the same time (allocate, load, create) are carried out in any order:
 *                one thread's allocation does not wait for another one's module load. A call
 *                returns when the server has answered: what is asked for after it comes later, on
 *                any thread. Launches, fills and copies of shared host buffers go through memory.
 *   Ownership    a connection owns the objects made on it; closing it frees those that are
 *                left. Arguments (names, paths, images, parameters, options) are copied,
 *                or read before the call returns. The memory of asynchronous copies is
 *                the exception; see there.
 *   Handles      are pointers of this process. A handle must not be used after its object
 *                was destroyed, unloaded or closed, as memory must not be used after
 *                free(). (Addresses of device memory are looked up: a freed one is refused.)
 *   The end      when the server ends a connection (it stops, the device is lost with work
 *                of the client in flight, an administrator kills the client), every later
 *                call on it, and every call that waits at the time, returns the error that
 *                ended it, never with a signal or a hang. Only gpushare_close() still acts.
 *   fork         the child has no connection: calls on its parent's return
 *                NOT_INITIALIZED, shared host buffers are not mapped in it, and
 *                gpushare_close() only frees memory. It may connect for itself.
 *
 * Where CUDA has an idea, this API has the same one, so that code can be carried over call by
 * call. Names of the form "cu..." in the comments below point to the CUDA Driver API reference.
 */
#ifndef GPUSHARE_H
#define GPUSHARE_H

#include <stddef.h>
#include <stdint.h>

#include "gpushare_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Put before every function, so that a build with hidden symbols exports these. */
#define GPUSHARE_API __attribute__((visibility("default")))

/* ---- versions ---------------------------------------------------------------- */

/* This header's version, major * 10000 + minor * 100 + patch: 0.1.0 is 100. */
#define GPUSHARE_VERSION_NUMBER 100

/* The version of the library that is loaded, as a number of the same form. */
GPUSHARE_API uint32_t gpushare_version(void);

/* The library's version as text, "0.1.0". Static. */
GPUSHARE_API const char *gpushare_version_text(void);

/* ---- errors ------------------------------------------------------------------ */

/* The number's name, "out_of_memory"; "unrecognized" for a number that this library does not
 * have. Static. */
GPUSHARE_API const char *gpushare_error_name(gpushare_error error);

/* The meaning of the number: one lower-case sentence without a full stop. Static. */
GPUSHARE_API const char *gpushare_error_string(gpushare_error error);

/*
 * One sentence that says why the latest failed call of this thread failed; "" if none failed
 * yet. Where the server refused the call, the sentence is the server's. NOT_READY is an answer
 * and leaves the sentence as it is. It belongs to the library and is valid until the next
 * failure in the same thread. Never NULL.
 */
GPUSHARE_API const char *gpushare_error_text(void);

/* ---- handles ----------------------------------------------------------------- */

/*
 * An address in device memory, as kernels see it (CUdeviceptr). Address arithmetic is
 * allowed. A shared host buffer's pointer is an address too: kernels and copies can
 * use it as it is, (gpushare_address)(uintptr_t)pointer.
 */
typedef uint64_t gpushare_address;

typedef struct gpushare_connection gpushare_connection; /* one client of one device (CUcontext) */
typedef struct gpushare_module gpushare_module;         /* a loaded image (CUmodule) */
typedef struct gpushare_function gpushare_function;     /* a kernel in it; lives as long as it */
typedef struct gpushare_stream gpushare_stream;         /* work in order (CUstream) */
typedef struct gpushare_event gpushare_event;           /* a point in a stream (CUevent) */

/* Numbers of blocks, or of threads, in each direction; 1 where there is only one. */
struct gpushare_dim {
    uint32_t x, y, z;
};

/*
 * Structs that begin with `size` can grow in later versions: set it to sizeof the
 * struct before the call; the library touches nothing behind it. (io_uring and
 * Linux's extensible syscalls do it so.) In C++ too they are `struct gpushare_limits`
 * and so on: some functions bear the same name, and hide the short form.
 */

/* ---- connections ------------------------------------------------------------- */

/* Gets one warning: a sentence without a newline, valid during the call. Called on the thread that
 * connects, before gpushare_connect returns. It must not call the library. */
typedef void (*gpushare_warn)(void *context, const char *text);

/* The state of a connection. */
enum gpushare_state {
    GPUSHARE_STATE_SERVING = 0,    /* the server's worker has all that the connection has */
    GPUSHARE_STATE_RECOVERING = 1, /* the worker was lost, and the next one has not all of it yet:
                                    * work and requests wait */
    GPUSHARE_STATE_LOST = 2        /* the connection has ended */
};

struct gpushare_connection_state {
    size_t size;         /* set by the caller */
    uint32_t state;      /* enum gpushare_state; later versions may have more */
    uint32_t recoveries; /* how often another worker took the connection over */
};

/* Is told of a connection's state, at most once for each change of it. The struct is valid during
 * the call. It must not call the library. */
typedef void (*gpushare_observe)(void *context, const struct gpushare_connection_state *state);

/*
 * The wishes of a program. Initialise with {.size = sizeof(struct gpushare_options)}: a member
 * that is 0 or NULL asks for nothing. Limits only tighten: of the limits in this struct, in the
 * environment and in the server's configuration the strictest one holds.
 */
struct gpushare_options {
    size_t size;                /* sizeof(struct gpushare_options) */
    uint32_t device;            /* which device, from 0, counted among those visible */
    uint32_t priority;          /* 0 normal, 1 and above lower, at most 1000 */
    const char *socket;         /* path of the server's socket */
    const char *name;           /* in the server's lists and log; at most 63 bytes */
    double thread_percentage;   /* of the device's multiprocessors; from 1 to 100 */
    uint64_t memory_limit;      /* of device memory */
    uint64_t host_memory_limit; /* of shared host buffers */
    const char *profile;        /* of the server's configuration: its limits hold too */
    /* Requests are guarantees, not limits. The server may grant less, or refuse a request if it
     * has promised too much to others. Shares of time are enforced in the modes strict and fair;
     * see gpushare_limits. Percentages; a request may not be above the limit beside it. */
    double thread_request;   /* multiprocessors of its own while it has work; up to 100 */
    double time_request;     /* guaranteed share of the device's time; up to 100 */
    double time_limit;       /* share of the device's time that is never exceeded; up to 100 */
    double fraction;         /* up to 1: memory_limit as a part of the device's, and time_request */
    uint64_t memory_request; /* guaranteed device memory */
    uint64_t host_memory_request; /* guaranteed shared host buffers */
    gpushare_warn warn;           /* is called with warnings of gpushare_connect; see there */
    void *warn_context;
    /* Is called with a sentence that says for whom a module load waits, while a load of this
     * connection waits for longer than a second; and with one that says that a request of the
     * connection's own is lowered, because other users are there. On a thread that calls the
     * library. It must not call the library, and the context must last until gpushare_close. */
    gpushare_warn notice;
    void *notice_context;
    /* ns that a kernel of this connection may run, from 100 ms to 24 hours. A kernel that takes
     * longer ends the work of all clients of the device; see LAUNCH_TIMEOUT. */
    uint64_t kernel_time_limit;
    /* Is called when the connection's state differs from the one that was told last. The library
     * has no thread of its own, so a thread that calls the library looks: about ten times a second
     * while it sleeps until the device has done something, when a request was answered, and when it
     * asks for the connection's state or error. Launches do not look. Of several changes between
     * two looks the last one is told. The context must last until gpushare_close. */
    gpushare_observe observe;
    void *observe_context;
};

/*
 * Connects to the server and becomes a client of one device. options: NULL for none.
 * Reads these environment variables, once, at this call (a CUDA_ name only where
 * gpushare's own is not set); a value that can't be understood is refused with
 * INVALID_ENVIRONMENT, and gpushare_error_text() names variable, value and form.
 *
 *   GPUSHARE_SOCKET                     where the server is, if the options don't say;
 *                                       default $XDG_RUNTIME_DIR/gpushare/gpushare.sock
 *                                       if that exists, then /run/gpushare/gpushare.sock
 *   GPUSHARE_CLIENT_NAME                if the options don't say; default: the program's name
 *   GPUSHARE_PROFILE                    if the options don't say; one that the server does not
 *                                       have is refused with INVALID_VALUE
 *   GPUSHARE_THREADS_LIMIT              a share of the multiprocessors, 25% or 0.25; or as MPS
 *                                       writes it:
 *   GPUSHARE_ACTIVE_THREAD_PERCENTAGE   above 0, to 100 (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE)
 *   GPUSHARE_MEMORY_LIMIT               of each device's memory, a size or a share: 4G or 25%;
 *                                       or as MPS writes it:
 *   GPUSHARE_PINNED_DEVICE_MEM_LIMIT    per device, 0=1G,1=512MB or GPU-<uuid>=1G, numbered as
 *                                       this process sees them; K, M and G
 *                                       are powers of 1024 (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT)
 *   GPUSHARE_HOST_MEMORY_LIMIT, GPUSHARE_PINNED_HOST_MEM_LIMIT   one size, 512M
 *   GPUSHARE_THREADS_REQUEST            a share, 25% or 0.25: see options
 *   GPUSHARE_TIME_REQUEST, GPUSHARE_TIME_LIMIT   shares of the device's time, 25% or 0.25
 *   GPUSHARE_FRACTION                   a share, 0.25 or 25%: limit of device memory, request
 *                                       of time
 *   GPUSHARE_MEMORY_REQUEST             of the device's memory, a size or a share: 4G or 25%
 *   GPUSHARE_HOST_MEMORY_REQUEST        of shared host buffers, a size: 512M
 *   GPUSHARE_CLIENT_PRIORITY            0 normal, 1 and above lower (CUDA_MPS_CLIENT_PRIORITY)
 *   GPUSHARE_KERNEL_TIME_LIMIT          the longest that a kernel may run, 30s: see options
 *   GPUSHARE_VISIBLE_DEVICES            0,1 or GPU-<uuid> or MIG-<uuid>: only these are seen,
 *                                       in this order (CUDA_VISIBLE_DEVICES)
 *
 *   GPUSHARE_WARNINGS                   0: `gpushare info`, and CUDA programs that run as clients,
 *                                       print no warnings; 1, the default
 *
 * Warnings tell of requests that are no errors and yet have no effect: a share of time on a
 * device whose mode does not enforce it, a GPUSHARE_ variable that nothing reads. They go to
 * options.warn; the library itself prints nothing. `gpushare info` and the drop-in CUDA driver
 * print them.
 *
 * *connection is the caller's, to be closed with gpushare_close(). A process usually
 * has one a device; a second one to the same device is a client of its own, with
 * memory and limits of its own. Errors: CONNECTION_FAILED, PROTOCOL_VERSION,
 * INVALID_ENVIRONMENT, INVALID_DEVICE, DEVICE_NOT_READY, NO_DEVICE, TOO_MANY_CLIENTS,
 * ADDRESS_SPACE_FULL, WINDOW_TAKEN, SERVER_RESOURCES, INVALID_VALUE; NO_ROOM if what is requested
 * does not fit beside the requests of other clients: it may fit when one of them has left.
 */
GPUSHARE_API gpushare_error gpushare_connect(const struct gpushare_options *options,
                                             gpushare_connection **connection);

/*
 * Closes *connection and sets it to NULL, so that a second close does nothing; NULL and
 * a pointer to NULL do nothing either. Frees every object made on it; their handles are
 * invalid after this. Does not wait: work that was not waited for may or may not have
 * been carried out (see gpushare_synchronize). No other thread may be using it.
 */
GPUSHARE_API void gpushare_close(gpushare_connection **connection);

/*
 * The error that ended the connection, GPUSHARE_SUCCESS while it lives. text, if not
 * NULL, gets the sentence that came with it, "" while it lives; it belongs to the
 * connection. Looks at the socket, so that an end is seen even by an idle client.
 */
GPUSHARE_API gpushare_error gpushare_connection_error(gpushare_connection *connection,
                                                      const char **text);

/*
 * Fills *state; its size must be set. Asks the server nothing, and does not wait. SUCCESS for a
 * connection that has ended too, whose state says so; NOT_INITIALIZED for NULL and for a parent
 * process's.
 */
GPUSHARE_API gpushare_error gpushare_connection_state(gpushare_connection *connection,
                                                      struct gpushare_connection_state *state);

/* How the clients of a device share it. */
enum gpushare_mode {
    GPUSHARE_MODE_CONCURRENT = 0, /* all at once; shares of time have no effect */
    GPUSHARE_MODE_STRICT = 1,     /* each exactly its share of time */
    GPUSHARE_MODE_FAIR = 2,       /* each at least its share; idle time is split */
    GPUSHARE_MODE_TURNS = 3       /* one client at a time, for a quantum; shares have no effect */
};

/* The limits asked for (0: none), and those granted within the totals of the user and groups. */
struct gpushare_limits {
    size_t size;                      /* set by the caller */
    uint32_t client;                  /* this client's number, as the administrator sees it */
    uint32_t streams;                 /* that it may have, the default stream included */
    double thread_percentage_asked;   /* after options and environment */
    double thread_percentage;         /* after the server's default and ceiling */
    uint32_t multiprocessors;         /* on which kernels of this client can run, at most */
    uint32_t partitioned;             /* 1 if the device enforces that number */
    uint64_t memory_limit_asked;      /* of device memory */
    uint64_t memory_limit;            /* granted */
    uint64_t host_memory_limit_asked; /* of shared host buffers */
    uint64_t host_memory_limit;       /* granted */
    uint32_t priority_asked;          /* 0 normal, 1 and above lower */
    uint32_t priority;                /* granted */
    double thread_request_asked;      /* per cent of the multiprocessors */
    double thread_request;            /* its own while it has work; 0: none */
    double time_request_asked;        /* per cent of the device's time */
    double time_request;              /* guaranteed where time_enforced; 0: none */
    double time_limit_asked;
    double time_limit;      /* never exceeded where time_enforced; 100: no limit */
    uint32_t mode;          /* enum gpushare_mode, of the device; later versions may have more */
    uint32_t time_enforced; /* 0: in this mode shares of time are stored and have no effect */
    uint64_t memory_request_asked;
    uint64_t memory_request; /* of device memory, guaranteed; 0: none */
    uint64_t host_memory_request_asked;
    uint64_t host_memory_request; /* of shared host buffers, guaranteed; 0: none */
    uint64_t kernel_time_limit_asked;
    uint64_t kernel_time_limit; /* ns that a kernel may run; 0: any time */
};

/* Fills *limits; its size must be set. Asks the server, for an administrator may change the granted
 * limits while the client runs. */
GPUSHARE_API gpushare_error gpushare_limits(gpushare_connection *connection,
                                            struct gpushare_limits *limits);

/* For whom module loads on the connection's device wait now. */
struct gpushare_load_wait {
    size_t size;     /* set by the caller */
    uint32_t client; /* the number of the client whose kernels are in the way; 0: nobody's */
    uint32_t own;    /* 1: it is this connection */
    char text[384];  /* one sentence with the remedy; "" if nobody's. Of a connection whose work is
                      * held, since the driver makes no multiprocessors for it: why */
};

/* Fills *wait; its size must be set. Asks the server, also while another thread of this connection
 * waits for a load. */
GPUSHARE_API gpushare_error gpushare_load_wait(gpushare_connection *connection,
                                               struct gpushare_load_wait *wait);

/* ---- devices ----------------------------------------------------------------- */

/* A device, as its driver describes it (cuDeviceGetAttribute). */
struct gpushare_device {
    size_t size;                           /* set by the caller */
    char name[64];                         /* "NVIDIA H100 ..." */
    uint8_t uuid[16];                      /* cuDeviceGetUuid */
    char pci[24];                          /* "0000:01:00.0" */
    uint64_t memory;                       /* of the device, not of this client */
    uint32_t ordinal;                      /* among the visible ones, for the options */
    uint32_t driver_version;               /* 13000 for CUDA 13.0 */
    uint32_t compute_major, compute_minor; /* compute capability */
    uint32_t multiprocessors;              /* see gpushare_device and gpushare_device_query */
    uint32_t partition_multiprocessors;    /* of the smallest partition; 0: no partitions */
    uint32_t warp_threads;
    uint32_t block_threads;      /* most threads of a block */
    struct gpushare_dim block;   /* most threads of a block in each direction */
    struct gpushare_dim grid;    /* most blocks of a grid in each direction */
    uint32_t block_registers;    /* 32-bit registers that a block may have */
    uint32_t block_shared;       /* shared memory that a block may have */
    uint32_t block_shared_optin; /* the same after gpushare_function_set_shared */
    uint32_t multiprocessor_shared;
    uint32_t multiprocessor_threads; /* most resident threads */
    uint32_t constant_memory;        /* of a module */
    uint32_t l2_cache;
    uint32_t clock_khz;
    int32_t priority_least;    /* the range of stream priorities: numbers from */
    int32_t priority_greatest; /* greatest (the smaller number) to least */
    uint64_t kernel_heap; /* bytes from which the kernels of all clients allocate; 0: not known */
};

/*
 * How many devices this process can see: those of the server that the environment does
 * not hide. options: for the socket; NULL for none. Opens and closes a socket of its
 * own. Errors as gpushare_connect.
 */
GPUSHARE_API gpushare_error gpushare_device_count(const struct gpushare_options *options,
                                                  uint32_t *count);

/* Describes visible device options->device, with all its multiprocessors, without becoming a client
 * of it; device->size must be set. Opens and closes a socket of its own. Errors as
 * gpushare_connect.
 */
GPUSHARE_API gpushare_error gpushare_device_query(const struct gpushare_options *options,
                                                  struct gpushare_device *device);

/*
 * Describes the connection's own device; device->size must be set. Its multiprocessors are the
 * most that this client may have, so that a program which launches a block for each uses its share;
 * the number is that of connecting, or of the latest gpushare_limits. Asks the server nothing.
 */
GPUSHARE_API gpushare_error gpushare_device(gpushare_connection *connection,
                                            struct gpushare_device *device);

/* ---- memory ------------------------------------------------------------------ */

/*
 * Allocates count bytes of device memory, aligned to 512 at least, not initialised
 * (cuMemAlloc). OUT_OF_MEMORY if this client's limit or the device would be exceeded; memory
 * that this client has freed and that work still uses is waited for first. count 0:
 * INVALID_VALUE.
 */
GPUSHARE_API gpushare_error gpushare_memory_alloc(gpushare_connection *connection, uint64_t count,
                                                  gpushare_address *address);

/*
 * Frees device memory (cuMemFree). address: as allocated; 0 does nothing. Returns at once;
 * work that was issued before may still use the memory, which counts against the limit until
 * that work is done.
 */
GPUSHARE_API gpushare_error gpushare_memory_free(gpushare_connection *connection,
                                                 gpushare_address address);

/* The limits of this client's memory, within the totals of its user and groups, and how much of it
 * is not free: what others hold of a total, or of the device where less is left, counts as used. */
struct gpushare_memory_info {
    size_t size;         /* set by the caller */
    uint64_t limit;      /* of device memory */
    uint64_t used;       /* whole units, module variables, and what others hold of the limit */
    uint64_t host_limit; /* of shared host buffers */
    uint64_t host_used;  /* with the library's staging buffers; see copies */
};

/* Fills *info; its size must be set (cuMemGetInfo: free is limit - used, and
 * nothing where a limit was set below what is used). Asks the server each time. */
GPUSHARE_API gpushare_error gpushare_memory_info(gpushare_connection *connection,
                                                 struct gpushare_memory_info *info);

/*
 * Allocates a shared host buffer: ordinary memory of this process which the device
 * reads and writes directly, at the same address (cuMemHostAlloc). Copies from and to
 * it are one transfer with no copy in between. Page-aligned, zeroed. It counts against
 * the pinned-host limit, which is never infinite. OUT_OF_MEMORY as gpushare_memory_alloc.
 */
GPUSHARE_API gpushare_error gpushare_host_alloc(gpushare_connection *connection, uint64_t count,
                                                void **buffer);

/*
 * Frees a shared host buffer (cuMemFreeHost). buffer: as allocated; NULL does nothing. This
 * process can't touch it any more when the call returns; work that was issued before still can.
 */
GPUSHARE_API gpushare_error gpushare_host_free(gpushare_connection *connection, void *buffer);

/* ---- modules and functions --------------------------------------------------- */

/*
 * Loads an image: PTX text, a cubin or a fatbin (cuModuleLoadData). bytes: of the
 * image; 0 means that it is PTX text which ends with a NUL. *module lives until
 * gpushare_module_unload or gpushare_close. Errors: INVALID_IMAGE, INVALID_PTX (the
 * text names line and reason), NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION,
 * OUT_OF_MEMORY (module variables count as device memory).
 *
 * When the server's worker is lost, the next one has the module, and its variables keep
 * their values. A module can have more on the device: variables in the driver's memory,
 * addresses of functions or generic addresses of __constant__ variables, memory that kernels
 * allocate. Such a module, a cubin that has more than kernels, and PTX that the server can't
 * read lose their state.
 *
 * Launches of a module that has lost its state are refused with STATE_LOST, and so are copies
 * to and from its variables in the driver's memory: unload it and load it again. Launches that
 * were queued before interrupt their stream.
 *
 * Other modules keep their state. But memory may hold addresses of what went with the worker.
 * So launches that might follow one are refused likewise until each lost module is unloaded: those
 * of all modules; or, where only addresses of functions were lost, of modules that use such ones,
 * and of cubins, which may.
 */
GPUSHARE_API gpushare_error gpushare_module_load(gpushare_connection *connection, const void *image,
                                                 size_t bytes, gpushare_module **module);

/* Loads an image from a file; NOT_FOUND if it can't be opened (cuModuleLoad). */
GPUSHARE_API gpushare_error gpushare_module_load_file(gpushare_connection *connection,
                                                      const char *path, gpushare_module **module);

/*
 * Unloads a module, with its functions and variables; NULL does nothing. Returns at once; work
 * that was issued before is still carried out (cuModuleUnload).
 */
GPUSHARE_API gpushare_error gpushare_module_unload(gpushare_module *module);

/*
 * Finds a kernel by its name as it stands in the image: kernels that are not
 * extern "C" have C++ mangled names (cuModuleGetFunction). *function is the module's;
 * asking twice gives the same. NOT_FOUND if there is none.
 */
GPUSHARE_API gpushare_error gpushare_module_function(gpushare_module *module, const char *name,
                                                     gpushare_function **function);

/*
 * Finds a __device__ or __constant__ variable (cuModuleGetGlobal). address and bytes
 * may be NULL. Read and write it with copies, as any device memory. The address of a
 * __constant__ variable is that of a copy which the server keeps: copies and fills change
 * both, in the order of their stream. A kernel that writes there changes the copy alone. One
 * copy or fill writes to at most five pieces of constant memory, else its work fails with
 * INVALID_VALUE.
 */
GPUSHARE_API gpushare_error gpushare_module_variable(gpushare_module *module, const char *name,
                                                     gpushare_address *address, uint64_t *bytes);

/* A kernel's attributes (cuFuncGetAttribute). */
struct gpushare_function_info {
    size_t size;              /* set by the caller */
    uint32_t parameters;      /* how many */
    uint32_t parameter_bytes; /* of the whole block, padding included; at most 32764 */
    uint32_t block_threads;   /* most threads of a block for this kernel */
    uint32_t static_shared;   /* shared memory that it declares */
    uint32_t dynamic_shared;  /* most shared memory that a launch may add */
    uint32_t local_memory;    /* of a thread */
    uint32_t constant_memory; /* of its module */
    uint32_t registers;       /* of a thread */
    uint32_t ptx_version;     /* 90 for 9.0 */
    uint32_t binary_version;  /* 90 for compute capability 9.0 */
};

/* Fills *info; its size must be set. Asks the server nothing. */
GPUSHARE_API gpushare_error gpushare_function_info(gpushare_function *function,
                                                   struct gpushare_function_info *info);

/*
 * Where parameter `index` lies in the parameter block (cuFuncGetParamInfo). offset and
 * bytes may be NULL. INVALID_VALUE from the number of parameters on.
 */
GPUSHARE_API gpushare_error gpushare_function_parameter(gpushare_function *function, uint32_t index,
                                                        size_t *offset, size_t *bytes);

/*
 * Sets how much dynamic shared memory launches of this kernel may ask for; needed above
 * the device's block_shared (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).
 * INVALID_VALUE if the device's block_shared_optin would be exceeded.
 */
GPUSHARE_API gpushare_error gpushare_function_set_shared(gpushare_function *function,
                                                         uint32_t bytes);

/*
 * How many blocks of this kernel one multiprocessor can hold at a time
 * (cuOccupancyMaxActiveBlocksPerMultiprocessor). block_threads: of a block, from 1;
 * shared: dynamic shared memory of a block.
 */
GPUSHARE_API gpushare_error gpushare_occupancy(gpushare_function *function, uint32_t block_threads,
                                               uint32_t shared, uint32_t *blocks);

/* ---- streams ----------------------------------------------------------------- */

/*
 * A stream carries out its work in the order in which it was issued; streams run side
 * by side unless an event or the default stream orders them. Every call that takes a
 * stream also takes one of these two, as CUDA does:
 *
 *   NULL                        the connection's default stream (CUDA's legacy one): its
 *                               work begins when all work issued before in any stream
 *                               without NON_BLOCKING is done, and what is issued in those
 *                               after it begins when it is done.
 *   GPUSHARE_STREAM_PER_THREAD  a stream of the calling thread alone, made when first
 *                               used, gone with the thread; otherwise like one from
 *                               gpushare_stream_create with flags 0.
 */
#define GPUSHARE_STREAM_PER_THREAD ((gpushare_stream *)(uintptr_t)2)

/* A flag of gpushare_stream_create: no order with the default stream (CU_STREAM_NON_BLOCKING). */
#define GPUSHARE_STREAM_NON_BLOCKING 1u

/*
 * Makes a stream (cuStreamCreateWithPriority). flags: 0 or the flag above. priority: 0
 * is normal and smaller is more urgent; brought into the range that struct
 * gpushare_device states. TOO_MANY_OBJECTS beyond struct gpushare_limits.streams.
 */
GPUSHARE_API gpushare_error gpushare_stream_create(gpushare_connection *connection, uint32_t flags,
                                                   int32_t priority, gpushare_stream **stream);

/*
 * Destroys a stream; the work in it is still carried out (cuStreamDestroy). NULL does
 * nothing; the thread's own stream is refused with INVALID_HANDLE.
 */
GPUSHARE_API gpushare_error gpushare_stream_destroy(gpushare_stream *stream);

/* The priority that the stream was granted (cuStreamGetPriority). */
GPUSHARE_API gpushare_error gpushare_stream_priority(gpushare_connection *connection,
                                                     gpushare_stream *stream, int32_t *priority);

/*
 * Waits until all work issued in the stream before is done (cuStreamSynchronize). Errors
 * of that work are returned here; see gpushare_launch.
 */
GPUSHARE_API gpushare_error gpushare_stream_synchronize(gpushare_connection *connection,
                                                        gpushare_stream *stream);

/* SUCCESS if all work issued in the stream before is done, NOT_READY if not (cuStreamQuery). Never
 * waits. */
GPUSHARE_API gpushare_error gpushare_stream_query(gpushare_connection *connection,
                                                  gpushare_stream *stream);

/*
 * Work that is issued in the stream after this call begins when the event's latest record is
 * done; an event that was never recorded delays nothing (cuStreamWaitEvent). Returns at once.
 * The event may be another connection's of this process, on another device too. INTERRUPTED if the
 * work that the event stands for is known to be lost; if it is lost later, the stream is
 * interrupted.
 */
GPUSHARE_API gpushare_error gpushare_stream_wait_event(gpushare_connection *connection,
                                                       gpushare_stream *stream,
                                                       gpushare_event *event);

/* Waits for all work of all streams of the connection (cuCtxSynchronize). */
GPUSHARE_API gpushare_error gpushare_synchronize(gpushare_connection *connection);

/* A part of a shared host buffer. */
struct gpushare_host_range {
    void *start;
    uint64_t bytes;
};

/* The most parts that a report names. */
#define GPUSHARE_RECOVERY_RANGES 16

/* The work that an interrupted stream has lost, in commands: a launch is one, a copy is one or
 * more, and a wait for another stream counts as one. */
struct gpushare_recovery {
    size_t size;       /* set by the caller */
    uint64_t finished; /* the stream's timeline value up to which everything was finished */
    uint64_t dropped;  /* commands after it; the first of them may have been carried out in part */
    /* The parts of shared host buffers that the device's copies were writing, each half written
     * perhaps. Kernels may have written others, and a copy to ordinary memory, which has returned
     * INTERRUPTED, its destination. */
    uint32_t range_count;
    uint32_t more_ranges; /* 1: there may be parts that are not named */
    struct gpushare_host_range ranges[GPUSHARE_RECOVERY_RANGES];
};

/*
 * Lets an interrupted stream go on. The server's worker was lost, by another client's fault or by a
 * crash, while the device had work of this stream, or of one that this one waits for. That work is
 * not begun again, and what was queued behind it is not carried out. The connection, addresses,
 * handles and streams with nothing in flight are as before.
 *
 * Until this call, launches, copies and waits on the stream return INTERRUPTED. Events recorded
 * behind the last finished command do so until they are recorded anew.
 *
 * Everything that finished work had written is there. The bytes that an unfinished command was to
 * write, on the device or in host memory, are unknown: write them again before use.
 *
 * Waits until the stream is empty. *recovery has all that was lost since the stream last went on,
 * by one lost worker or several; NULL is allowed. SUCCESS with dropped 0 if the stream is not
 * interrupted.
 */
GPUSHARE_API gpushare_error gpushare_stream_recover(gpushare_connection *connection,
                                                    gpushare_stream *stream,
                                                    struct gpushare_recovery *recovery);

/* ---- launches ---------------------------------------------------------------- */

/*
 * Launches a kernel (cuLaunchKernel). Returns as soon as it is queued; it blocks only
 * while the stream already holds about a thousand launches.
 *   grid, block  numbers of blocks and of threads of a block, each 1 at least
 *   shared       dynamic shared memory of a block
 *   parameters   one pointer to the value of each parameter, in order; read before the
 *                call returns. NULL if the kernel has none. A gpushare_address is what a
 *                pointer parameter wants. How many pointers there are can't be seen from
 *                here: there must be as many as the kernel has parameters.
 * INVALID_VALUE if grid, block or shared exceed the device, or the kernel's launch bounds;
 * LAUNCH_OUT_OF_RESOURCES if a block lacks registers; nothing is launched then.
 *
 * An error of the work itself is returned later, once: by the next call on its stream (which
 * then does nothing else) or by a call that waits for the work. Fatal errors (700 to 719
 * except 701) end the connection: from then on every call returns the error.
 */
GPUSHARE_API gpushare_error gpushare_launch(gpushare_function *function, struct gpushare_dim grid,
                                            struct gpushare_dim block, uint32_t shared,
                                            gpushare_stream *stream, void *const *parameters);

/*
 * The same with the parameter block already laid out (CU_LAUNCH_PARAM_BUFFER_POINTER):
 * bytes must be struct gpushare_function_info.parameter_bytes.
 */
GPUSHARE_API gpushare_error gpushare_launch_packed(gpushare_function *function,
                                                   struct gpushare_dim grid,
                                                   struct gpushare_dim block, uint32_t shared,
                                                   gpushare_stream *stream, const void *parameters,
                                                   size_t bytes);

/* ---- copies and fills -------------------------------------------------------- */

/*
 * Host memory may be a shared host buffer (fastest; see gpushare_host_alloc) or any
 * ordinary memory, which goes through staging buffers of the library: up to 18 MiB of
 * shared host buffers, made when first needed and charged to this client.
 *
 * Without _async: in order with the default stream; the call returns when the copy is
 * done. With _async: in order with `stream`, and
 *   shared host buffer   returns at once; leave the memory alone until the copy is done
 *   ordinary, to device  returns when the source has been read; it may be reused then
 *   ordinary, from device  returns when the data has arrived
 * (CUDA's "API synchronization behavior"; for ordinary memory this is what it does.)
 *
 * A copy or fill enters its stream in pieces of at most 64 MiB, between which work of other
 * streams and clients may run. An asynchronous call waits while its stream's queue, of 1,024
 * pieces and launches, is full. If a call fails, some pieces may have been carried out.
 *
 * count 0 does nothing. The two ranges may not overlap. INVALID_VALUE for device
 * memory or a shared host buffer that is not within one allocation. OUT_OF_MEMORY if the
 * pinned-host limit has no room for staging.
 */

/* Host to device (cuMemcpyHtoD). */
GPUSHARE_API gpushare_error gpushare_copy_to_device(gpushare_connection *connection,
                                                    gpushare_address destination,
                                                    const void *source, uint64_t count);
GPUSHARE_API gpushare_error gpushare_copy_to_device_async(gpushare_connection *connection,
                                                          gpushare_address destination,
                                                          const void *source, uint64_t count,
                                                          gpushare_stream *stream);

/* Device to host (cuMemcpyDtoH). */
GPUSHARE_API gpushare_error gpushare_copy_from_device(gpushare_connection *connection,
                                                      void *destination, gpushare_address source,
                                                      uint64_t count);
GPUSHARE_API gpushare_error gpushare_copy_from_device_async(gpushare_connection *connection,
                                                            void *destination,
                                                            gpushare_address source, uint64_t count,
                                                            gpushare_stream *stream);

/*
 * Any direction, found from the addresses: an address outside this client's device memory and
 * shared host buffers is taken for ordinary memory of this process (cuMemcpy).
 */
GPUSHARE_API gpushare_error gpushare_copy(gpushare_connection *connection,
                                          gpushare_address destination, gpushare_address source,
                                          uint64_t count);
GPUSHARE_API gpushare_error gpushare_copy_async(gpushare_connection *connection,
                                                gpushare_address destination,
                                                gpushare_address source, uint64_t count,
                                                gpushare_stream *stream);

/*
 * Device memory of one connection to device memory of another of this process, on the
 * same device or another (cuMemcpyPeer). Goes through a host buffer of up to 8 MiB,
 * charged to the source's connection. Without _async it comes after what was issued in
 * the default streams of both. With _async, stream must be one of stream_connection's,
 * which is either of the two; the copy is in order with it alone.
 */
GPUSHARE_API gpushare_error gpushare_copy_peer(gpushare_connection *destination_connection,
                                               gpushare_address destination,
                                               gpushare_connection *source_connection,
                                               gpushare_address source, uint64_t count);
GPUSHARE_API gpushare_error gpushare_copy_peer_async(gpushare_connection *destination_connection,
                                                     gpushare_address destination,
                                                     gpushare_connection *source_connection,
                                                     gpushare_address source, uint64_t count,
                                                     gpushare_connection *stream_connection,
                                                     gpushare_stream *stream);

/*
 * Fills count elements of device memory with the low `width` bytes of value (cuMemsetD8,
 * D16, D32). width: 1, 2 or 4; destination must be a multiple of it, else INVALID_VALUE.
 */
GPUSHARE_API gpushare_error gpushare_fill(gpushare_connection *connection,
                                          gpushare_address destination, uint32_t value,
                                          uint32_t width, uint64_t count);
GPUSHARE_API gpushare_error gpushare_fill_async(gpushare_connection *connection,
                                                gpushare_address destination, uint32_t value,
                                                uint32_t width, uint64_t count,
                                                gpushare_stream *stream);

/* ---- events ------------------------------------------------------------------ */

/*
 * A flag of gpushare_event_create: the event takes the device's time. Without it an
 * event costs the server nothing, and orders and waits just as well. (CUDA has it the
 * other way round, CU_EVENT_DISABLE_TIMING.)
 */
#define GPUSHARE_EVENT_TIMING 1u

/* Makes an event (cuEventCreate). flags: 0 or the flag above. */
GPUSHARE_API gpushare_error gpushare_event_create(gpushare_connection *connection, uint32_t flags,
                                                  gpushare_event **event);

/* Destroys an event; NULL does nothing. Records and waits that were issued still count. */
GPUSHARE_API gpushare_error gpushare_event_destroy(gpushare_event *event);

/*
 * From now on the event stands for all work issued so far in the stream, and no longer for an
 * earlier record (cuEventRecord). The stream must be of the event's connection.
 */
GPUSHARE_API gpushare_error gpushare_event_record(gpushare_event *event, gpushare_stream *stream);

/* SUCCESS if the work that the event stands for is done or it was never recorded, NOT_READY if not,
 * INTERRUPTED if it was lost; see gpushare_stream_recover (cuEventQuery). */
GPUSHARE_API gpushare_error gpushare_event_query(gpushare_event *event);

/* Waits for the work that the event stands for; returns at once if it was never recorded.
 * INTERRUPTED if that work was lost (cuEventSynchronize). */
GPUSHARE_API gpushare_error gpushare_event_synchronize(gpushare_event *event);

/*
 * The device's time from start to end in milliseconds, negative if end came first
 * (cuEventElapsedTime). Both need GPUSHARE_EVENT_TIMING, a record, and one connection
 * (INVALID_HANDLE otherwise); NOT_READY if one of them is not done yet. STATE_LOST if the
 * server's worker was lost since one of them was recorded: its time was lost with it.
 */
GPUSHARE_API gpushare_error gpushare_event_elapsed(gpushare_event *start, gpushare_event *end,
                                                   double *milliseconds);

#ifdef __cplusplus
}
#endif

#endif
