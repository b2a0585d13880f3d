/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fake_server: the server's side of the protocol, scripted, in a thread of the test's
 * own process: so that a test sees every descriptor that the library pushes, and
 * can refuse, lie, fall silent and die at any point.
 *
 * Device memory is ordinary memory that the fake maps over the client's reserved
 * window, where both sides find it. Nothing here is shared with the real server but
 * common/.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_FAKE_SERVER_H
#define GPUSHARE_TESTS_SUPPORT_FAKE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/ring.h"
#include "protocol.h"

struct fake_server;

struct fake_options {
    uint32_t devices;       /* 0: one */
    uint32_t streams;       /* a client; 0: eight */
    uint64_t host_limit;    /* bytes of host buffers a client; 0: 256 MiB */
    unsigned windows_taken; /* so many windows that are offered first are taken in this process */
    uint32_t mode;          /* of the device */
    bool no_partitions;     /* the devices have none */
    bool manual;            /* rings are consumed by the test, not by the fake */
};

/* Starts it on a socket in a folder of its own. options may be NULL. */
struct fake_server *fake_start(const struct fake_options *options);

/* Ends every connection without a word, stops the thread, removes the folder, frees. */
void fake_stop(struct fake_server *server);

const char *fake_socket(const struct fake_server *server);

/* ---- scripting; any time ---- */

/* The next requests of this opcode are refused with error and text (0: no longer). */
void fake_refuse(struct fake_server *server, uint16_t opcode, uint32_t error, const char *text);

/* How the next request of this opcode is answered instead. */
enum fake_trick {
    FAKE_NONE,
    FAKE_HANG_UP,       /* the connection is closed, without a word */
    FAKE_END,           /* fault word, "ended" (killed, "by the test"), then closed */
    FAKE_WRONG_MESSAGE, /* "done" where something else is due, or the reverse */
    FAKE_GARBAGE        /* a packet that is no message */
};
void fake_trick(struct fake_server *server, uint16_t opcode, enum fake_trick trick);

/* ---- looking; n counts attached clients from 0 ---- */

/* What client n asked for, and what it got. */
struct proto_attach fake_attach(struct fake_server *server, unsigned n);
struct proto_attached fake_attached(struct fake_server *server, unsigned n);
/* As if an administrator had changed it: so many multiprocessors from the next limits_query on. */
void fake_regrant(struct fake_server *server, unsigned n, uint32_t multiprocessors);

/* How many requests of this opcode came so far, and the latest one's client number or length where
 * it has one. */
unsigned fake_count(struct fake_server *server, uint16_t opcode);

/* Connections that are open now. */
unsigned fake_open(struct fake_server *server);

/* Sets client n's fault word and wakes it; with words, sends "ended" too. Leaves the socket open.
 */
void fake_fault(struct fake_server *server, unsigned n, uint32_t error, const char *words);

/* Closes client n's socket without a word, as a server that was killed does. */
void fake_drop(struct fake_server *server, unsigned n);

/* Reports an error of work in a stream that is not fatal. */
void fake_work_error(struct fake_server *server, unsigned n, uint32_t stream, uint32_t error);

/* ---- rings by hand ---- */

/* Copies the next descriptor without consuming it; false if there is none now. */
bool fake_peek(struct fake_server *server, unsigned n, uint32_t stream,
               struct ring_descriptor *descriptor);

/* Consumes up to `most` descriptors, carries them out and completes them. Returns how many. */
unsigned fake_run(struct fake_server *server, unsigned n, uint32_t stream, unsigned most);

/* Parameters of a launch descriptor, wherever they are; bytes as the descriptor says. */
void fake_parameters(struct fake_server *server, unsigned n, uint32_t stream,
                     const struct ring_descriptor *descriptor, void *to);

/*
 * Takes what the doorbell says and goes to sleep, as a submitter does; false (and awake) if a ring
 * that it named has work.
 */
bool fake_sleep(struct fake_server *server, unsigned n);

/* How often the eventfd was written since the last look. */
unsigned fake_rings(struct fake_server *server, unsigned n);

/* From now on the fake carries everything out by itself (or not). */
void fake_automatic(struct fake_server *server, bool automatic);

/* Launches carried out for client n. */
unsigned fake_launches(struct fake_server *server, unsigned n);

#endif
