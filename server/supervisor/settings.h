/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * settings: what the administrator decided, from the command line and the
 * environment. The one module of the server that reads the environment.
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
#include "common/limits/limits.h"
#include "common/log.h"
#include "server/supervisor/config/schedule.h"

#define SETTINGS_DEVICES_MAX 32
#define SETTINGS_ADMINS_MAX  64

/* What options like --help print. */
enum settings_page {
    SETTINGS_PAGE_NONE,
    SETTINGS_PAGE_HELP,
    SETTINGS_PAGE_VERSION,
    SETTINGS_PAGE_VARIABLES,
    SETTINGS_PAGE_MESSAGES,
};

struct settings {
    char driver[PATH_MAX];             /* absolute path of the libcuda.so.1 to open */
    char driver_name[16];              /* "nvidia", "softgpu" or "path", for messages */
    char worker[PATH_MAX];             /* absolute path of gpushare-worker */
    char socket[PATH_MAX];             /* clients */
    char admin_socket[PATH_MAX];       /* administrators */
    char config[PATH_MAX];             /* the administrator's file; "": none */
    bool config_named;                 /* by --config: then it must exist */
    bool check_config;                 /* only look for mistakes in it */
    int socket_fd;                     /* passed by systemd as "client"; -1: make our own */
    int admin_socket_fd;               /* passed by systemd as "admin"; -1: make our own */
    uid_t admins[SETTINGS_ADMINS_MAX]; /* who may change things, besides root */
    unsigned admin_count;
    uint32_t max_clients;      /* 0: what the file descriptors allow */
    uint32_t max_user_clients; /* of one uid; 0: three quarters of all */
    uint32_t streams;          /* granted to each client */
    uint64_t max_window;       /* bytes, a power of two; 0: from the device's memory */
    uint64_t device_base;      /* of the arenas; differ in one bit */
    uint64_t host_base;
    uint64_t arena_bytes;
    uint64_t image_memory;     /* a worker's own for clients' code, bytes; 0: its default */
    uint64_t host_total;       /* pinned host memory of all clients, bytes */
    struct limits_wish limits; /* defaults and ceilings of every client */
    struct schedule schedule;  /* of every device, where the configuration says nothing */
    uint64_t host_client;      /* pinned host memory of one client, bytes */
    uint32_t hello_timeout_ms; /* for a client to attach after it connected */
    const char *notify_socket; /* NOTIFY_SOCKET's value, or NULL; the environment's memory */
    enum log_level log_level;
    bool journal;            /* standard error is journald's */
    enum settings_page page; /* to be printed instead of serving */
};

/*
 * Reads options and environment. Returns 0, or an error number: *why names the option or variable,
 * its value and the accepted form. After --help, --version, --list-variables or
 * --list-messages the rest is not read, and page says what to print.
 */
uint32_t settings_read(struct settings *settings, int argc, char **argv, struct error *why);

/* Writes what the option asked for; nothing for SETTINGS_PAGE_NONE. */
void settings_print(enum settings_page page, FILE *to);

/*
 * Writes the environment variables that gpushare reads, one a line, and beside each "limit" (a wish
 * of a client's, the server's default and ceiling, or which server and devices) or "other".
 * 4096 bytes hold it.
 */
void settings_list_variables(char *text, size_t text_bytes);

/* Defaults that need no environment: for tests, and where settings_read starts from. */
void settings_default(struct settings *settings);

#endif
