/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fake_server: the server's side of the protocol, scripted, in a thread of the test's own process.
 * So a test sees every descriptor that the library pushes, and can refuse, lie, fall silent and die
 * at any point.
 *
 * Device memory is ordinary memory. The fake maps it over the client's reserved window, where both
 * sides find it. The fake shares no code with the real server, except common/. Any thread of the
 * test may call.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_FAKE_SERVER_H
#define GPUSHARE_TESTS_SUPPORT_FAKE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/ring.h"
#include "protocol.h"

struct fake_server;

struct fake_options {
    uint32_t devices;    /* 0: one */
    uint32_t streams;    /* streams of each client; 0: eight */
    uint64_t host_limit; /* bytes of host buffers of each client; 0: 256 MiB */
    /* The first windows, this many, are in use in this process when they are offered. */
    unsigned windows_taken;
    uint32_t mode;      /* mode of the devices */
    bool no_partitions; /* the devices offer no partitions */
    uint32_t older;     /* minor versions of the protocol that it is behind */
    bool manual;        /* the test consumes the rings, not the fake */
};

/* Starts a fake on a socket in a folder of its own. options: NULL for the defaults. fake_stop
 * ends it. A failure ends the test. */
struct fake_server *fake_start(const struct fake_options *options);

/* Closes every connection without a message, stops the thread, removes the folder and frees the
 * fake. */
void fake_stop(struct fake_server *server);

const char *fake_socket(const struct fake_server *server);

/* ---- scripting; any time ---- */

/* From now on requests of this opcode are refused with this error and text. An error of 0 ends
 * that. */
void fake_refuse(struct fake_server *server, uint16_t opcode, uint32_t error, const char *text);

/* How the next request of this opcode is answered, instead of properly. */
enum fake_trick {
    FAKE_NONE,
    FAKE_HANG_UP,       /* the connection is closed, without a message */
    FAKE_END,           /* fault word, "ended" (killed, "by the test"), then closed */
    FAKE_WRONG_MESSAGE, /* "done" instead of the reply that is due, or the reverse */
    FAKE_GARBAGE,       /* a packet that is no message */
    FAKE_SILENCE,       /* nothing comes */
    FAKE_TWICE,         /* properly, and then once more */
    FAKE_UNASKED        /* "done" comes for a request that nobody made, and then nothing */
};
void fake_trick(struct fake_server *server, uint16_t opcode, enum fake_trick trick);

/* Sets whether requests of this opcode are kept, unanswered, from now on; at most FAKE_HELD_MAX. */
enum { FAKE_HELD_MAX = 128 };
void fake_hold(struct fake_server *server, uint16_t opcode, bool hold);

/* Returns the number of requests that are kept now. */
unsigned fake_held(struct fake_server *server);

/* Answers the kept requests, all of them or the latest so many, each properly or with its trick, in
 * an order that is drawn from the seed. */
void fake_release(struct fake_server *server, unsigned most, unsigned seed);

/* Tells client n, without being asked, for whom its load waits. */
void fake_notice(struct fake_server *server, unsigned n, const char *text);

/* ---- looking; n counts attached clients from 0 ---- */

/* The limits that client n asked for, and those that it was granted. */
struct proto_attach fake_attach(struct fake_server *server, unsigned n);
struct proto_attached fake_attached(struct fake_server *server, unsigned n);
/* Acts as if an administrator had changed a limit: client n has this many multiprocessors from
 * its next limits_query on. */
void fake_regrant(struct fake_server *server, unsigned n, uint32_t multiprocessors);

/* Returns how many requests of this opcode have arrived so far. */
unsigned fake_count(struct fake_server *server, uint16_t opcode);

/* Returns the bytes of the latest module image that arrived and was not bad; 0 if none has. */
uint64_t fake_image_bytes(struct fake_server *server);

/* Returns the number of connections that are open now. */
unsigned fake_open(struct fake_server *server);

/* Sets client n's fault word and wakes its threads. words: a sentence that is sent with "ended";
 * NULL to send nothing. The socket stays open. */
void fake_fault(struct fake_server *server, unsigned n, uint32_t error, const char *words);

/* Closes client n's socket without a message, as a server that was killed does. */
void fake_drop(struct fake_server *server, unsigned n);

/* Reports an error of a stream's work that does not end the connection. */
void fake_work_error(struct fake_server *server, unsigned n, uint32_t stream, uint32_t error);

/* Sets the ends of a stream's latest interruption. A worker reports it as an error of the stream's
 * work behind that. */
void fake_interrupt(struct fake_server *server, unsigned n, uint32_t stream, uint64_t lost_from,
                    uint64_t lost_to);

/* ---- rings by hand ---- */

/* Returns the number of descriptors that are in the ring now. */
unsigned fake_ready(struct fake_server *server, unsigned n, uint32_t stream);

/* Copies the next descriptor and does not consume it. Returns false if there is none now. */
bool fake_peek(struct fake_server *server, unsigned n, uint32_t stream,
               struct ring_descriptor *descriptor);

/* Consumes up to `most` descriptors, carries them out and completes them. Returns their number. */
unsigned fake_run(struct fake_server *server, unsigned n, uint32_t stream, unsigned most);

/* Copies the parameters of a launch descriptor, inline or in the arena. to: holds as many bytes
 * as the descriptor says. */
void fake_parameters(struct fake_server *server, unsigned n, uint32_t stream,
                     const struct ring_descriptor *descriptor, void *to);

/*
 * Takes the doorbell's bits and goes to sleep, as a submitter does. Returns false, and stays awake,
 * if a ring with a bit has work.
 */
bool fake_sleep(struct fake_server *server, unsigned n);

/* Returns how often the eventfd was written since the last call. */
unsigned fake_rings(struct fake_server *server, unsigned n);

/* Sets whether the fake carries everything out by itself from now on. */
void fake_automatic(struct fake_server *server, bool automatic);

/* Returns the number of launches carried out for client n. */
unsigned fake_launches(struct fake_server *server, unsigned n);

#endif
