/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/settings.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cuda/driver_paths.h"
#include "common/option.h"
#include "common/ipc/arena.h"
#include "common/id_name.h"
#include "common/limits/dialect.h"
#include "common/log.h"
#include "common/log_journal.h"
#include "common/machine.h"
#include "common/messages.h"
#include "common/units.h"
#include "protocol.h"
#include "server/supervisor/account/address_plan.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/loop/notify.h"

/* Until the options were read: the pool has its usual part of --host-memory-total. */
#define POOL_UNSET UINT64_MAX
#define POOL_PART  8
/* PyTorch makes 32 streams of each of four priorities beside the default one. A stream costs memory
 * once it is used, and until then a few words in the tables of the client and the worker. */
#define STREAMS_DEFAULT  512
#define HELLO_TIMEOUT_MS 5000
#define OFFENDER_WAIT_NS UNITS_SECOND
#define CLIENTS_MAX      100000
#define ORPHAN_SECONDS   30

static const char *const nvidia_paths[] = {DRIVER_PATHS};

#define STRING_OF(text) #text
#define STRING(macro)   STRING_OF(macro)
#define STREAMS_TEXT    STRING(STREAMS_DEFAULT)

static const char usage[] =
    "usage: gpushared [OPTION]...\n"
    "\n"
    "gpushared lets many processes share the GPUs of this machine. It serves clients until\n"
    "SIGTERM or Ctrl-C ends it. A SIZE is a number of bytes, or a number with K, M, G or T\n"
    "(powers of 1024). A TIME has a unit: ns, us, ms, s, min or h.\n"
    "\n"
    "options:\n"
    "  --driver nvidia|softgpu|PATH\n"
    "                 the CUDA driver: NVIDIA's, the software GPU, or the library at PATH\n"
    "                 (default: nvidia); gpushared never changes to another driver by itself\n"
    "  --config PATH  the file of limits, rules and profiles; it is read again on SIGHUP and\n"
    "                 on `gpusharectl reload` (default: " CONFIG_PATH ", if it\n"
    "                 exists)\n"
    "  --check-config\n"
    "                 report the first mistake in that file, or that it has none, and exit\n"
    "  --state-dir PATH\n"
    "                 the folder of what gpusharectl set --save keeps over restarts (default:\n"
    "                 $STATE_DIRECTORY, which systemd sets; without it nothing is kept)\n"
    "  --accounting PATH\n"
    "                 the file to which each client's use is appended as JSON, for `gpusharectl\n"
    "                 report`, unless the configuration names one (default: none)\n"
    "  --socket PATH  the socket for clients (default: $GPUSHARE_SOCKET, else gpushare.sock\n"
    "                 in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/gpushare or /run/gpushare)\n"
    "  --admin-socket PATH\n"
    "                 the socket for gpusharectl (default: admin.sock beside the socket for\n"
    "                 clients)\n"
    "  --admin-uid USER\n"
    "                 a user, by uid or name, who may set, kill, reload and trace, as root\n"
    "                 may; up to 64 times\n"
    "                 (default: root, and the server's own user if it makes the admin\n"
    "                 socket itself)\n"
    "  --max-clients N\n"
    "                 the most clients at a time, 1 to 100000 (default: as many as the limit\n"
    "                 of file descriptors allows)\n"
    "  --max-clients-per-user N\n"
    "                 the most clients of one user at a time (default: three quarters of all)\n"
    "  --streams N    the streams of each client, 1 to 4096 (default: " STREAMS_TEXT ")\n"
    "  --max-window SIZE\n"
    "                 the largest range of addresses for one client's device memory, and for its\n"
    "                 pinned host memory; so it bounds both; a power of two of at least 16M\n"
    "                 (default: the device's memory, rounded up)\n"
    "  --host-memory-total SIZE\n"
    "                 the most pinned host memory of all clients together (default: a quarter\n"
    "                 of the machine's memory)\n"
    "  --pinned-pool SIZE\n"
    "                 the most of it that stays registered when its client has freed it or left,\n"
    "                 for later clients of the same user; 0 is none (default: an eighth of\n"
    "                 --host-memory-total)\n"
    "  --kernel-heap SIZE\n"
    "                 the heap of each GPU from which the kernels of all clients allocate\n"
    "                 (default: as the driver has it, which is 8M)\n"
    "  --image-memory SIZE\n"
    "                 the most memory that a worker uses to read and keep clients' modules\n"
    "                 (default: a quarter of the machine's memory)\n"
    "  --compile-time TIME\n"
    "                 the most time for compiling one module's PTX, 1s to 168h (default: 60s)\n"
    "  --compile-memory SIZE\n"
    "                 the most memory for that, beyond what the driver takes to start\n"
    "                 (default: an eighth of the machine's memory, 512M at least)\n"
    "  --hello-timeout TIME\n"
    "                 how long a new connection may take to say hello, 1s to 1h (default: 5s)\n"
    "  --watchdog-warning TIME\n"
    "                 a GPU's worker that does not answer for so long is shown as silent,\n"
    "                 like 500ms or 5s; 0 is never; for GPUs without a watchdog_warning in\n"
    "                 the configuration (default: 2s)\n"
    "  --watchdog-limit TIME\n"
    "                 and is replaced after so long, which interrupts its clients; for GPUs\n"
    "                 without a watchdog_limit (default: 10s)\n"
    "  --standby none|driver|context\n"
    "                 how far a process is prepared that takes over when a GPU's worker is lost;\n"
    "                 for GPUs without a standby in the configuration (default: none)\n"
    "  --departed-time-limit TIME\n"
    "                 the time for work whose client is gone, counted while other clients\n"
    "                 wait; then the worker is replaced, which interrupts them; 0 is any; for\n"
    "                 GPUs without a departed_time_limit (default: 10s)\n"
    "  --offender-wait TIME\n"
    "                 new clients of a user whose kernels made GPUs fail twice wait for so long\n"
    "                 after the second fault, and twice as long after each further one, up to\n"
    "                 5min; 0 is not at all (default: 1s)\n"
    "  --orphan-limit TIME\n"
    "                 where clients outlive the server: how long a GPU's worker waits for the\n"
    "                 next server before it ends, 1s to 1h (default: 30s)\n"
    "  --device-base ADDRESS, --host-base ADDRESS\n"
    "                 where the ranges of addresses for clients' device memory and host memory\n"
    "                 begin (default: 0x200000000000 and 0x300000000000, or others if the driver\n"
    "                 does not give these)\n"
    "  --arena SIZE   the size of each of these two ranges, a power of two (default: 16T, 4T or\n"
    "                 1T, as the driver gives)\n"
    "  --allow-host-access\n"
    "                 serve several users at a time on a GPU whose kernels can use all memory\n"
    "                 of the worker (default: one user at a time there)\n"
    "  --worker PATH  the program gpushare-worker (default: the one installed or built with\n"
    "                 gpushared)\n"
    "  --softgpu PATH\n"
    "                 the software GPU's libcuda.so.1 (default: the one installed or built with\n"
    "                 gpushared)\n"
    "  --log-level error|warning|notice|info|debug\n"
    "                 the least important messages that are logged to standard error (default:\n"
    "                 info)\n"
    "  --list-variables\n"
    "                 print the environment variables of gpushare and of CUDA that set limits or\n"
    "                 choose what is shared and how, each with its readers, and exit\n"
    "  --list-messages\n"
    "                 print the messages that programs get, each with its name, and exit\n"
    "  --version, -V  print the versions of gpushared and of the protocol, and exit\n"
    "  --help, -h     print this text, and exit\n"
    "\n"
    "environment:\n";

