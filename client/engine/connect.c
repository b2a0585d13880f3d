/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/connect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/engine/connection.h"
#include "client/engine/event.h"
#include "client/engine/module.h"
#include "client/engine/stream.h"
#include "client/session/device.h"
#include "client/session/environment.h"
#include "client/session/failure.h"
#include "client/session/warning.h"
#include "common/messages.h"
#include "common/units.h"

enum {
    /* Something else of the process may lie where a window should, such as a sanitizer's shadow.
     * After this many windows in use, another one won't help. */
    WINDOW_TRIES = 16,
    /* A sleep and a wake-up cost some 5 us each, and more from a deep idle state of the processor:
     * a shorter wait is spent spinning, and one that is little longer with yields. */
    SPIN_NS = 50000,
    /* In a virtual machine each of the two wake-ups behind a sleep takes up to 50 us. */
    YIELD_NS = 100000,
};

/* Needed only while connecting. */
struct connect_state {
    struct environment environment;
    struct proto_welcome welcome;
    struct device_survey survey;
    uint32_t index; /* the server's number of the device */
};

static uint64_t choose_spin(void)
{
    /* On a machine with one processor a spinning client would only keep the worker from running.
     * The machine's processors count, not those that this process may use: on batch nodes each
     * rank is usually bound to one, and the worker runs on another. */
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return 0;
    return SPIN_NS;
}

/* Connections to one server send the same group number, so that they can be linked as peers: the
 * first one gets it from the server, and the others take it from an open connection. */
static void choose_group(const gpushare_connection *connection, uint8_t group[16])
{
    connection_registry_lock();
    const gpushare_connection *other = connection_find_server(connection->session.path);
    if (other)
        memcpy(group, other->attached.group, 16);
    connection_registry_unlock();
}

/* A request of device memory above the limit that the environment asks for with it. A fraction is
 * no limit in this sense: it also says how much time is wanted. */
static gpushare_error check_memory_request(const struct allowance *asked, uint32_t device)
{
    char text[UNITS_TEXT], limit_text[UNITS_TEXT];
    const char *limit = allowance_variable_of(asked, RESOURCE_MEMORY, ALLOWANCE_LIMIT);
    if (asked->memory.request == ALLOWANCE_UNSET || asked->memory.request <= asked->memory.limit ||
        !limit || strcmp(limit, ALLOWANCE_FRACTION_VARIABLE) == 0)
        return GPUSHARE_SUCCESS;
    return failure(MESSAGE(request_over_limit),
                   allowance_variable_of(asked, RESOURCE_MEMORY, ALLOWANCE_REQUEST),
                   units_format_bytes(asked->memory.request, text), device, limit,
                   units_format_bytes(asked->memory.limit, limit_text));
}

/* Writes the wish for the chosen device: of each value the stricter of environment and options. */
static gpushare_error choose_allowance(const struct connect_state *state, struct allowance *asked)
{
    const struct environment *environment = &state->environment;
    uint64_t device = state->survey.info[state->index].memory;
    struct allowance program = environment->program;
    *asked =
        limits_on_device(&environment->wish, device, state->survey.memory[environment->device]);
    gpushare_error error = check_memory_request(asked, environment->device);
    if (error)
        return error;
    allowance_resolve(&program, RESOURCE_MEMORY, device);
    allowance_tighten(asked, &program);
    return GPUSHARE_SUCCESS;
}

static gpushare_error send_attach(gpushare_connection *connection,
                                  const struct connect_state *state, int fds[3])
{
    const struct limits_wish *wish = &state->environment.wish;
    struct allowance asked;
    gpushare_error error = choose_allowance(state, &asked);
    if (error)
        return error;
    struct proto_attach attach = {.device = state->index,
                                  .allowance = allowance_to_wire(&asked),
                                  .sources = allowance_sources_to_wire(&asked)};
    _Static_assert(sizeof attach.name == LIMITS_NAME_MAX + 1, "client names");
    snprintf(attach.name, sizeof attach.name, "%s", wish->name);
    snprintf(attach.profile, sizeof attach.profile, "%s", wish->profile);
    choose_group(connection, attach.group);
    connection->asked = attach.allowance;
    struct session_call call = {.request = PROTO_ATTACH,
                                .body = &attach,
                                .reply = PROTO_ATTACHED,
                                .reply_body = &connection->attached,
                                .reply_bytes = sizeof connection->attached,
                                .reply_fds = fds,
                                .reply_fd_max = 3};
    return connection_call(connection, &call);
}

