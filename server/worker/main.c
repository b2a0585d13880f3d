/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpushare-worker: the process that owns the CUDA context of one GPU. Started by gpushared. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/ipc/channel.h"
#include "common/error.h"
#include "common/log.h"
#include "common/log_journal.h"
#include "common/messages.h"
#include "common/units.h"
#include "server/worker/calls/activity.h"
#include "server/worker/code/compiler_process.h"
#include "server/worker/control/control.h"
#include "server/worker/control/control_client.h"
#include "server/worker/device/device_list.h"
#include "server/worker/device/start_check.h"
#include "server/worker/standby.h"
#include "server/worker/worker.h"

struct options {
    const char *driver;
    int device;
    bool uuid_given;
    uint8_t uuid[16];
    const char *uuid_text;
    uint64_t device_base, host_base, arena_bytes;
    uint64_t orphan_seconds;                  /* 0: none */
    uint64_t kernel_heap;                     /* bytes; 0: as the driver has it */
    uint64_t image_memory;                    /* bytes; 0: the default of code_memory_open */
    uint64_t compile_seconds, compile_memory; /* 0: the defaults of compiler_open */
    int channel;
    int compile;  /* the process that wants a text compiled; 0: none */
    int activity; /* -1: none */
    int code;     /* -1: none */
    int standby;  /* enum standby_kind */
    bool list, version, help;
};

static const char usage[] =
    "usage: gpushare-worker --driver PATH --device N --device-base ADDRESS --host-base ADDRESS\n"
    "                       --arena-bytes BYTES --channel-fd FD [--uuid UUID] [--image-memory "
    "BYTES]\n"
    "                       [--compile-time SECONDS] [--compile-memory BYTES] [--activity-fd FD]\n"
    "                       [--orphan-limit SECONDS] [--kernel-heap BYTES]\n"
    "                       [--code-fd FD] [--standby none|driver|context]\n"
    "       gpushare-worker --compile PID --driver PATH --device N --compile-time SECONDS\n"
    "                       --compile-memory BYTES [--uuid UUID]\n"
    "       gpushare-worker --driver PATH --list [--device-base ADDRESS] [--host-base ADDRESS]\n"
    "                       [--arena-bytes BYTES]\n"
    "       gpushare-worker --version | --help\n";

static const char help[] =
    "\n"
    "gpushare-worker owns the CUDA context of one GPU and runs the kernels of its clients.\n"
    "gpushared starts it; only --list and --help are of use by hand. Numbers are decimal, or\n"
    "hexadecimal after 0x. All options of the first form but those in brackets are required.\n"
    "\n"
    "options:\n"
    "  --driver PATH  the CUDA driver's library, an absolute path\n"
    "  --device N     the driver's number of the GPU, 0 to 1023\n"
    "  --uuid UUID    the UUID of that GPU or MIG instance, 32 hexadecimal digits: --device then\n"
    "                 stands in messages only\n"
    "  --device-base ADDRESS\n"
    "                 where the range of addresses for clients' device memory begins\n"
    "  --host-base ADDRESS\n"
    "                 where the range of addresses for clients' host memory begins\n"
    "  --arena-bytes BYTES\n"
    "                 the size of each of these two ranges\n"
    "  --channel-fd FD\n"
    "                 the file descriptor of the socket to gpushared\n"
    "  --activity-fd FD\n"
    "                 the file descriptor of memory in which the worker notes what its threads do\n"
    "  --orphan-limit SECONDS\n"
    "                 end when gpushared has asked nothing for so long, up to 604800; 0 is never:\n"
    "                 the end of its socket is enough (default: 0)\n"
    "  --kernel-heap BYTES\n"
    "                 the heap from which the kernels of all clients allocate; 0 is the driver's\n"
    "                 own, made with the first module that needs it (default: 0)\n"
    "  --code-fd FD   the file descriptor of memory for compiled code, which outlives the worker\n"
    "  --image-memory BYTES\n"
    "                 the most memory for reading and keeping clients' modules; 0 is a quarter\n"
    "                 of the machine's memory (default: 0)\n"
    "  --compile-time SECONDS\n"
    "                 the most time for compiling one module's PTX, up to 604800; 0 is 60\n"
    "                 (default: 0)\n"
    "  --compile-memory BYTES\n"
    "                 the most memory for that; 0 is an eighth of the machine's memory, 512M at\n"
    "                 least (default: 0)\n"
    "  --standby none|driver|context\n"
    "                 whether to wait, before serving, until gpushared says so: once the driver\n"
    "                 is initialised, or with a context and all that is made before the first\n"
    "                 client (default: none)\n"
    "  --compile PID  compile a text for the worker of this number, which starts this program\n"
    "                 for that, and exit\n"
    "  --list         print the number and the UUID of each GPU of the driver and the ranges of\n"
    "                 addresses that clients' memory can have, and exit; ranges that options\n"
    "                 describe are tried alone\n"
    "  --version, -V  print the version of gpushare-worker, and exit\n"
    "  --help, -h     print this text, and exit\n"
    "\n"
    "exit status: 0 done, 1 failed, 2 wrong usage\n";