/* Between these two stand the variables of limits. */
static const char usage_end[] =
    "  GPUSHARE_MODE, GPUSHARE_LEASE, GPUSHARE_PRECISION, GPUSHARE_QUANTUM,\n"
    "  GPUSHARE_WINDOW_LIMIT, GPUSHARE_LOCAL_MEMORY\n"
    "                 how GPUs are shared where the configuration does not say it (default:\n"
    "                 concurrent, 250ms, 5%, 30s, 500ms, 1K)\n"
    "  GPUSHARE_VISIBLE_DEVICES\n"
    "                 which GPUs are served, by index or UUID (default: all)\n"
    "The log warns of a variable whose name begins with GPUSHARE_ and that neither\n"
    "gpushared nor a client reads.\n"
    "\n"
    "exit status: 0 stopped by a signal, or done; 1 failed, or the configuration\n"
    "file has a mistake; 2 wrong usage, or a variable's value; 3 could not take over from\n"
    "another server: the next start may\n";

void settings_default(struct settings *settings)
{
    uint64_t memory = machine_memory();
    *settings = (struct settings){.driver_name = "nvidia",
                                  .socket_fd = -1,
                                  .admin_socket_fd = -1,
                                  .streams = STREAMS_DEFAULT,
                                  .device_base = ARENA_DEVICE_BASE,
                                  .host_base = ARENA_HOST_BASE,
                                  .arena_bytes = ARENA_BYTES,
                                  .machine_memory = memory,
                                  .host_total = memory / 4,
                                  .host_client = memory / 16,
                                  .hello_timeout_ms = HELLO_TIMEOUT_MS,
                                  .offender_wait_ns = OFFENDER_WAIT_NS,
                                  .orphan_seconds = ORPHAN_SECONDS,
                                  .log_level = LOG_LEVEL_INFO,
                                  .schedule = schedule_default()};
    settings->limits.allowance = allowance_none;
}

