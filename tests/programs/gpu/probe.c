/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/gpu/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"

enum { CALL_MAX = 160, GROUPS_MAX = 256 };

struct cuda_driver cu;
struct extra_driver extra;
const char *probe_library;
const char *probe_folder;

__asm__(".section .rodata\n.balign 16\nprobe_ptx_text:\n.incbin "
        "\"tests/programs/gpu/kernels/probe.ptx\"\n.byte 0\n.previous\n");
extern const char probe_ptx_text[];

const char *probe_ptx(void)
{
    return probe_ptx_text;
}

/* ---- words to the runner -------------------------------------------------------- */
static void say_line(const char *kind, const char *name, const char *format, va_list arguments)
{
    char text[1000];
    vsnprintf(text, sizeof text, format, arguments);
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    if (name)
        printf("@%s %s %s\n", kind, name, text);
    else
        printf("@%s %s\n", kind, text);
    /* A step may be killed at any moment: what it has said must be out. */
    fflush(stdout);
}

#define SAY(function, kind, name_parameter, name)                                                  \
    void function(name_parameter const char *format, ...)                                          \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        say_line(kind, name, format, arguments);                                                   \
        va_end(arguments);                                                                         \
    }
#define NAMED const char *name,
#define UNNAMED
SAY(probe_held, "held", NAMED, name)
SAY(probe_false, "false", NAMED, name)
SAY(probe_unknown, "unknown", NAMED, name)
SAY(probe_fact, "fact", NAMED, name)
SAY(probe_passed, "passed", UNNAMED, NULL)
SAY(probe_failed, "failed", UNNAMED, NULL)
SAY(probe_not_met, "notmet", UNNAMED, NULL)
SAY(probe_not_run, "notrun", UNNAMED, NULL)
SAY(probe_note, "note", UNNAMED, NULL)

void probe_judge(bool holds, const char *assumption, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_line(holds ? "held" : "false", assumption, format, arguments);
    va_end(arguments);
}

void probe_measure(const char *name, double value, const char *unit)
{
    printf("@measure %s %.6g %s\n", name, value, unit);
    fflush(stdout);
}

void probe_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_line("cannot", NULL, format, arguments);
    va_end(arguments);
    probe_end(1);
}

static void (*at_end)(void);

void probe_at_end(void (*last_words)(void))
{
    at_end = last_words;
}

void probe_end(int status)
{
    void (*last_words)(void) = at_end;
    at_end = NULL;
    if (last_words)
        last_words();
    fflush(NULL);
    _exit(status);
}

void probe_call(const char *call)
{
    /* The text of an expression; its function's name is enough. */
    char name[CALL_MAX];
    const char *start = strncmp(call, "cu.", 3) == 0      ? call + 3
                        : strncmp(call, "extra.", 6) == 0 ? call + 6
                                                          : call;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "("), start);
    printf("@call %s\n", name);
    fflush(stdout);
}

const char *probe_error(cuda_result result)
{
    static _Thread_local char text[120];
    const char *name = cuda_driver_error_name(result);
    snprintf(text, sizeof text, "%s (%d)", name ? name : "an error without a name", (int)result);
    return text;
}

void probe_check(cuda_result result, const char *call)
{
    if (result != CUDA_OK)
        probe_die("%s: %s", call, probe_error(result));
}

/* ---- the driver ------------------------------------------------------------------- */

