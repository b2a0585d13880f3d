/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpushared: parses its options, sets the server up and runs it; or checks its configuration. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "common/log.h"
#include "common/log_journal.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/limits/variables.h"
#include "server/supervisor/admin/admin.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/admin/saved.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/config/accepted.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/config/readable.h"
#include "server/supervisor/config/sums.h"
#include "server/supervisor/worker/discovery.h"
#include "server/supervisor/loop/listener.h"
#include "server/supervisor/loop/notify.h"
#include "server/supervisor/loop/refusal.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/survive.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/view.h"

#define SIGNALS 4
/* Of gpushared.service. */
#define SERVICE_USER "gpushare"

/* Exit statuses: of those that the unit names no other start is made by systemd itself. */
enum { STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_NEXT_MAY = 3 };

/* The unit allows 20 starts in ten seconds (StartLimitBurst=). With either of these fewer fail. */
#define REFUSAL_MS    5000
#define NEXT_START_MS 600

struct gpushared {
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
    bool inherits; /* what the last server left is there, or may be: the next one may save it */
    char **argv;   /* of this process, or what the last server was started with */
    struct error trouble;            /* a reason why nobody can be served; text "": none */
    int passed_client, passed_admin; /* the sockets that systemd passed; -1: none */
    int status;                      /* the process's exit status */
};

static void supervisor_ready(void *context)
{
    struct gpushared *gpushared = context;
    log_notice(MESSAGE_TEXT(log_ready), gpushared->settings.socket);
    /* A server that is said to be ready may be ended at once. Nobody takes over from one that
     * leaves nothing. */
    if (gpushared->settings.keeps && !gpushared->settings.refused.number)
        supervisor_keep_start(gpushared->supervisor, gpushared->argv);
    notify_ready(&gpushared->notify);
}

static void supervisor_status(void *context, const char *text)
{
    struct gpushared *gpushared = context;
    notify_status(&gpushared->notify, text);
}

static void supervisor_kept(void *context)
{
    struct gpushared *gpushared = context;
    admin_send_held(gpushared->admin);
}

static void gpushared_stop(struct gpushared *gpushared)
{
    notify_stopping(&gpushared->notify);
    listener_close(&gpushared->listener);
    admin_close(&gpushared->admin);
    supervisor_stop(gpushared->supervisor);
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
    struct gpushared *gpushared = context;
    log_unserved(&gpushared->settings, text);
    snprintf(gpushared->trouble.text, sizeof gpushared->trouble.text, "%s", text);
    gpushared->status = STATUS_FAILED;
    gpushared_stop(gpushared);
}

static void supervisor_stopped(void *context)
{
    struct gpushared *gpushared = context;
    for (int i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&gpushared->signals[i], NULL);
    notify_unwatch(&gpushared->notify);
}

/* The old configuration stays in force if the new one has a mistake or does not fit. */
static void reload_ended(void *context, uint32_t error, const char *text)
{
    const struct gpushared *gpushared = context;
    struct config_view view;
    view_config(gpushared->supervisor, &view);
    if (error)
        log_error(MESSAGE_TEXT(log_reload_signal), text);
    else
        log_notice(MESSAGE_TEXT(log_reload_signal_done), view.changed_clients,
                   view.changed_settings);
}

static void gpushared_reload(struct gpushared *gpushared)
{
    struct error why;
    uint32_t error = reload_file(gpushared->supervisor, false, reload_ended, gpushared, &why);
    if (error)
        reload_ended(gpushared, error, why.text);
}

/* As if it were killed: whatever it has is kept, and nothing of it is ended. */
static void gpushared_hand_over(const struct gpushared *gpushared, int number)
{
    if (!gpushared->keeper.on) {
        log_warning(MESSAGE_TEXT(log_not_handed_over), strsignal(number));
        return;
    }
    log_notice(MESSAGE_TEXT(log_handing_over), strsignal(number));
    _exit(0);
}

static void signal_arrived(uv_signal_t *handle, int number)
{
    struct gpushared *gpushared = handle->data;
    if (number == SIGUSR2) {
        gpushared_hand_over(gpushared, number);
        return;
    }
    if (number == SIGHUP) {
        gpushared_reload(gpushared);
        return;
    }
    log_notice(MESSAGE_TEXT(log_stopping), strsignal(number));
    gpushared_stop(gpushared);
}