static uint32_t option_refuse(struct error *why, const char *name, const char *value,
                              const char *form)
{
    return error_set(why, MESSAGE(option_value), name, value, form);
}

/* A relative path must mean the same when the server has another working directory later. */
static uint32_t set_path(char to[PATH_MAX], const char *name, const char *value, struct error *why)
{
    char folder[PATH_MAX] = "";
    int length = -1;
    if (value[0] == '/')
        length = snprintf(to, PATH_MAX, "%s", value);
    else if (value[0] && getcwd(folder, sizeof folder))
        length = snprintf(to, PATH_MAX, "%s/%s", folder, value);
    return length > 0 && length < PATH_MAX ? 0 : option_refuse(why, name, value, "a path");
}

static uint32_t set_size(uint64_t *to, const char *name, const char *value, struct error *why)
{
    char room[DIALECT_FORM_ROOM];
    if (dialect_unit_is_missing(value, strlen(value)) ||
        units_parse_size(value, strlen(value), to) < 0 || !*to)
        return option_refuse(
            why, name, value,
            dialect_form("a size above 0, like 512M or 4G", false, value, strlen(value), room));
    return 0;
}

static uint32_t set_size_or_none(uint64_t *to, const char *name, const char *value,
                                 struct error *why)
{
    char room[DIALECT_FORM_ROOM];
    if (dialect_unit_is_missing(value, strlen(value)) ||
        units_parse_size(value, strlen(value), to) < 0)
        return option_refuse(
            why, name, value,
            dialect_form("a size, like 512M or 4G, or 0", false, value, strlen(value), room));
    return 0;
}

static uint32_t set_number(uint32_t *to, uint64_t least, uint64_t most, const char *name,
                           const char *value, struct error *why)
{
    uint64_t number;
    char form[64];
    snprintf(form, sizeof form, "a number from %llu to %llu", (unsigned long long)least,
             (unsigned long long)most);
    if (units_parse_number(value, strlen(value), most, &number) < 0 || number < least)
        return option_refuse(why, name, value, form);
    *to = (uint32_t)number;
    return 0;
}

/* Whole seconds. Older command lines have a number without a unit. */
static uint32_t set_seconds(uint32_t *to, uint64_t least, uint64_t most, const char *name,
                            const char *value, struct error *why)
{
    uint64_t ns;
    char first[UNITS_TEXT], last[UNITS_TEXT], form[160];
    snprintf(form, sizeof form,
             "a time of whole seconds from %s to %s (units: %s), like 30s or 1min",
             units_format_duration(least * UNITS_SECOND, first),
             units_format_duration(most * UNITS_SECOND, last), UNITS_DURATIONS);
    if (units_parse_seconds(value, strlen(value), &ns) < 0 || ns % UNITS_SECOND ||
        ns < least * UNITS_SECOND || ns > most * UNITS_SECOND)
        return option_refuse(why, name, value, form);
    *to = (uint32_t)(ns / UNITS_SECOND);
    return 0;
}

static uint32_t set_limit(uint64_t *to, const char *name, const char *value, struct error *why)
{
    if (schedule_read_limit(value, strlen(value), to) < 0)
        return option_refuse(why, name, value, SCHEDULE_FORM_LIMIT);
    return 0;
}

static uint32_t set_address(uint64_t *to, const char *name, const char *value, struct error *why)
{
    char *end;
    errno = 0;
    *to = strtoull(value, &end, 0);
    if (errno || end == value || *end || *value == '-' || !*to)
        return option_refuse(why, name, value, "an address like 0x200000000000");
    return 0;
}