/* Stand in for entries that the library lacks, so that a step which needs one ends with its name
 * instead of a crash. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wshadow"
#define X(name, symbol, version, need, params)                                                     \
    static cuda_result lacking_##name params                                                       \
    {                                                                                              \
        probe_die("the driver has no " #name);                                                     \
    }
CUDA_DRIVER_ENTRIES(X)
#undef X
#pragma GCC diagnostic pop

static void replace_lacking(void)
{
#define X(name, symbol, version, need, params)                                                     \
    if (need && !cu.name)                                                                          \
        cu.name = lacking_##name;
    CUDA_DRIVER_ENTRIES(X)
#undef X
}

void probe_open(void)
{
    struct error why = {0};
    probe_call("dlopen(driver)");
    if (cuda_driver_open_partly(&cu, probe_library, &why))
        probe_die("%s", why.text);
    replace_lacking();
    extra_open(&extra, &cu);
    CU(cu.cuInit(0));
}

void probe_context(void)
{
    cuda_context context;
    CU(cu.cuDevicePrimaryCtxRetain(&context, 0));
    CU(cu.cuCtxSetCurrent(context));
}

cuda_function probe_function(const char *name)
{
    static cuda_module module;
    cuda_function function;
    if (!module)
        CU(cu.cuModuleLoadData(&module, probe_ptx()));
    CU_QUIET(cu.cuModuleGetFunction(&function, module, name));
    return function;
}

int probe_attribute(cuda_device_attribute attribute)
{
    int value = -1;
    if (cu.cuDeviceGetAttribute(&value, attribute, 0) != CUDA_OK)
        return -1;
    return value;
}

cuda_mem_allocation_prop probe_properties(void)
{
    return (cuda_mem_allocation_prop){.type = CUDA_MEM_ALLOCATION_PINNED,
                                      .requested_handle_types = CUDA_MEM_HANDLE_POSIX_FD,
                                      .location = {CUDA_MEM_LOCATION_DEVICE, 0}};
}

size_t probe_granularity(void)
{
    cuda_mem_allocation_prop properties = probe_properties();
    size_t bytes;
    CU(cu.cuMemGetAllocationGranularity(&bytes, &properties, CUDA_MEM_GRANULARITY_MINIMUM));
    return bytes;
}

void probe_map(cuda_device_ptr address, size_t bytes, cuda_mem_handle handle)
{
    cuda_mem_access_desc access = {{CUDA_MEM_LOCATION_DEVICE, 0}, CUDA_MEM_ACCESS_READWRITE};
    CU(cu.cuMemMap(address, bytes, 0, handle, 0));
    CU(cu.cuMemSetAccess(address, bytes, &access, 1));
}

void *probe_host(size_t bytes, cuda_device_ptr *device)
{
    void *host;
    CU(cu.cuMemHostAlloc(&host, bytes, CUDA_HOST_ALLOC_DEVICEMAP | CUDA_HOST_ALLOC_PORTABLE));
    memset(host, 0, bytes);
    CU(cu.cuMemHostGetDevicePointer(device, host, 0));
    return host;
}

void probe_launch(const char *kernel, unsigned blocks, unsigned threads, cuda_stream stream,
                  void **parameters)
{
    CU(cu.cuLaunchKernel(probe_function(kernel), blocks, 1, 1, threads, 1, 1, 0, stream, parameters,
                         NULL));
}

void probe_launch_last(cuda_stream stream, uint64_t ns)
{
    unsigned long long duration = ns;
    void *parameters[] = {&duration};
    probe_launch("last", 1, 32, stream, parameters);
}

/* ---- partitions --------------------------------------------------------------------- */
static void create_plain_streams(struct probe_partition *partitions, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        partitions[i] = (struct probe_partition){
            .sms = (unsigned)probe_attribute(CUDA_ATTR_MULTIPROCESSOR_COUNT)};
        CU(cu.cuStreamCreate(&partitions[i].stream, CUDA_STREAM_NON_BLOCKING));
    }
}

bool probe_partitions(struct probe_partition *partitions, unsigned count, unsigned min_sms)
{
    if (!cuda_driver_has_green_contexts(&cu)) {
        printf("this driver has no green contexts: plain streams instead\n");
        create_plain_streams(partitions, count);
        return false;
    }
    /* All zero: from CUDA 13.1 on the last bytes are a pointer to a further resource. */
    static cuda_dev_resource whole, rest, groups[GROUPS_MAX];
    cuda_resource_desc desc;
    unsigned made = count;
    CU(cu.cuDeviceGetDevResource(0, &whole, CUDA_RESOURCE_SM));
    CU(cu.cuDevSmResourceSplitByCount(groups, &made, &whole, &rest, 0, min_sms));
    if (made < count)
        probe_die("the device splits into %u groups of %u multiprocessors, %u are needed", made,
                  min_sms, count);
    for (unsigned i = 0; i < count; i++) {
        partitions[i].sms = groups[i].sm.sm_count;
        CU(cu.cuDevResourceGenerateDesc(&desc, &groups[i], 1));
        CU(cu.cuGreenCtxCreate(&partitions[i].green, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM));
        CU(cu.cuGreenCtxStreamCreate(&partitions[i].stream, partitions[i].green,
                                     CUDA_STREAM_NON_BLOCKING, 0));
    }
    return true;
}

/* ---- clocks and numbers ---------------------------------------------------------------- */
uint64_t probe_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void probe_sleep_ms(unsigned ms)
{
    struct timespec rest = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
        ;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double probe_quantile(double *values, size_t count, double part)
{
    if (!count)
        return 0;
    qsort(values, count, sizeof *values, compare_doubles);
    size_t i = (size_t)(part * (double)count);
    return values[i < count ? i : count - 1];
}

/* ---- other processes --------------------------------------------------------------------- */
int probe_spawn(const char *part, const char *argument, int *socket)
{
    int pair[2] = {-1, -1};
    if (socket && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        probe_die("no socket: %s", strerror(errno));
    fflush(stdout);
    int child = fork();
    if (child < 0)
        probe_die("no process: %s", strerror(errno));
    if (child == 0) {
        if (socket && dup2(pair[1], 3) < 0)
            _exit(126);
        execl("/proc/self/exe", "checks", "part", part, argument, probe_library, (char *)NULL);
        _exit(127);
    }
    if (socket) {
        close(pair[1]);
        *socket = pair[0];
    }
    return child;
}

union fd_message {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

void probe_send_fd(int socket, int fd)
{
    union fd_message control = {{0}};
    char byte = 'f';
    struct iovec part = {&byte, 1};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (sendmsg(socket, &header, MSG_NOSIGNAL) != 1)
        probe_die("a descriptor could not be sent: %s", strerror(errno));
}

int probe_receive_fd(int socket)
{
    union fd_message control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    if (recvmsg(socket, &header, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&header))
        probe_die("the other process ended without sending its descriptor");
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
    return fd;
}