/* A week, as a bound on arithmetic. */
#define SECONDS_MAX    604800
#define DESCRIPTOR_MAX (1 << 20)

static bool parse_number(const char *text, uint64_t max, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno || end == text || *end || *text == '-' || value > max)
        return false;
    *number = value;
    return true;
}

static bool parse_uuid(const char *text, uint8_t uuid[16])
{
    if (strlen(text) != 32 || strspn(text, "0123456789abcdefABCDEF") != 32)
        return false;
    for (int i = 0; i < 16; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], 0};
        uuid[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return true;
}

/* Options that are a number and nothing else. */
static const struct number_option {
    char letter;
    enum { NUMBER_INT, NUMBER_LONG } kind; /* of the member: int, uint64_t */
    size_t at;
    uint64_t max;
} number_options[] = {
    {'n', NUMBER_INT, offsetof(struct options, device), 1023},
    {'b', NUMBER_LONG, offsetof(struct options, device_base), UINT64_MAX},
    {'B', NUMBER_LONG, offsetof(struct options, host_base), UINT64_MAX},
    {'a', NUMBER_LONG, offsetof(struct options, arena_bytes), UINT64_MAX},
    {'m', NUMBER_LONG, offsetof(struct options, image_memory), INT64_MAX},
    {'t', NUMBER_LONG, offsetof(struct options, compile_seconds), SECONDS_MAX},
    {'M', NUMBER_LONG, offsetof(struct options, compile_memory), INT64_MAX},
    {'H', NUMBER_LONG, offsetof(struct options, kernel_heap), INT64_MAX},
    {'O', NUMBER_LONG, offsetof(struct options, orphan_seconds), SECONDS_MAX},
    {'C', NUMBER_INT, offsetof(struct options, compile), INT32_MAX},
    {'c', NUMBER_INT, offsetof(struct options, channel), DESCRIPTOR_MAX},
    {'A', NUMBER_INT, offsetof(struct options, activity), DESCRIPTOR_MAX},
    {'o', NUMBER_INT, offsetof(struct options, code), DESCRIPTOR_MAX},
};

static const struct number_option *find_number(int option)
{
    for (size_t i = 0; i < sizeof number_options / sizeof *number_options; i++)
        if (number_options[i].letter == option)
            return &number_options[i];
    return NULL;
}

static bool set_number(struct options *options, const struct number_option *row, const char *value)
{
    uint64_t number;
    void *to = (char *)options + row->at;
    if (!parse_number(value, row->max, &number))
        return false;
    if (row->kind == NUMBER_INT)
        *(int *)to = (int)number;
    else
        *(uint64_t *)to = number;
    return true;
}

static bool parse_option(struct options *options, int option, const char *value)
{
    const struct number_option *number = find_number(option);
    if (number)
        return set_number(options, number, value);
    switch (option) {
    case 'd':
        options->driver = value;
        return value[0] == '/';
    case 'u':
        options->uuid_given = true;
        options->uuid_text = value;
        return parse_uuid(value, options->uuid);
    case 's':
        options->standby = standby_kind_of(value);
        return options->standby >= 0;
    case 'l':
        options->list = true;
        return true;
    case 'V':
        options->version = true;
        return true;
    case 'h':
        options->help = true;
        return true;
    default:
        return false;
    }
}