static uint32_t set_standby(struct settings *settings, const char *value, struct error *why)
{
    struct error unused;
    if (schedule_set(&settings->schedule, SCHEDULE_STANDBY, value, strlen(value), &unused))
        return option_refuse(why, "--standby", value, SCHEDULE_FORM_STANDBY);
    return 0;
}

static uint32_t set_driver(struct settings *settings, const char *value, struct error *why)
{
    if (!strcmp(value, "nvidia") || !strcmp(value, "softgpu")) {
        strcpy(settings->driver_name, value);
        settings->driver[0] = 0;
        return 0;
    }
    strcpy(settings->driver_name, "path");
    if (!strchr(value, '/'))
        return option_refuse(why, "--driver", value, "nvidia, softgpu or a path with a slash");
    return set_path(settings->driver, "--driver", value, why);
}

static uint32_t set_log_level(struct settings *settings, const char *value, struct error *why)
{
    if (log_level_find(value, &settings->log_level) == 0)
        return 0;
    return option_refuse(why, "--log-level", value, "error, warning, notice, info or debug");
}

static uint32_t add_admin(struct settings *settings, const char *value, struct error *why)
{
    uint32_t uid = 0;
    if (settings->admin_count == SETTINGS_ADMINS_MAX) {
        return error_set(why, MESSAGE(option_admins_max), SETTINGS_ADMINS_MAX);
    }
    uint32_t error;
    if (id_name_is_possible(value)) {
        error = id_name_find(ID_NAME_USER, value, &uid, why);
        if (error)
            error_prefix(why, "--admin-uid: ");
    } else {
        /* UINT32_MAX is what the kernel calls "no uid". */
        error = set_number(&uid, 0, UINT32_MAX - 1, "--admin-uid", value, why);
    }
    if (!error)
        settings->admins[settings->admin_count++] = uid;
    return error;
}

enum option_name {
    OPTION_DRIVER = 256,
    OPTION_CONFIG,
    OPTION_CHECK_CONFIG,
    OPTION_STATE_DIR,
    OPTION_ACCOUNTING,
    OPTION_SOCKET,
    OPTION_ADMIN_SOCKET,
    OPTION_ADMIN_UID,
    OPTION_MAX_CLIENTS,
    OPTION_MAX_USER_CLIENTS,
    OPTION_STREAMS,
    OPTION_MAX_WINDOW,
    OPTION_HOST_MEMORY_TOTAL,
    OPTION_PINNED_POOL,
    OPTION_KERNEL_HEAP,
    OPTION_IMAGE_MEMORY,
    OPTION_COMPILE_TIME,
    OPTION_COMPILE_MEMORY,
    OPTION_HELLO_TIMEOUT,
    OPTION_WATCHDOG_WARNING,
    OPTION_WATCHDOG_LIMIT,
    OPTION_STANDBY,
    OPTION_DEPARTED_TIME_LIMIT,
    OPTION_OFFENDER_WAIT,
    OPTION_ORPHAN_LIMIT,
    OPTION_DEVICE_BASE,
    OPTION_HOST_BASE,
    OPTION_ARENA,
    OPTION_ALLOW_HOST_ACCESS,
    OPTION_WORKER,
    OPTION_SOFTGPU,
    OPTION_LOG_LEVEL,
    OPTION_LIST_VARIABLES,
    OPTION_LIST_MESSAGES,
    OPTION_VERSION,
    OPTION_HELP
};