static void client_accepted(void *context, int fd)
{
    struct gpushared *gpushared = context;
    clients_accept(gpushared->supervisor, fd);
}

static void watch_signals(struct gpushared *gpushared)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};
    signal(SIGPIPE, SIG_IGN);
    /* A file that may not grow any more (setrlimit(2)) is an error of its writer, and not the end
     * of all clients. Workers inherit that. */
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < SIGNALS; i++) {
        uv_signal_init(&gpushared->loop, &gpushared->signals[i]);
        gpushared->signals[i].data = gpushared;
        uv_signal_start(&gpushared->signals[i], signal_arrived, numbers[i]);
    }
}

/* Clients are told no more than that: the file's lines are the administrators'. Where the next
 * start may succeed, they wait for it. */
static void refuse_waiting(const struct gpushared *gpushared)
{
    struct error why;
    struct refusal refusal = {.client_fd = gpushared->inherits ? -1 : gpushared->passed_client,
                              .admin_fd = gpushared->passed_admin,
                              .ended.error = error_set(&why, MESSAGE(server_cannot_start)),
                              .lasts = gpushared->inherits};
    snprintf(refusal.ended.text, sizeof refusal.ended.text, "%.*s",
             (int)sizeof refusal.ended.text - 1, why.text);
    uint32_t error = error_set(&why, MESSAGE(server_cannot_start_why), gpushared->trouble.text);
    json_t *answer = admin_answer_refusal(error, why.text);
    char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL, *line = NULL;
    if (text && asprintf(&line, "%s\n", text) >= 0)
        refusal.answer = line;
    else
        refusal.admin_fd = -1;
    refusal_give(&refusal, gpushared->inherits ? NEXT_START_MS : REFUSAL_MS);
    free(line);
    free(text);
    json_decref(answer);
}

/* Opens the sockets before the devices, so that clients that connect early wait and are not
 * refused. */
static int open_all(struct gpushared *gpushared)
{
    struct supervisor_events events = {.ready = supervisor_ready,
                                       .status = supervisor_status,
                                       .unusable = supervisor_unusable,
                                       .kept = supervisor_kept,
                                       .stopped = supervisor_stopped,
                                       .context = gpushared};
    struct error why = {0};
    int result =
        supervisor_create(&gpushared->supervisor, &gpushared->loop, &gpushared->settings, &events);
    if (result < 0)
        return result;
    if (gpushared->settings.keeps)
        supervisor_keep(gpushared->supervisor, &gpushared->keeper);
    watch_signals(gpushared);
    notify_watch(&gpushared->notify, &gpushared->loop);
    notify_feed(&gpushared->notify, &gpushared->loop, gpushared->settings.watchdog_us);
    uint32_t error = listener_open(&gpushared->listener, &gpushared->loop,
                                   &(struct listener_options){.fd = gpushared->settings.socket_fd,
                                                              .path = gpushared->settings.socket,
                                                              .accepted = client_accepted,
                                                              .context = gpushared},
                                   &why);
    if (!error)
        error = admin_open(&gpushared->admin, gpushared->supervisor, &why);
    if (!error && gpushared->settings.keeps)
        admin_hold(gpushared->admin);
    if (!error && gpushared->taking_over)
        error = supervisor_take_over(gpushared->supervisor, &gpushared->discovery, &gpushared->left,
                                     &why);
    else if (!error)
        error = supervisor_start(gpushared->supervisor, &gpushared->discovery, &why);
    if (!error)
        admin_saved_restore(gpushared->supervisor, !gpushared->taking_over);
    /* Nothing was told to workers and clients, and the last server's state is as it was: another
     * start may have what this one lacks, or a configuration without a mistake. */
    if (error && gpushared->taking_over) {
        log_error(MESSAGE_TEXT(log_start_failed_over), why.text);
        gpushared->trouble = why;
        notify_status(&gpushared->notify, why.text);
        refuse_waiting(gpushared);
        _exit(STATUS_NEXT_MAY);
    }
    if (gpushared->taking_over)
        state_log_reader_close(&gpushared->left);
    if (error) {
        log_sentence(LOG_LEVEL_ERROR, &why);
        gpushared->trouble = why;
        gpushared->status = STATUS_FAILED;
        gpushared_stop(gpushared);
    }
    return 0;
}

