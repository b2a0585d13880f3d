/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * forks: a client that forks at any moment of what another thread of it does: it connects, works,
 * waits, recovers an interrupted stream and closes, without a pause. It goes on whatever its
 * children do, and verifies what comes back.
 *
 * usage: forks SEED CHILDREN [two]
 *
 * Each child finds that it has no connection, and no descriptor of one; every fourth connects for
 * itself. Then it writes "child" to standard output, and stays until somebody kills it. When all
 * have been forked the parent prints "forked", and works on until it is killed. Errors are told
 * on standard error.
 *
 * With "two" it has connections on two devices, whose streams wait for one another, and every
 * second child is forked while both streams are interrupted.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"

__asm__(".pushsection .rodata\n"
        "forks_ptx:\n"
        ".incbin \"tests/programs/survive/kernels.ptx\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char forks_ptx[];

enum { WORDS = 256, STEP = 7, LAUNCHES = 50, WAIT_MAX_US = 3000 };

static const struct gpushare_dim one = {1, 1, 1};

struct client {
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *add;
    gpushare_stream *stream;
    gpushare_event *event;
    gpushare_address device;
    void *host;
    uint32_t value;
};

static struct client parent, peer; /* peer: on the second device; without one its gpu is NULL */
static atomic_bool held; /* the streams of both are interrupted, and wait until a child is forked */

static _Noreturn void fail(const char *who, const char *what, int line)
{
    fprintf(stderr, "forks %d, line %d: %s: %s: %s\n", (int)getpid(), line, who, what,
            gpushare_error_text());
    _exit(1);
}

#define CALL(call)                                                                                 \
    do {                                                                                           \
        if (call)                                                                                  \
            fail("a call failed", #call, __LINE__);                                                \
    } while (0)

/* While there is no worker, and while one is lost, a client that connects is told to try again. */
static void connect_again(gpushare_connection **gpu, uint32_t device)
{
    const struct gpushare_options options = {.size = sizeof options, .device = device};
    gpushare_error error;
    while ((error = gpushare_connect(&options, gpu)) == GPUSHARE_ERROR_DEVICE_NOT_READY)
        usleep(1000);
    CALL(error);
}

static void client_open(struct client *client, uint32_t device)
{
    connect_again(&client->gpu, device);
    CALL(gpushare_module_load(client->gpu, forks_ptx, strlen(forks_ptx) + 1, &client->module));
    CALL(gpushare_module_function(client->module, "add", &client->add));
    CALL(gpushare_memory_alloc(client->gpu, WORDS * 4, &client->device));
    CALL(gpushare_host_alloc(client->gpu, WORDS * 4, &client->host));
    CALL(gpushare_stream_create(client->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &client->stream));
    CALL(gpushare_event_create(client->gpu, 0, &client->event));
}

/* Returns INTERRUPTED, or SUCCESS. */
static gpushare_error client_step(struct client *client)
{
    uint32_t count = WORDS, *words = client->host;
    void *parameters[] = {&client->device, &count};
    gpushare_error error =
        gpushare_fill_async(client->gpu, client->device, client->value, 4, WORDS, client->stream);
    if (!error)
        error = gpushare_launch(client->add, one, one, 0, client->stream, parameters);
    if (!error)
        error = gpushare_copy_from_device_async(client->gpu, words, client->device, WORDS * 4,
                                                client->stream);
    if (!error)
        error = gpushare_event_record(client->event, client->stream);
    if (!error)
        error = gpushare_event_synchronize(client->event);
    if (error == GPUSHARE_ERROR_INTERRUPTED)
        return error;
    CALL(error);
    for (unsigned i = 0; i < WORDS; i++)
        if (words[i] != client->value + STEP)
            fail("a word is wrong", "client_step", __LINE__);
    client->value += STEP;
    return GPUSHARE_SUCCESS;
}

/* Work of the two whose streams wait for one another, on words of the peer's. Returns INTERRUPTED,
 * or SUCCESS. */
static gpushare_error peers_step(void)
{
    uint32_t count = WORDS, *words = peer.host;
    void *parameters[] = {&peer.device, &count};
    gpushare_error error =
        gpushare_fill_async(peer.gpu, peer.device, peer.value, 4, WORDS, peer.stream);
    for (int i = 0; i < LAUNCHES && !error; i++)
        error = gpushare_launch(peer.add, one, one, 0, peer.stream, parameters);
    if (!error)
        error = gpushare_event_record(peer.event, peer.stream);
    if (!error)
        error = gpushare_stream_wait_event(parent.gpu, parent.stream, peer.event);
    if (!error)
        error = gpushare_event_record(parent.event, parent.stream);
    if (!error)
        error = gpushare_stream_wait_event(peer.gpu, peer.stream, parent.event);
    if (!error)
        error =
            gpushare_copy_from_device_async(peer.gpu, words, peer.device, WORDS * 4, peer.stream);
    if (!error)
        error = gpushare_stream_synchronize(peer.gpu, peer.stream);
    if (!error)
        error = gpushare_stream_synchronize(parent.gpu, parent.stream);
    if (error == GPUSHARE_ERROR_INTERRUPTED)
        return error;
    CALL(error);
    for (unsigned i = 0; i < WORDS; i++)
        if (words[i] != peer.value + LAUNCHES * STEP)
            fail("a word of the peer's is wrong", "peers_step", __LINE__);
    peer.value += STEP;
    return GPUSHARE_SUCCESS;
}

static bool is_interrupted(const struct client *client)
{
    return gpushare_stream_query(client->gpu, client->stream) == GPUSHARE_ERROR_INTERRUPTED;
}

/* Until a child is forked; its parent looks after a few milliseconds at most. */
static void hold_while_interrupted(void)
{
    if (!is_interrupted(&parent) || !is_interrupted(&peer))
        return;
    atomic_store(&held, true);
    for (int left = 200; left > 0 && atomic_load(&held); left--)
        usleep(100);
    atomic_store(&held, false);
}

static void client_recover(struct client *client)
{
    CALL(gpushare_stream_recover(client->gpu, client->stream, NULL));
    CALL(gpushare_stream_recover(client->gpu, NULL, NULL));
}

static void *work(void *unused)
{
    for (unsigned round = 0;; round++) {
        if ((!peer.gpu || round % 8 == 0) && client_step(&parent))
            client_recover(&parent);
        if (peer.gpu && peers_step()) {
            hold_while_interrupted();
            client_recover(&parent);
            client_recover(&peer);
        }
        if (round % (peer.gpu ? 32 : 4) == 0) {
            gpushare_connection *other;
            gpushare_address memory;
            connect_again(&other, 0);
            CALL(gpushare_memory_alloc(other, 4096, &memory));
            gpushare_close(&other);
        }
    }
    return unused;
}

/* ---- the child ---- */

#define NONE(call)                                                                                 \
    do {                                                                                           \
        if ((call) != GPUSHARE_ERROR_NOT_INITIALIZED)                                              \
            fail("a child was not refused", #call, __LINE__);                                      \
    } while (0)

static void has_no_connection(const struct client *of)
{
    struct gpushare_connection_state state = {.size = sizeof state};
    struct gpushare_memory_info info = {.size = sizeof info};
    gpushare_connection *gpu = of->gpu;
    gpushare_stream *stream;
    gpushare_module *module;
    gpushare_address address;
    void *host;
    NONE(gpushare_launch(of->add, one, one, 0, of->stream, NULL));
    NONE(gpushare_synchronize(gpu));
    NONE(gpushare_stream_synchronize(gpu, of->stream));
    NONE(gpushare_stream_recover(gpu, of->stream, NULL));
    NONE(gpushare_stream_create(gpu, 0, 0, &stream));
    NONE(gpushare_stream_destroy(of->stream));
    NONE(gpushare_event_record(of->event, of->stream));
    NONE(gpushare_event_query(of->event));
    NONE(gpushare_event_synchronize(of->event));
    NONE(gpushare_event_destroy(of->event));
    NONE(gpushare_memory_alloc(gpu, 64, &address));
    NONE(gpushare_memory_free(gpu, of->device));
    NONE(gpushare_memory_info(gpu, &info));
    NONE(gpushare_fill(gpu, of->device, 0, 4, 1));
    NONE(gpushare_copy_to_device(gpu, of->device, "x", 1));
    NONE(gpushare_host_alloc(gpu, 64, &host));
    NONE(gpushare_host_free(gpu, of->host));
    NONE(gpushare_module_load(gpu, forks_ptx, strlen(forks_ptx) + 1, &module));
    NONE(gpushare_module_unload(of->module));
    NONE(gpushare_connection_error(gpu, NULL));
    NONE(gpushare_connection_state(gpu, &state));
    gpushare_close(&gpu);
    if (gpu)
        fail("a child did not close", "gpushare_close", __LINE__);
}

/* A socket to the server that it had would keep the server from noticing that the parent ended. */
static void has_no_socket(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char target[64] = "";
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (length > 0 && strncmp(target, "socket:", 7) == 0)
            fail("a child has a socket", entry->d_name, __LINE__);
    }
    if (folder)
        closedir(folder);
}

static _Noreturn void child(int number)
{
    has_no_socket();
    has_no_connection(&parent);
    if (peer.gpu)
        has_no_connection(&peer);
    if (number % 4 == 0) {
        struct client own = {.value = (uint32_t)number};
        client_open(&own, 0);
        while (client_step(&own))
            client_recover(&own);
        gpushare_close(&own.gpu);
    }
    if (write(STDOUT_FILENO, "child\n", 6) != 6)
        _exit(1);
    for (;;)
        pause();
}

/* With two devices, every second child waits until the streams of both are interrupted. */
static void await_moment(unsigned *state, int child)
{
    usleep((useconds_t)(rand_r(state) % WAIT_MAX_US));
    while (peer.gpu && child % 2 && !atomic_load(&held))
        usleep(50);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4)
        return 2;
    unsigned state = (unsigned)strtoul(argv[1], NULL, 10);
    int children = (int)strtol(argv[2], NULL, 10);
    pthread_t thread;
    client_open(&parent, 0);
    if (argc == 4)
        client_open(&peer, 1);
    if (pthread_create(&thread, NULL, work, NULL))
        return 2;
    for (int i = 0; i < children; i++) {
        await_moment(&state, i);
        pid_t pid = fork();
        if (pid < 0)
            return 2;
        if (pid == 0)
            child(i);
        atomic_store(&held, false);
    }
    if (write(STDOUT_FILENO, "forked\n", 7) != 7)
        return 2;
    pthread_join(thread, NULL);
    return 0;
}