static bool parse_options(int argc, char *argv[], struct options *options)
{
    static const struct option known[] = {
        {"driver", required_argument, NULL, 'd'},
        {"device", required_argument, NULL, 'n'},
        {"uuid", required_argument, NULL, 'u'},
        {"device-base", required_argument, NULL, 'b'},
        {"host-base", required_argument, NULL, 'B'},
        {"arena-bytes", required_argument, NULL, 'a'},
        {"image-memory", required_argument, NULL, 'm'},
        {"compile-time", required_argument, NULL, 't'},
        {"compile-memory", required_argument, NULL, 'M'},
        {"compile", required_argument, NULL, 'C'},
        {"channel-fd", required_argument, NULL, 'c'},
        {"activity-fd", required_argument, NULL, 'A'},
        {"code-fd", required_argument, NULL, 'o'},
        {"standby", required_argument, NULL, 's'},
        {"orphan-limit", required_argument, NULL, 'O'},
        {"kernel-heap", required_argument, NULL, 'H'},
        {"list", no_argument, NULL, 'l'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    *options = (struct options){.device = -1, .channel = -1, .activity = -1, .code = -1};
    while ((option = getopt_long(argc, argv, "hV", known, NULL)) != -1)
        if (!parse_option(options, option, optarg ? optarg : "")) {
            fputs(usage, stderr);
            return false;
        }
    if (options->help || options->version || (options->list && options->driver && optind == argc))
        return true;
    if (options->compile && options->driver && options->device >= 0 && options->compile_seconds &&
        options->compile_memory && optind == argc)
        return true;
    if (!options->driver || options->device < 0 || !options->device_base || !options->host_base ||
        !options->arena_bytes || options->channel < 0 || optind != argc) {
        fputs(usage, stderr);
        return false;
    }
    return true;
}

static int give_up(const struct options *options, struct error *why)
{
    struct proto_worker_fault fault = {.error = why->number};
    error_prefix(why, "device %d: ", options->device);
    log_sentence(LOG_LEVEL_ERROR, why);
    snprintf(fault.text, sizeof fault.text, "%.*s", (int)sizeof fault.text - 1, why->text);
    channel_send(options->channel,
                 &(struct channel_packet){.opcode = PROTO_WORKER_FAULT, .body = &fault});
    return 1;
}

/* The warnings of a start. A standby sends them when it serves. */
struct findings {
    struct proto_worker_warning warnings[8];
    unsigned count;
};

static void note_warning(void *context, const struct proto_worker_warning *warning)
{
    struct findings *findings = context;
    if (findings->count < sizeof findings->warnings / sizeof *findings->warnings)
        findings->warnings[findings->count++] = *warning;
}

static void send_warnings(const struct options *options, const struct findings *findings)
{
    for (unsigned i = 0; i < findings->count; i++)
        channel_send_waiting(options->channel,
                             &(struct channel_packet){.opcode = PROTO_WORKER_WARNING,
                                                      .body = &findings->warnings[i]});
}

/* Waits if this is the place where a standby of this kind does. Returns whether to go on; if not,
 * *status is the exit status. */
static bool stand_by(const struct options *options, int kind, int *status)
{
    int result = options->standby == kind ? standby_wait(options->channel) : 0;
    if (result < 0)
        log_error(MESSAGE_TEXT(supervisor_channel), strerror(-result));
    *status = result < 0;
    return result == 0;
}

/* SIGALRM ends the process after these seconds, without another call of the driver: a call that
 * never returns must not make the worker outlive its supervisor.
 *
 * CALLS_SECONDS: while a thread may be in a call that waits for a kernel. Work in flight has one of
 * them to end, and the other is for a machine that is slow. On an H100 a process with a kernel on
 * the device was gone 0.3 s after it was killed.
 *
 * FREEING_SECONDS: when nothing runs on the device, so that no call waits for a kernel. It is
 * longer than the supervisor itself would wait before it kills. */
#define CALLS_SECONDS   2
#define FREEING_SECONDS 10

static int serve_supervisor(const struct options *options, const struct gpu *gpu)
{
    static struct worker worker;
    struct error why;
    if (worker_start(&worker, gpu, options->channel, options->image_memory, &why))
        return give_up(options, &why);
    const struct compiler_options compile = {.program = "/proc/self/exe",
                                             .driver = options->driver,
                                             .uuid = options->uuid_text,
                                             .device = options->device,
                                             .seconds = (uint32_t)options->compile_seconds,
                                             .memory = options->compile_memory,
                                             .store = options->code};
    if (compiler_open(&worker.compiler, &compile, &why)) {
        worker_stop(&worker);
        return give_up(options, &why);
    }
    known_images_share(&worker.known_images, &worker.compiler.cache);
    if (!ptx_link_offered(gpu->cuda))
        log_warning(MESSAGE_TEXT(compiler_lacking), (unsigned)options->device);
    struct findings findings = {.count = 0};
    start_check_run(gpu, worker.ends.refused, note_warning, &findings);
    int status;
    if (!stand_by(options, STANDBY_CONTEXT, &status)) {
        worker_stop(&worker);
        return status;
    }
    send_warnings(options, &findings);
    worker.orphan_ns = options->orphan_seconds * UNITS_SECOND;
    int result = control_serve(&worker);
    /* After a fault every call of the driver fails and the driver's threads may hang, so the
     * process leaves cleaning up to the kernel. */
    if (result == CONTROL_CONTEXT_LOST)
        _exit(1);
    if (result < 0)
        log_error(MESSAGE_TEXT(supervisor_channel), strerror(-result));
    /* Nothing is freed under a running kernel: if one goes on, the kernel of the system cleans up.
     */
    alarm(CALLS_SECONDS);
    if (!control_client_drain(&worker))
        _exit(1);
    alarm(FREEING_SECONDS);
    control_client_drop_all(&worker);
    worker_stop(&worker);
    return result == CONTROL_SUPERVISOR_GONE ? 0 : 1;
}

static int list_devices(const struct options *options)
{
    const struct arena only = {
        .device_base = options->device_base ? options->device_base : ARENA_DEVICE_BASE,
        .host_base = options->host_base ? options->host_base : ARENA_HOST_BASE,
        .bytes = options->arena_bytes ? options->arena_bytes : ARENA_BYTES,
    };
    bool named = options->device_base || options->host_base || options->arena_bytes;
    return device_list_print(options->driver, named ? &only : NULL, stdout);
}

static int compile_text(const struct options *options)
{
    const struct compiler_process process = {
        .driver = options->driver,
        .device = options->device,
        .uuid = options->uuid_given ? options->uuid : NULL,
        .seconds = (uint32_t)options->compile_seconds,
        .memory = options->compile_memory,
        .parent = options->compile,
    };
    return compiler_process_run(&process);
}

/* The driver writes what kernels print to standard output. In the server's log nobody could tell a
 * client's words from the server's own. */
static bool turn_output_away(struct error *why)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool away = null >= 0 && dup2(null, STDOUT_FILENO) >= 0;
    if (!away)
        error_set(why, MESSAGE(worker_output), strerror(errno));
    if (null > STDOUT_FILENO)
        close(null);
    return away;
}

int main(int argc, char *argv[])
{
    struct options options;
    struct cuda_driver driver;
    struct gpu gpu;
    struct error why;
    if (!parse_options(argc, argv, &options))
        return 2;
    if (options.version)
        return puts("gpushare-worker " GPUSHARE_VERSION) < 0 || fflush(stdout) != 0;
    if (options.help)
        return fputs(usage, stdout) < 0 || fputs(help, stdout) < 0 || fflush(stdout) != 0;
    if (options.list)
        return list_devices(&options);
    if (options.compile)
        return compile_text(&options);
    log_open("gpushare-worker", LOG_LEVEL_INFO, log_journal_form());
    if (!turn_output_away(&why))
        return give_up(&options, &why);
    signal(SIGPIPE, SIG_IGN);
    /* The supervisor decides when a worker ends; Ctrl-C in a terminal reaches the whole group. */
    signal(SIGINT, SIG_IGN);
    int noted = options.activity < 0 ? 0 : activity_open(options.activity);
    if (noted < 0) {
        error_set(&why, MESSAGE(activity_memory), strerror(-noted));
        return give_up(&options, &why);
    }
    activity_begin(ACTIVITY_CONTROL);
    if (cuda_driver_open(&driver, options.driver, &why))
        return give_up(&options, &why);
    activity_watch(&driver);
    int status = 0;
    uint32_t error =
        gpu_open_driver(&gpu,
                        &(struct gpu_options){
                            .cuda = &driver,
                            .ordinal = options.device,
                            .uuid = options.uuid_given ? options.uuid : NULL,
                            .heap_bytes = options.kernel_heap,
                            .arena = {options.device_base, options.host_base, options.arena_bytes}},
                        &why);
    bool goes_on = error || stand_by(&options, STANDBY_DRIVER, &status);
    if (!error && goes_on)
        error = gpu_open_context(&gpu, options.device, &why);
    if (error)
        status = give_up(&options, &why);
    else if (goes_on)
        status = serve_supervisor(&options, &gpu);
    else
        gpu_close(&gpu);
    cuda_driver_close(&driver);
    return status;
}