/* Returns the exit status. */
static int setup_failed(struct gpushared *gpushared, const char *reason)
{
    log_error(MESSAGE_TEXT(log_setup_failed), reason);
    snprintf(gpushared->trouble.text, sizeof gpushared->trouble.text,
             MESSAGE_TEXT(log_setup_failed), reason);
    return gpushared->inherits ? STATUS_NEXT_MAY : STATUS_FAILED;
}

static int gpushared_serve(struct gpushared *gpushared)
{
    int result = uv_loop_init(&gpushared->loop);
    if (result < 0)
        return setup_failed(gpushared, strerror(-result));
    result = open_all(gpushared);
    if (result < 0) {
        uv_loop_close(&gpushared->loop);
        return setup_failed(gpushared, strerror(-result));
    }
    uv_run(&gpushared->loop, UV_RUN_DEFAULT);
    supervisor_free(gpushared->supervisor);
    if (uv_loop_close(&gpushared->loop) < 0) {
        log_error(MESSAGE_TEXT(log_handles_left));
        return STATUS_FAILED;
    }
    log_notice(MESSAGE_TEXT(log_stopped));
    return gpushared->status;
}

/* As root any file can be read, and the service is another user. */
static void warn_of_service_user(const char *path)
{
    const int error = readable_by(SERVICE_USER, path);
    if (error > 0)
        log_warning(MESSAGE_TEXT(config_service_user), path, SERVICE_USER, strerror(error));
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
        log_sentence(LOG_LEVEL_ERROR, &why);
        return 1;
    }
    /* Whether a GPU's mode enforces time is known where there are GPUs. */
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_resource(i)->by_worker && config_sums_exceed(config, i, &why))
            log_sentence(LOG_LEVEL_WARNING, &why);
    warn_of_service_user(settings->config);
    config_free(config);
    printf(MESSAGE_TEXT(config_checked), settings->config);
    putchar('\n');
    return fflush(stdout) == 0 ? 0 : 1;
}

static void warn_of_variable(void *context, const struct error *told)
{
    (void)context;
    log_sentence(LOG_LEVEL_WARNING, told);
}

/* Finds out what the last server left, and whether this one can leave anything. Returns false if
 * only another start can find that out. */
static bool keeping_begin(struct gpushared *gpushared)
{
    struct settings *settings = &gpushared->settings;
    struct error why;
    if (!settings->store_offered) {
        if (settings->notify_socket)
            log_notice(MESSAGE_TEXT(log_not_keeping));
        return true;
    }
    enum keeper_found found =
        keeper_open(&gpushared->keeper, &gpushared->notify, settings->kept, settings->kept_count,
                    survive_layout(), &gpushared->left, &why);
    if (found == KEEPER_NO_MEMORY) {
        setup_failed(gpushared, why.text);
        return false;
    }
    uint64_t generation = found == KEEPER_FOUND ? gpushared->left.generation : 0;
    gpushared->taking_over =
        found == KEEPER_FOUND && !survive_discovery(&gpushared->left, &gpushared->keeper,
                                                    settings->streams, &gpushared->discovery, &why);
    if (found == KEEPER_FOUND && !gpushared->taking_over)
        state_log_reader_close(&gpushared->left);
    if (found != KEEPER_NOTHING && !gpushared->taking_over)
        log_error(MESSAGE_TEXT(log_state_refused), why.text);
    if (!gpushared->taking_over)
        survive_end_workers(&gpushared->keeper);
    settings->keeps = keeper_begin(&gpushared->keeper, generation) == 0;
    /* Workers and clients of a server that keeps nothing end with it, and these would not. */
    if (gpushared->taking_over && !settings->keeps) {
        gpushared->taking_over = false;
        state_log_reader_close(&gpushared->left);
        log_error(MESSAGE_TEXT(log_state_refused), gpushared->keeper.trouble.text);
        survive_end_workers(&gpushared->keeper);
    }
    /* Nobody would know of its buffers. */
    if (settings->keeps)
        settings->pinned_pool = 0;
    if (settings->keeps && !gpushared->taking_over)
        log_notice(MESSAGE_TEXT(log_keeping));
    gpushared->inherits = gpushared->taking_over;
    return true;
}