static const struct option options[] = {
    {"driver", required_argument, NULL, OPTION_DRIVER},
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"check-config", no_argument, NULL, OPTION_CHECK_CONFIG},
    {"state-dir", required_argument, NULL, OPTION_STATE_DIR},
    {"accounting", required_argument, NULL, OPTION_ACCOUNTING},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"admin-socket", required_argument, NULL, OPTION_ADMIN_SOCKET},
    {"admin-uid", required_argument, NULL, OPTION_ADMIN_UID},
    {"max-clients", required_argument, NULL, OPTION_MAX_CLIENTS},
    {"max-clients-per-user", required_argument, NULL, OPTION_MAX_USER_CLIENTS},
    {"streams", required_argument, NULL, OPTION_STREAMS},
    {"max-window", required_argument, NULL, OPTION_MAX_WINDOW},
    {"host-memory-total", required_argument, NULL, OPTION_HOST_MEMORY_TOTAL},
    {"pinned-pool", required_argument, NULL, OPTION_PINNED_POOL},
    {"kernel-heap", required_argument, NULL, OPTION_KERNEL_HEAP},
    {"image-memory", required_argument, NULL, OPTION_IMAGE_MEMORY},
    {"compile-time", required_argument, NULL, OPTION_COMPILE_TIME},
    {"compile-memory", required_argument, NULL, OPTION_COMPILE_MEMORY},
    {"hello-timeout", required_argument, NULL, OPTION_HELLO_TIMEOUT},
    {"watchdog-warning", required_argument, NULL, OPTION_WATCHDOG_WARNING},
    {"watchdog-limit", required_argument, NULL, OPTION_WATCHDOG_LIMIT},
    {"standby", required_argument, NULL, OPTION_STANDBY},
    {"departed-time-limit", required_argument, NULL, OPTION_DEPARTED_TIME_LIMIT},
    {"offender-wait", required_argument, NULL, OPTION_OFFENDER_WAIT},
    {"orphan-limit", required_argument, NULL, OPTION_ORPHAN_LIMIT},
    {"device-base", required_argument, NULL, OPTION_DEVICE_BASE},
    {"host-base", required_argument, NULL, OPTION_HOST_BASE},
    {"arena", required_argument, NULL, OPTION_ARENA},
    {"allow-host-access", no_argument, NULL, OPTION_ALLOW_HOST_ACCESS},
    {"worker", required_argument, NULL, OPTION_WORKER},
    {"softgpu", required_argument, NULL, OPTION_SOFTGPU},
    {"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
    {"list-variables", no_argument, NULL, OPTION_LIST_VARIABLES},
    {"list-messages", no_argument, NULL, OPTION_LIST_MESSAGES},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static uint32_t set_arena(struct settings *s, int option, const char *value, struct error *why)
{
    s->arena_named = true;
    if (option == OPTION_DEVICE_BASE)
        return set_address(&s->device_base, "--device-base", value, why);
    if (option == OPTION_HOST_BASE)
        return set_address(&s->host_base, "--host-base", value, why);
    return set_size(&s->arena_bytes, "--arena", value, why);
}

static enum settings_page page_of(int option)
{
    return option == OPTION_LIST_VARIABLES  ? SETTINGS_PAGE_VARIABLES
           : option == OPTION_LIST_MESSAGES ? SETTINGS_PAGE_MESSAGES
           : option == OPTION_VERSION       ? SETTINGS_PAGE_VERSION
                                            : SETTINGS_PAGE_HELP;
}

/* Options that set one member and nothing else. */
static const struct plain_option {
    int option;
    const char *name;
    enum { PLAIN_NUMBER, PLAIN_SECONDS, PLAIN_SIZE, PLAIN_LIMIT, PLAIN_PATH } kind;
    size_t at;
    uint32_t least, most; /* of a number, or of seconds */
} plain_options[] = {
    {OPTION_STATE_DIR, "--state-dir", PLAIN_PATH, offsetof(struct settings, state), 0, 0},
    {OPTION_ACCOUNTING, "--accounting", PLAIN_PATH, offsetof(struct settings, accounting), 0, 0},
    {OPTION_SOCKET, "--socket", PLAIN_PATH, offsetof(struct settings, socket), 0, 0},
    {OPTION_ADMIN_SOCKET, "--admin-socket", PLAIN_PATH, offsetof(struct settings, admin_socket), 0,
     0},
    {OPTION_WORKER, "--worker", PLAIN_PATH, offsetof(struct settings, worker), 0, 0},
    {OPTION_MAX_CLIENTS, "--max-clients", PLAIN_NUMBER, offsetof(struct settings, max_clients), 1,
     CLIENTS_MAX},
    {OPTION_MAX_USER_CLIENTS, "--max-clients-per-user", PLAIN_NUMBER,
     offsetof(struct settings, max_user_clients), 1, CLIENTS_MAX},
    {OPTION_STREAMS, "--streams", PLAIN_NUMBER, offsetof(struct settings, streams), 1,
     PROTO_STREAMS_MAX},
    {OPTION_ORPHAN_LIMIT, "--orphan-limit", PLAIN_SECONDS,
     offsetof(struct settings, orphan_seconds), 1, 3600},
    {OPTION_COMPILE_TIME, "--compile-time", PLAIN_SECONDS,
     offsetof(struct settings, compile_seconds), 1, 604800},
    {OPTION_MAX_WINDOW, "--max-window", PLAIN_SIZE, offsetof(struct settings, max_window), 0, 0},
    {OPTION_KERNEL_HEAP, "--kernel-heap", PLAIN_SIZE, offsetof(struct settings, kernel_heap), 0, 0},
    {OPTION_IMAGE_MEMORY, "--image-memory", PLAIN_SIZE, offsetof(struct settings, image_memory), 0,
     0},
    {OPTION_COMPILE_MEMORY, "--compile-memory", PLAIN_SIZE,
     offsetof(struct settings, compile_memory), 0, 0},
    {OPTION_WATCHDOG_WARNING, "--watchdog-warning", PLAIN_LIMIT,
     offsetof(struct settings, schedule.watchdog_warning_ns), 0, 0},
    {OPTION_WATCHDOG_LIMIT, "--watchdog-limit", PLAIN_LIMIT,
     offsetof(struct settings, schedule.watchdog_limit_ns), 0, 0},
    {OPTION_DEPARTED_TIME_LIMIT, "--departed-time-limit", PLAIN_LIMIT,
     offsetof(struct settings, schedule.departed_limit_ns), 0, 0},
    {OPTION_OFFENDER_WAIT, "--offender-wait", PLAIN_LIMIT,
     offsetof(struct settings, offender_wait_ns), 0, 0},
};

static const struct plain_option *find_plain(int option)
{
    for (size_t i = 0; i < sizeof plain_options / sizeof *plain_options; i++)
        if (plain_options[i].option == option)
            return &plain_options[i];
    return NULL;
}

static uint32_t set_plain(struct settings *settings, const struct plain_option *row,
                          const char *value, struct error *why)
{
    void *to = (char *)settings + row->at;
    switch (row->kind) {
    case PLAIN_NUMBER:
        return set_number(to, row->least, row->most, row->name, value, why);
    case PLAIN_SECONDS:
        return set_seconds(to, row->least, row->most, row->name, value, why);
    case PLAIN_SIZE:
        return set_size(to, row->name, value, why);
    case PLAIN_LIMIT:
        return set_limit(to, row->name, value, why);
    case PLAIN_PATH:
        break;
    }
    return set_path(to, row->name, value, why);
}

static uint32_t set_option(struct settings *s, int option, const char *value,
                           char softgpu[PATH_MAX], struct error *why)
{
    uint32_t seconds = 0;
    uint32_t error = 0;
    const struct plain_option *plain = find_plain(option);
    if (plain)
        return set_plain(s, plain, value, why);
    switch (option) {
    case OPTION_DRIVER:
        return set_driver(s, value, why);
    case OPTION_CONFIG:
        s->config_named = true;
        return set_path(s->config, "--config", value, why);
    case OPTION_CHECK_CONFIG:
        s->check_config = true;
        return 0;
    case OPTION_ADMIN_UID:
        return add_admin(s, value, why);
    case OPTION_HOST_MEMORY_TOTAL:
        error = set_size(&s->host_total, "--host-memory-total", value, why);
        s->host_client = s->host_total / 4;
        return error;
    case OPTION_PINNED_POOL:
        return set_size_or_none(&s->pinned_pool, "--pinned-pool", value, why);
    case OPTION_HELLO_TIMEOUT:
        error = set_seconds(&seconds, 1, 3600, "--hello-timeout", value, why);
        if (!error)
            s->hello_timeout_ms = seconds * 1000;
        return error;
    case OPTION_STANDBY:
        return set_standby(s, value, why);
    case OPTION_ALLOW_HOST_ACCESS:
        s->allow_host_access = true;
        return 0;
    case OPTION_DEVICE_BASE:
    case OPTION_HOST_BASE:
    case OPTION_ARENA:
        return set_arena(s, option, value, why);
    case OPTION_SOFTGPU:
        return set_path(softgpu, "--softgpu", value, why);
    case OPTION_LOG_LEVEL:
        return set_log_level(s, value, why);
    default:
        s->page = page_of(option);
        return 0;
    }
}

void settings_print(enum settings_page page, FILE *to)
{
    switch (page) {
    case SETTINGS_PAGE_VARIABLES:
        settings_variables_print(to);
        break;
    case SETTINGS_PAGE_MESSAGES:
        messages_print(to);
        break;
    case SETTINGS_PAGE_VERSION:
        fprintf(to, "gpushared %s, protocol %u.%u\n", GPUSHARE_VERSION, PROTO_MAJOR, PROTO_MINOR);
        break;
    case SETTINGS_PAGE_HELP:
        fputs(usage, to);
        settings_variables_explain(to);
        fputs(usage_end, to);
        break;
    case SETTINGS_PAGE_NONE:
        break;
    }
}

/* ---- what was not said ---- */

/* The first of two places relative to this program's folder that exists, or else the first. */
static void path_beside(char to[PATH_MAX], const char *first, const char *second)
{
    char own[PATH_MAX], candidate[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = 0;
    char *slash = strrchr(own, '/');
    if (slash)
        *slash = 0;
    const char *names[2] = {first, second};
    for (int i = 0; i < 3; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s", own, names[i % 2]);
        if (i == 2 || access(candidate, F_OK) == 0)
            break;
    }
    /* Resolves "..", since the path stands in messages. */
    if (!realpath(candidate, to))
        snprintf(to, PATH_MAX, "%.*s", PATH_MAX - 1, candidate);
}

static void find_driver(struct settings *settings, const char *softgpu)
{
    if (settings->driver[0])
        return;
    if (!strcmp(settings->driver_name, "softgpu")) {
        if (softgpu[0])
            strcpy(settings->driver, softgpu);
        else
            path_beside(settings->driver, "../lib/softgpu/libcuda.so.1",
                        "../lib/gpushare/softgpu/libcuda.so.1");
        return;
    }
    size_t found = 0;
    for (size_t i = sizeof nvidia_paths / sizeof *nvidia_paths; i-- > 0;)
        if (access(nvidia_paths[i], F_OK) == 0)
            found = i;
    strcpy(settings->driver, nvidia_paths[found]);
}

/* The first of these that is set: systemd's folder, which may be a list; the user's; the
 * system's. */
static void default_socket(char to[PATH_MAX])
{
    const char *systemd = getenv("RUNTIME_DIRECTORY"), *user = getenv("XDG_RUNTIME_DIR");
    if (systemd && systemd[0] == '/')
        snprintf(to, PATH_MAX, "%.*s/gpushare.sock", (int)strcspn(systemd, ":"), systemd);
    else if (user && user[0] == '/')
        snprintf(to, PATH_MAX, "%s/gpushare/gpushare.sock", user);
    else
        snprintf(to, PATH_MAX, "/run/gpushare/gpushare.sock");
}

/* systemd's folder, which may be a list. There is no other default: two servers that a user starts
 * by hand would take each other's for their own. */
static void default_state(char to[PATH_MAX])
{
    const char *systemd = getenv("STATE_DIRECTORY");
    if (systemd && systemd[0] == '/')
        snprintf(to, PATH_MAX, "%.*s", (int)strcspn(systemd, ":"), systemd);
}

/* Beside the socket for clients, so that servers of one user do not meet. */
static void admin_socket_beside(struct settings *settings)
{
    const char *slash = strrchr(settings->socket, '/');
    snprintf(settings->admin_socket, sizeof settings->admin_socket, "%.*s/admin.sock",
             (int)(slash - settings->socket), settings->socket);
}

static const char *from_environment(const char *name, void *context)
{
    (void)context;
    return getenv(name);
}

static uint32_t read_schedule_variables(struct settings *settings, struct error *why)
{
    for (const struct settings_variable *row = settings_variables; row->name; row++) {
        const char *value = getenv(row->name);
        if (value && schedule_set(&settings->schedule, row->part, value, strlen(value), why))
            return error_prefix(why, "%s: ", row->name);
    }
    return 0;
}

static uint32_t read_environment(struct settings *settings, struct error *why)
{
    struct notify_sockets sockets = {.client = -1, .admin = -1};
    uint32_t error = notify_take_sockets(&sockets, getenv("LISTEN_PID"), getenv("LISTEN_FDS"),
                                         getenv("LISTEN_FDNAMES"), getpid(), why);
    settings->socket_fd = sockets.client;
    settings->admin_socket_fd = sockets.admin;
    settings->kept = sockets.kept;
    settings->kept_count = sockets.kept_count;
    if (!error)
        error = limits_wish_read(&settings->limits, from_environment, NULL, why);
    if (!error)
        error = read_schedule_variables(settings, why);
    if (!error)
        error = notify_read_watchdog(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), getpid(),
                                     &settings->watchdog_us, why);
    if (error)
        return error;
    settings->notify_socket = getenv("NOTIFY_SOCKET");
    /* systemd sets FDSTORE from version 254 on; before that, what it passed tells. */
    const char *store = getenv("FDSTORE");
    settings->store_offered =
        settings->notify_socket && ((store && strtoul(store, NULL, 10) > 0) || sockets.kept_count);
    settings->log_form = log_journal_form();
    if (settings->limits.socket[0])
        snprintf(settings->socket, sizeof settings->socket, "%s", settings->limits.socket);
    else
        default_socket(settings->socket);
    /* A service's user is one under which other programs may run. */
    if (sockets.admin < 0)
        settings->owner = geteuid();
    return 0;
}

static uint32_t check_together(struct settings *settings, struct error *why)
{
    struct address_plan plan;
    if (address_plan_open(&plan, settings->device_base, settings->host_base,
                          settings->arena_bytes) < 0) {
        return error_set(why, MESSAGE(option_arena),
                         (unsigned long long)(ADDRESS_PLAN_SMALLEST >> 20));
    }
    if (settings->max_window &&
        ((settings->max_window & (settings->max_window - 1)) ||
         settings->max_window < ADDRESS_PLAN_SMALLEST || settings->max_window > plan.bytes)) {
        return error_set(why, MESSAGE(option_max_window),
                         (unsigned long long)(ADDRESS_PLAN_SMALLEST >> 20));
    }
    if (settings->limits.allowance.host_memory.limit != ALLOWANCE_UNSET)
        settings->host_client = settings->limits.allowance.host_memory.limit;
    if (settings->host_client > settings->host_total)
        settings->host_client = settings->host_total;
    if (settings->pinned_pool == POOL_UNSET)
        settings->pinned_pool = settings->host_total / POOL_PART;
    return 0;
}

/* Two options have a letter too, the same in every program. */
static int option_of_letter(int option)
{
    return option == 'h' ? OPTION_HELP : option == 'V' ? OPTION_VERSION : option;
}

/* Whatever mistakes there are: in that folder lies what helps against them. */
static void find_state(struct settings *settings, int argc, char **argv)
{
    struct error unused;
    default_state(settings->state);
    opterr = 0;
    optind = 1;
    for (int option; (option = getopt_long(argc, argv, ":hV", options, NULL)) != -1;)
        if (option == OPTION_STATE_DIR)
            set_path(settings->state, "--state-dir", optarg, &unused);
}

uint32_t settings_read(struct settings *settings, int argc, char **argv, struct error *why)
{
    char softgpu[PATH_MAX] = "";
    settings_default(settings);
    settings->pinned_pool = POOL_UNSET;
    strcpy(settings->config, CONFIG_PATH);
    find_state(settings, argc, argv);
    uint32_t error = read_environment(settings, why);
    if (error)
        return error;
    opterr = 0;
    optind = 1;
    for (int option; (option = getopt_long(argc, argv, ":hV", options, NULL)) != -1;) {
        if (option == '?' || option == ':')
            return option_explain(option, argv, options, why);
        error = set_option(settings, option_of_letter(option), optarg, softgpu, why);
        if (error || settings->page)
            return error;
    }
    if (optind != argc) {
        return error_set(why, MESSAGE(option_argument), argv[optind]);
    }
    if (!settings->worker[0])
        path_beside(settings->worker, "../libexec/gpushare-worker",
                    "../libexec/gpushare/gpushare-worker");
    if (!settings->admin_socket[0])
        admin_socket_beside(settings);
    find_driver(settings, softgpu);
    return check_together(settings, why);
}

void settings_take_arena(struct settings *settings, const struct arena *arena)
{
    char text[UNITS_TEXT];
    units_format_size(arena->bytes, text);
    if (arena->device_base != settings->device_base || arena->host_base != settings->host_base ||
        arena->bytes != settings->arena_bytes)
        log_notice(MESSAGE_TEXT(arena_chosen), (unsigned long long)arena->device_base,
                   (unsigned long long)arena->host_base, text);
    settings->device_base = arena->device_base;
    settings->host_base = arena->host_base;
    settings->arena_bytes = arena->bytes;
    if (settings->max_window <= arena->bytes)
        return;
    log_notice(MESSAGE_TEXT(window_cut), text);
    settings->max_window = arena->bytes;
}
