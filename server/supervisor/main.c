/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpushared: parses its options, sets the server up and runs it; or checks its configuration. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "common/log.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/limits/variables.h"
#include "server/supervisor/admin/admin.h"
#include "server/supervisor/admin/saved.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/worker/discovery.h"
#include "server/supervisor/loop/listener.h"
#include "server/supervisor/loop/notify.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/survive.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/supervisor.h"

#define SIGNALS 4

struct server {
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    struct settings settings;
    struct discovery discovery;
    struct supervisor *supervisor;
    struct listener *listener;
    struct admin *admin;
    struct notify notify;
    struct keeper keeper;         /* with settings.keeps */
    struct state_log_reader left; /* by the last server, with taking_over */
    bool taking_over;
    int status; /* the process's exit status */
};

static void supervisor_ready(void *context)
{
    struct server *server = context;
    log_notice(MESSAGE_TEXT(log_ready), server->settings.socket);
    notify_ready(&server->notify);
}

static void supervisor_status(void *context, const char *text)
{
    struct server *server = context;
    notify_status(&server->notify, text);
}

static void server_stop(struct server *server)
{
    notify_stopping(&server->notify);
    listener_close(&server->listener);
    admin_close(&server->admin);
    supervisor_stop(server->supervisor);
}

/* A user without a GPU may not know that there is a driver that needs none. */
static void log_unserved(const struct settings *settings, const char *text)
{
    if (strcmp(settings->driver_name, "nvidia") == 0)
        log_error(MESSAGE_TEXT(log_no_device_nvidia), settings->driver, text);
    else
        log_error(MESSAGE_TEXT(log_no_device), settings->driver, text);
}

static void supervisor_unusable(void *context, const char *text)
{
    struct server *server = context;
    log_unserved(&server->settings, text);
    server->status = 1;
    server_stop(server);
}

static void supervisor_stopped(void *context)
{
    struct server *server = context;
    for (int i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&server->signals[i], NULL);
}

/* The old configuration stays in force if the new one has a mistake or does not fit. */
static void reload_ended(void *context, uint32_t error, const char *text)
{
    (void)context;
    if (error)
        log_error(MESSAGE_TEXT(log_reload_signal), text);
    else
        log_notice(MESSAGE_TEXT(log_reload_signal_done));
}

static void server_reload(struct server *server)
{
    struct error why;
    uint32_t error = reload_file(server->supervisor, false, reload_ended, server, &why);
    if (error)
        reload_ended(server, error, why.text);
}

/* As if it were killed: whatever it has is kept, and nothing of it is ended. */
static void server_hand_over(const struct server *server, int number)
{
    if (!server->keeper.on) {
        log_warning(MESSAGE_TEXT(log_not_handed_over), strsignal(number));
        return;
    }
    log_notice(MESSAGE_TEXT(log_handing_over), strsignal(number));
    _exit(0);
}

static void signal_arrived(uv_signal_t *handle, int number)
{
    struct server *server = handle->data;
    if (number == SIGUSR2) {
        server_hand_over(server, number);
        return;
    }
    if (number == SIGHUP) {
        server_reload(server);
        return;
    }
    log_notice(MESSAGE_TEXT(log_stopping), strsignal(number));
    server_stop(server);
}

static void client_accepted(void *context, int fd)
{
    struct server *server = context;
    clients_accept(server->supervisor, fd);
}

static void watch_signals(struct server *server)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < SIGNALS; i++) {
        uv_signal_init(&server->loop, &server->signals[i]);
        server->signals[i].data = server;
        uv_signal_start(&server->signals[i], signal_arrived, numbers[i]);
    }
}

/* Opens the sockets before the devices, so that clients that connect early wait and are not
 * refused. */
static int open_all(struct server *server)
{
    struct supervisor_events events = {.ready = supervisor_ready,
                                       .status = supervisor_status,
                                       .unusable = supervisor_unusable,
                                       .stopped = supervisor_stopped,
                                       .context = server};
    struct error why = {0};
    int result = supervisor_create(&server->supervisor, &server->loop, &server->settings, &events);
    if (result < 0) {
        log_error(MESSAGE_TEXT(log_setup_failed), strerror(-result));
        return result;
    }
    if (server->settings.keeps)
        supervisor_keep(server->supervisor, &server->keeper);
    watch_signals(server);
    uint32_t error = listener_open(&server->listener, &server->loop, server->settings.socket,
                                   server->settings.socket_fd, client_accepted, server, &why);
    if (!error)
        error = admin_open(&server->admin, server->supervisor, &why);
    if (!error && server->taking_over)
        error = supervisor_take_over(server->supervisor, &server->discovery, &server->left, &why);
    else if (!error)
        error = supervisor_start(server->supervisor, &server->discovery, &why);
    if (!error)
        admin_saved_restore(server->supervisor, !server->taking_over);
    /* Nothing was told to workers and clients, and the last server's state is as it was: another
     * start may have what this one lacks, or a configuration without a mistake. */
    if (error && server->taking_over) {
        log_error(MESSAGE_TEXT(log_start_failed_over), why.text);
        _exit(1);
    }
    if (server->taking_over)
        state_log_reader_close(&server->left);
    if (error) {
        log_error("%s", why.text);
        server->status = 1;
        server_stop(server);
    }
    return 0;
}