/* Where the last server has left clients, a mistake that was made since must not end them. */
static uint32_t read_settings(struct gpushared *gpushared, int argc, char **argv, struct error *why)
{
    struct settings *settings = &gpushared->settings;
    struct error again;
    gpushared->argv = argv;
    uint32_t error = settings_read(settings, argc, argv, why);
    /* Without memory for what was passed, nobody knows whether there is anything. */
    gpushared->inherits = settings->kept_count || error == PROTO_ERROR_SERVER_RESOURCES;
    if (!error || !settings->kept_count)
        return error;
    char folder[PATH_MAX];
    strcpy(folder, settings->state);
    free(settings->kept);
    if (accepted_load_start(folder, argv[0], &argc, &gpushared->argv, &again) ||
        settings_read(settings, argc, gpushared->argv, &again)) {
        log_error(MESSAGE_TEXT(accepted_start_refused), again.text);
        return error;
    }
    settings->refused = *why;
    settings->refused.number = error;
    return 0;
}

/* The server closes its own with its end. */
static int keep_socket(int fd)
{
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* Returns the exit status. */
static int start(struct gpushared *gpushared)
{
    const struct settings *settings = &gpushared->settings;
    if (!keeping_begin(gpushared))
        return STATUS_NEXT_MAY;
    if (!gpushared->taking_over &&
        discovery_run(&gpushared->discovery, settings, &gpushared->trouble)) {
        log_unserved(settings, gpushared->trouble.text);
        return STATUS_FAILED;
    }
    settings_take_arena(&gpushared->settings, &gpushared->discovery.arena);
    return gpushared_serve(gpushared);
}

/* Returns the exit status. */
static int run(struct gpushared *gpushared)
{
    const char *socket = gpushared->settings.notify_socket;
    int result = notify_open(&gpushared->notify, socket);
    if (result < 0) {
        log_error(MESSAGE_TEXT(log_notify_socket), socket, strerror(-result));
        snprintf(gpushared->trouble.text, sizeof gpushared->trouble.text,
                 MESSAGE_TEXT(log_notify_socket), socket, strerror(-result));
        return gpushared->inherits ? STATUS_NEXT_MAY : STATUS_FAILED;
    }
    int status = start(gpushared);
    if (gpushared->trouble.text[0])
        notify_status(&gpushared->notify, gpushared->trouble.text);
    notify_drain(&gpushared->notify);
    notify_close(&gpushared->notify);
    keeper_close(&gpushared->keeper);
    return status;
}

int main(int argc, char **argv)
{
    static struct gpushared gpushared;
    struct settings *settings = &gpushared.settings;
    log_open("gpushared", LOG_LEVEL_INFO, LOG_FORM_PLAIN);
    uint32_t error = read_settings(&gpushared, argc, argv, &gpushared.trouble);
    gpushared.passed_client = keep_socket(settings->socket_fd);
    gpushared.passed_admin = keep_socket(settings->admin_socket_fd);
    if (error) {
        log_sentence(LOG_LEVEL_ERROR, &gpushared.trouble);
        refuse_waiting(&gpushared);
        return gpushared.inherits ? STATUS_NEXT_MAY : STATUS_USAGE;
    }
    gpushared.trouble.text[0] = 0;
    if (settings->page) {
        settings_print(settings->page, stdout);
        return fflush(stdout) == 0 ? 0 : STATUS_FAILED;
    }
    if (settings->check_config)
        return check_config(settings);
    log_open("gpushared", settings->log_level, settings->log_form);
    if (settings->log_form == LOG_FORM_JOURNAL)
        log_journal_open(LOG_JOURNAL_SOCKET, "gpushared");
    if (settings->refused.number)
        log_error(MESSAGE_TEXT(accepted_start_in_force), settings->refused.text,
                  ACCEPTED_START_FILE);
    variables_check(environ, warn_of_variable, NULL);
    variables_check_clients(environ, warn_of_variable, NULL);
    int status = run(&gpushared);
    if (gpushared.trouble.text[0])
        refuse_waiting(&gpushared);
    free(settings->kept);
    return status;
}