static gpushare_error map_shared(gpushare_connection *connection, int fds[3])
{
    uint32_t streams = connection->attached.streams;
    int result = streams ? 0 : -EBADF;
    connection->eventfd = fds[2];
    if (!result)
        result = ring_memory_open(&connection->rings, streams, fds[0]);
    close(fds[0]);
    if (!result && (result = shm_adopt(&connection->status_memory, fds[1],
                                       ring_status_bytes(streams), false)) == 0) {
        /* The mappings keep the memory alive; the program needs its table of descriptors. */
        close(connection->status_memory.fd);
        connection->status_memory.fd = -1;
        madvise(connection->rings.base, connection->rings.bytes, MADV_DONTFORK);
        madvise(connection->status_memory.base, connection->status_memory.bytes, MADV_DONTFORK);
        connection->header = ring_client_header(connection->rings.base);
        connection->status = ring_status_header(connection->status_memory.base);
        connection->session.status = connection->status;
        return GPUSHARE_SUCCESS;
    }
    close(fds[1]);
    if (result == -EBADF)
        return failure(MESSAGE(server_memory_unsealed));
    return failure(MESSAGE(server_memory_unmapped), strerror(-result));
}

static int reserve_ranges(uint64_t device_base, uint64_t host_base, uint64_t bytes)
{
    int result = shm_reserve(device_base, bytes);
    if (result < 0)
        return result;
    result = shm_reserve(host_base, bytes);
    if (result < 0) {
        munmap((void *)(uintptr_t)device_base, bytes);
        return result;
    }
    madvise((void *)(uintptr_t)device_base, bytes, MADV_DONTFORK);
    madvise((void *)(uintptr_t)host_base, bytes, MADV_DONTFORK);
    return 0;
}

/*
 * Reserves both windows with no access, so that nothing else of this process can be mapped at
 * the device's addresses: an address alone then tells what it is.
 */
static gpushare_error reserve_window(gpushare_connection *connection)
{
    struct proto_window window = {.device_base = connection->attached.device_base,
                                  .host_base = connection->attached.host_base,
                                  .window_bytes = connection->attached.window_bytes};
    struct session_call move = {.request = PROTO_WINDOW_MOVE,
                                .reply = PROTO_WINDOW,
                                .reply_body = &window,
                                .reply_bytes = sizeof window};
    for (int i = 0; i < WINDOW_TRIES; i++) {
        uint64_t bytes = window.window_bytes;
        if (!bytes || (bytes & (bytes - 1)) || window.device_base % bytes ||
            window.host_base % bytes || window.device_base == window.host_base)
            return failure(MESSAGE(server_window_invalid));
        int result = reserve_ranges(window.device_base, window.host_base, bytes);
        if (!result) {
            connection->device_base = window.device_base;
            connection->host_base = window.host_base;
            connection->window_bytes = bytes;
            connection->windows_reserved = true;
            return GPUSHARE_SUCCESS;
        }
        if (result != -EEXIST)
            return failure(MESSAGE(window_reserved), (unsigned long long)window.device_base,
                           (unsigned long long)window.host_base, (unsigned long long)bytes,
                           strerror(-result));
        gpushare_error error = connection_call(connection, &move);
        if (error)
            return error;
    }
    return failure(MESSAGE(window_taken), WINDOW_TRIES);
}

