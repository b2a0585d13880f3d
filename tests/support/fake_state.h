/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* fake_state: the state that the two halves of the fake server share; see fake_server.h. */
#ifndef GPUSHARE_TESTS_SUPPORT_FAKE_STATE_H
#define GPUSHARE_TESTS_SUPPORT_FAKE_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/channel.h"
#include "common/ipc/ring.h"
#include "common/ipc/shm.h"
#include "tests/support/fake_server.h"
#include "tests/support/served_rings.h"

enum {
    CLIENTS_MAX = 16,
    OPCODES = 200,
    LINKS_MAX = 8,
    WINDOW = 1 << 30,
};

struct fake_client {
    int fd; /* -1: gone */
    bool attached;
    uint32_t number;
    struct proto_attach attach;
    struct proto_attached granted;
    struct served_rings rings;
    struct shm status;
    int eventfd;
    struct ring_consumer *consumers;
    uint64_t device_next, host_next, host_used;
    uint64_t buffers[64][2]; /* address, bytes */
    uint32_t links[LINKS_MAX], link_count;
    uint32_t streams_open; /* bitmap; at most 32 */
    uint64_t values[32];   /* timeline values at which the rings of destroyed streams continue */
    unsigned launches;
    uint64_t event_times[256];
    uint32_t event_next;
};

struct fake_server {
    struct fake_options options;
    char folder[64], path[96];
    int listener, wake;
    pthread_t thread;
    pthread_mutex_t lock;
    bool stop, automatic;
    unsigned windows_offered;
    struct fake_client clients[CLIENTS_MAX];
    unsigned connections; /* slots used */
    unsigned attached[CLIENTS_MAX], attached_count;
    unsigned counts[OPCODES];
    uint64_t image_bytes; /* of the latest module */
    uint32_t refusals[OPCODES];
    char texts[OPCODES][128];
    enum fake_trick tricks[OPCODES];
    bool holds[OPCODES];
    struct fake_held {
        struct fake_client *client;
        struct channel_message *message; /* malloc'ed */
    } held[FAKE_HELD_MAX];
    unsigned held_count;
    struct channel_message message;
};

/* Prints `what` and aborts, because the fake itself has failed. */
void fake_die(const char *what);

/* Returns the n-th attached client. The caller holds the lock. */
struct fake_client *fake_nth(struct fake_server *server, unsigned n);

/* Carries out the descriptors of all rings. Returns their number. The caller holds the lock. */
unsigned fake_run_all(struct fake_server *server);

#endif
