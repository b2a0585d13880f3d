/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ailment: errors of a GPU's machine, which no client's kernel makes: uncorrectable memory errors,
 * NVLink, a device that fell off the bus, and errors without a name. The device is kept down for a
 * while after each, which grows, and longest for one that is off the bus: a driver that starts
 * before the machine is mended takes its clients down again. Ten minutes without an error, and the
 * next one is a first one. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_AILMENT_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_AILMENT_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: none. */
struct ailment {
    uint32_t errors;   /* in a row */
    bool ails;         /* no worker has served since the latest */
    uint64_t ailed_at; /* the latest time, CLOCK_MONOTONIC */
    uint64_t until;    /* CLOCK_MONOTONIC: the device is kept down until then */
};

/* A worker was lost with this error of the table, or did not start. Does nothing if that is no
 * error of the machine, unless the machine has not recovered from one. */
void ailment_note(struct ailment *ailment, uint32_t error, uint64_t now);

/* A worker serves: the driver has started cleanly. */
void ailment_recover(struct ailment *ailment);

/* Clients that come wait for a device that is kept down, but not for longer than this, in ns. */
#define AILMENT_CLIENTS_WAIT UINT64_C(2000000000)

/* The time for which the device is still kept down, in ns. */
uint64_t ailment_wait(const struct ailment *ailment, uint64_t now);

#endif