static gpushare_error establish_connection(gpushare_connection *connection,
                                           struct connect_state *state)
{
    struct environment *environment = &state->environment;
    int fds[3];
    gpushare_error error =
        session_dial(&connection->session, &environment->server, &state->welcome);
    if (error)
        return error;
    connection->session.notice = environment->notice;
    connection->session.notice_context = environment->notice_context;
    if ((error =
             device_survey(&connection->session, &state->welcome, environment, &state->survey)) ||
        (error = device_choose(&state->survey, environment->device, &state->index)) ||
        (error = send_attach(connection, state, fds)) || (error = map_shared(connection, fds)) ||
        (error = reserve_window(connection)))
        return error;
    device_describe(&state->survey, state->index, environment->device, &connection->device);
    atomic_init(&connection->multiprocessors, connection->attached.grant.multiprocessors);
    connection->server_minor = state->welcome.minor;
    connection->observer = (struct observer){.status = connection->status,
                                             .observe = environment->observe,
                                             .context = environment->observe_context};
    connection->default_stream = stream_new(connection, 0, 0);
    if (!connection->default_stream)
        return failure(MESSAGE(process_no_memory));
    warning_devices(environment, &state->survey);
    warning_limits(environment, &connection->device, &connection->attached, state->index);
    return GPUSHARE_SUCCESS;
}

/* Frees a connection that is not, or no longer, in the registry; it may be half made. In a forked
 * child it frees memory alone. */
static void delete_connection(gpushare_connection *connection)
{
    bool here = connection->generation == connection_generation;
    struct gpushare_stream *s;
    LIST_FOR_EACH (s, &connection->streams, in_connection)
        stream_delete(s);
    stream_delete(connection->default_stream);
    module_delete_all(connection);
    event_delete_all(connection);
    allocation_destroy(&connection->allocations, here);
    held_memory_destroy(&connection->held, here);
    value_slot_destroy(&connection->values, here);
    idle_memory_destroy(&connection->idle, here);
    peer_destroy(&connection->peers, here);
    /* A forked child does not have the mappings, and may have something else at these addresses. */
    if (here) {
        if (connection->windows_reserved) {
            munmap((void *)(uintptr_t)connection->device_base, connection->window_bytes);
            munmap((void *)(uintptr_t)connection->host_base, connection->window_bytes);
        }
        session_close(&connection->session);
        ring_memory_close(&connection->rings);
        shm_release(&connection->status_memory);
        if (connection->eventfd >= 0)
            close(connection->eventfd);
        staging_destroy(&connection->staging);
        pthread_mutex_destroy(&connection->lists);
        free(connection->joins.on);
    } else {
        free(connection->session.message);
    }
    free(connection);
}

gpushare_error connect_open(const struct gpushare_options *options,
                            gpushare_connection **connection)
{
    gpushare_connection *made = calloc(1, sizeof *made);
    struct connect_state *state = malloc(sizeof *state);
    gpushare_error error = made && state ? environment_read(&state->environment, options)
                                         : failure(MESSAGE(process_no_memory));
    if (error)
        goto free_both;
    /* Before the server is searched for, because the misspelt variable may be that of its
     * socket. */
    warning_variables(&state->environment);
    made->eventfd = -1;
    made->generation = connection_generation;
    made->status_memory = SHM_NONE;
    made->spin = (struct timeline_spin){.spin_ns = choose_spin(), .yield_ns = YIELD_NS};
    pthread_mutex_init(&made->lists, NULL);
    list_init(&made->streams);
    list_init(&made->modules);
    list_init(&made->events);
    allocation_init(&made->allocations);
    held_memory_init(&made->held);
    value_slot_init(&made->values);
    idle_memory_init(&made->idle);
    staging_init(&made->staging);
    peer_init(&made->peers);
    error = establish_connection(made, state);
    free(state);
    if (error) {
        delete_connection(made);
        return error;
    }
    connection_register(made);
    *connection = made;
    return GPUSHARE_SUCCESS;

free_both:
    free(state);
    free(made);
    return error;
}

void connect_close(gpushare_connection *connection)
{
    if (connection->generation == connection_generation) {
        connection_unregister(connection);
        peer_forget(connection);
    }
    delete_connection(connection);
}