static int server_serve(struct server *server)
{
    int result = uv_loop_init(&server->loop);
    if (result < 0) {
        log_error(MESSAGE_TEXT(log_setup_failed), strerror(-result));
        return 1;
    }
    if (open_all(server) < 0) {
        uv_loop_close(&server->loop);
        return 1;
    }
    uv_run(&server->loop, UV_RUN_DEFAULT);
    supervisor_free(server->supervisor);
    if (uv_loop_close(&server->loop) < 0) {
        log_error(MESSAGE_TEXT(log_handles_left));
        return 1;
    }
    log_notice(MESSAGE_TEXT(log_stopped));
    return server->status;
}

/* Checks that need devices are made at the server's start and by a reload. */
static int check_config(const struct settings *settings)
{
    struct config *config;
    struct error why;
    if (!settings->config_named && access(settings->config, F_OK) < 0 && errno == ENOENT) {
        printf(MESSAGE_TEXT(config_absent), settings->config);
        putchar('\n');
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (config_load(&config, settings->config, &why)) {
        log_error("%s", why.text);
        return 1;
    }
    config_free(config);
    printf(MESSAGE_TEXT(config_checked), settings->config);
    putchar('\n');
    return fflush(stdout) == 0 ? 0 : 1;
}

static void warn_of_variable(void *context, const char *text)
{
    (void)context;
    log_warning("%s", text);
}

/* Finds out what the last server left, and whether this one can leave anything. Returns false if
 * only another start can find that out. */
static bool keeping_begin(struct server *server)
{
    struct settings *settings = &server->settings;
    struct error why;
    if (!settings->store_offered) {
        if (settings->notify_socket)
            log_notice(MESSAGE_TEXT(log_not_keeping));
        return true;
    }
    enum keeper_found found =
        keeper_open(&server->keeper, &server->notify, settings->kept, settings->kept_count,
                    survive_layout(), &server->left, &why);
    if (found == KEEPER_NO_MEMORY) {
        log_error(MESSAGE_TEXT(log_setup_failed), why.text);
        return false;
    }
    uint64_t generation = found == KEEPER_FOUND ? server->left.generation : 0;
    server->taking_over =
        found == KEEPER_FOUND && !survive_discovery(&server->left, &server->keeper,
                                                    settings->streams, &server->discovery, &why);
    if (found == KEEPER_FOUND && !server->taking_over)
        state_log_reader_close(&server->left);
    if (found != KEEPER_NOTHING && !server->taking_over)
        log_error(MESSAGE_TEXT(log_state_refused), why.text);
    if (!server->taking_over)
        survive_end_workers(&server->keeper);
    settings->keeps = keeper_begin(&server->keeper, generation) == 0;
    /* Workers and clients of a server that keeps nothing end with it, and these would not. */
    if (server->taking_over && !settings->keeps) {
        server->taking_over = false;
        state_log_reader_close(&server->left);
        log_error(MESSAGE_TEXT(log_state_refused), server->keeper.trouble.text);
        survive_end_workers(&server->keeper);
    }
    /* Nobody would know of its buffers. */
    if (settings->keeps)
        settings->pinned_pool = 0;
    if (settings->keeps && !server->taking_over)
        log_notice(MESSAGE_TEXT(log_keeping));
    return true;
}

int main(int argc, char **argv)
{
    static struct server server;
    struct error why;
    log_open("gpushared", LOG_LEVEL_INFO, LOG_FORM_PLAIN);
    if (settings_read(&server.settings, argc, argv, &why)) {
        log_error("%s", why.text);
        return 2;
    }
    if (server.settings.page) {
        settings_print(server.settings.page, stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (server.settings.check_config)
        return check_config(&server.settings);
    log_open("gpushared", server.settings.log_level, server.settings.log_form);
    variables_check(environ, warn_of_variable, NULL);
    variables_check_clients(environ, warn_of_variable, NULL);
    int result = notify_open(&server.notify, server.settings.notify_socket);
    if (result < 0) {
        log_error(MESSAGE_TEXT(log_notify_socket), server.settings.notify_socket,
                  strerror(-result));
        return 1;
    }
    if (!keeping_begin(&server))
        return 1;
    if (!server.taking_over && discovery_run(&server.discovery, &server.settings, &why)) {
        log_unserved(&server.settings, why.text);
        return 1;
    }
    settings_take_arena(&server.settings, &server.discovery.arena);
    int exit_status = server_serve(&server);
    notify_close(&server.notify);
    keeper_close(&server.keeper);
    free(server.settings.kept);
    return exit_status;
}
