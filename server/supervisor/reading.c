/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/supervisor/config/accepted.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/config/sums.h"
#include "server/supervisor/loop/job.h"
#include "server/supervisor/supervisor_private.h"

struct reading {
    struct job job;
    struct job_client client;
    const struct supervisor *supervisor;
    bool in_force; /* a file is, when the reading begins */
    struct config *config;
    struct error why; /* number 0: it was read */
    void (*done)(void *context);
    void *context;
};

static uint32_t resolve(const struct supervisor *supervisor, struct config **config,
                        struct error *why)
{
    uint32_t error = config_resolve(*config, &supervisor->server.settings->schedule,
                                    supervisor->uuids, supervisor->server.device_count, why);
    if (error) {
        config_free(*config);
        *config = NULL;
    }
    return error;
}

/* Any thread: settings, UUIDs and the number of devices don't change while clients are served. */
static uint32_t read_file(const struct supervisor *supervisor, bool in_force,
                          struct config **config, struct error *why)
{
    const struct settings *settings = supervisor->server.settings;
    *config = NULL;
    if (!settings->config[0])
        return 0;
    if (access(settings->config, F_OK) < 0 && errno == ENOENT) {
        /* A file that nobody asked for may be missing, but not vanish: its limits would with it. */
        if (in_force)
            return error_set(why, MESSAGE(config_vanished), settings->config);
        if (!settings->config_named)
            return 0;
    }
    uint32_t error = config_load(config, settings->config, why);
    return error ? error : resolve(supervisor, config, why);
}

/* refused: why the file is, and stays so where the copy is no better. */
static uint32_t read_accepted(const struct supervisor *supervisor, struct config **config,
                              const struct error *refused)
{
    struct error why;
    uint32_t error = accepted_load(config, supervisor->server.settings->state, &why);
    if (!error)
        error = resolve(supervisor, config, &why);
    if (error)
        log_error(MESSAGE_TEXT(accepted_refused), why.text);
    else
        log_error(MESSAGE_TEXT(accepted_in_force), refused->text, (*config)->file);
    return error;
}

uint32_t reading_now(struct supervisor *supervisor, bool taking_over, struct config **config,
                     struct error *why)
{
    uint32_t error = read_file(supervisor, supervisor->server.config != NULL, config, why);
    if (!error || !taking_over || read_accepted(supervisor, config, why))
        return error;
    supervisor->refused.why = *why;
    supervisor->refused.copied = true;
    return 0;
}

static int reading_run(struct job *job)
{
    struct reading *reading = container_of(job, struct reading, job);
    read_file(reading->supervisor, reading->in_force, &reading->config, &reading->why);
    return 0;
}

static void reading_ended(struct job *job, int result)
{
    struct reading *reading = container_of(job, struct reading, job);
    (void)result;
    reading->done(reading->context);
}

struct reading *reading_start(struct supervisor *supervisor, void (*done)(void *context),
                              void *context)
{
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading || job_client_open(&reading->client, &supervisor->server.jobs, geteuid()) < 0) {
        free(reading);
        return NULL;
    }
    reading->supervisor = supervisor;
    reading->in_force = supervisor->server.config != NULL;
    reading->done = done;
    reading->context = context;
    job_start(&reading->job, &reading->client, reading_run, reading_ended);
    return reading;
}

uint32_t reading_take(struct reading *reading, struct config **config, struct error *why)
{
    const uint32_t error = reading->why.number;
    *config = reading->config;
    if (error)
        *why = reading->why;
    job_client_close(&reading->client);
    free(reading);
    return error;
}

/* ---- what is in force ---- */

/* Requests of time mean nothing to GPUs that don't enforce it. */
static void warn_of_sums(const struct server *server)
{
    struct error what;
    bool time = false;
    for (uint32_t i = 0; i < server->device_count; i++)
        time |= schedule_time_enforced(server->devices[i].schedule.mode);
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_resource(i)->by_worker && (i != RESOURCE_TIME || time) &&
            config_sums_exceed(server->config, i, &what))
            log_sentence(LOG_LEVEL_WARNING, &what);
}

void reading_log(const struct supervisor *supervisor)
{
    const struct config *config = supervisor->server.config;
    if (!config)
        return;
    log_notice(MESSAGE_TEXT(log_config), config->file, config->profile_count, config->rule_count,
               config->gpu_count, config->user_count, config->group_count, config->cgroup_count);
    for (uint32_t i = 0; config->time_line && i < supervisor->server.device_count; i++)
        if (!schedule_time_enforced(supervisor->server.devices[i].schedule.mode))
            log_notice(MESSAGE_TEXT(log_config_time), config->file, config->time_line, i,
                       proto_mode_name(supervisor->server.devices[i].schedule.mode));
    warn_of_sums(&supervisor->server);
}
