/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * settings: the administrator's decisions, from the command line and the environment. No other
 * file of the server reads the environment.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SETTINGS_H
#define GPUSHARE_SERVER_SUPERVISOR_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/ipc/arena.h"
#include "common/limits/limits.h"
#include "common/log.h"
#include "server/supervisor/loop/notify.h"
#include "server/supervisor/config/schedule.h"

#define SETTINGS_ADMINS_MAX 64

/* The pages that options like --help print. */
enum settings_page {
    SETTINGS_PAGE_NONE,
    SETTINGS_PAGE_HELP,
    SETTINGS_PAGE_VERSION,
    SETTINGS_PAGE_VARIABLES,
    SETTINGS_PAGE_MESSAGES,
};

struct settings {
    char driver[PATH_MAX];       /* absolute path of the libcuda.so.1 to open */
    char driver_name[16];        /* "nvidia", "softgpu" or "path", for messages */
    char worker[PATH_MAX];       /* absolute path of gpushare-worker */
    char socket[PATH_MAX];       /* path of the clients' socket */
    char admin_socket[PATH_MAX]; /* path of the administrators' socket */
    char config[PATH_MAX];       /* path of the configuration file; "": none */
    bool config_named;           /* --config named it, so it must exist */
    char state[PATH_MAX];        /* folder of what `set --save` keeps; "": none */
    char accounting[PATH_MAX];   /* file of what clients have used, if the configuration names
                                    none; "": none */
    bool check_config;           /* check the file and exit */
    int socket_fd;               /* passed by systemd as "client"; -1: the server makes one */
    int admin_socket_fd;         /* passed by systemd as "admin"; -1: the server makes one */
    uid_t
        owner; /* may change things: the user of a server that makes its own admin socket; else 0 */
    uid_t admins[SETTINGS_ADMINS_MAX]; /* users besides these who may change things */
    unsigned admin_count;
    uint32_t max_clients;      /* of all users; 0: as many as the file descriptors allow */
    uint32_t max_user_clients; /* of one uid; 0: three quarters of all */
    uint32_t streams;          /* number that each client is granted */
    uint64_t max_window;       /* bytes, a power of two; 0: from the device's memory */
    uint64_t device_base;      /* address of the device arena; differs from host_base in one bit */
    uint64_t host_base;
    uint64_t arena_bytes;
    bool arena_named;        /* an option named a base or the size: no other is tried */
    uint64_t kernel_heap;    /* bytes that kernels of all clients may allocate; 0: the driver's */
    uint64_t image_memory;   /* bytes that a worker may use for clients' code; 0: its default */
    uint64_t compile_memory; /* bytes that compiling one module may take; 0: the worker's default */
    uint32_t compile_seconds;  /* time that it may take; 0: the worker's default */
    uint64_t machine_memory;   /* RAM, bytes */
    uint64_t host_total;       /* pinned host memory of all clients, bytes */
    uint64_t pinned_pool;      /* of that, what may be kept for clients to come; 0: nothing */
    struct limits_wish limits; /* defaults and ceilings of every client */
    struct schedule schedule;  /* parts that the configuration does not set */
    uint64_t host_client;      /* pinned host memory of one client, bytes */
    uint32_t hello_timeout_ms; /* time in which a new connection must say hello */
    uint64_t offender_wait_ns; /* of a user's new clients after its second fault; 0: none */
    uint32_t orphan_seconds;   /* after which a worker ends that no server asks anything */
    bool keeps;                /* the service manager stores descriptors (keep/keeper.h) */
    struct notify_kept *kept;  /* that it passed; from malloc, the settings' */
    size_t kept_count;
    bool store_offered;        /* FDSTORE in the environment, above 0 */
    const char *notify_socket; /* NOTIFY_SOCKET's value, or NULL; the environment's memory */
    uint64_t watchdog_us;      /* the service manager's time limit for the server; 0: none */
    bool
        allow_host_access; /* several users share a GPU whose kernels can use the worker's memory */
    enum log_level log_level;
    enum log_form log_form;
    enum settings_page page; /* page to print instead of serving */
    /* Why the options and variables of this process are not in force, and those of the last server
     * are; number 0: they are. settings_read() leaves it at that. */
    struct error refused;
};

/*
 * Reads options and environment. Returns 0, or an error number: *why names the option or variable,
 * its value and the accepted form; socket_fd, admin_socket_fd, kept and state are read all the
 * same. After --help, --version, --list-variables or --list-messages nothing more is read, and page
 * says what to print.
 */
uint32_t settings_read(struct settings *settings, int argc, char **argv, struct error *why);

/* Takes the address ranges that are to be used instead of the usual ones. Logs them if they
 * differ. */
void settings_take_arena(struct settings *settings, const struct arena *arena);

/* Writes the page that an option asked for; nothing for SETTINGS_PAGE_NONE. */
void settings_print(enum settings_page page, FILE *to);

/* A variable that only gpushared reads: a part of the schedule of GPUs that the configuration does
 * not mention. */
struct settings_variable {
    const char *name;
    enum schedule_part part;
};
extern const struct settings_variable settings_variables[]; /* a row without a name ends it */

/*
 * Writes the environment variables that gpushare reads, one on a line, each with its readers
 * behind it: "client and gpushared" of a limit or a choice of server and devices, which is a
 * client's wish, and the server's default and ceiling; "gpushared"; or "client".
 */
void settings_variables_print(FILE *to);

/* Writes the variables that limit and guarantee, with what they do: lines of --help. */
void settings_variables_explain(FILE *to);

/* Sets the defaults that need no environment: where settings_read starts from, and for tests. */
void settings_default(struct settings *settings);

#endif
