/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * row: a client as the screens of gpusharectl show it, in short cells. The share is the one that
 * binds where the client is: of the device's time in the modes that enforce time, else of its
 * multiprocessors. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_ROW_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_ROW_H

#include <jansson.h>

#include "client/tools/cell.h"
#include "client/tools/sample.h"

struct row {
    json_int_t client, device; /* device: -1 before it attaches */
    double got;                /* a part of the device, 0 to 1; negative: not known */
    json_int_t used;           /* device memory, bytes */
    char name[CELL_BYTES], user[CELL_BYTES], gpu[CELL_BYTES], state[CELL_BYTES];
    char asked[CELL_BYTES], granted[CELL_BYTES], share[CELL_BYTES]; /* share: got, as text */
    char memory[CELL_BYTES], limit[CELL_BYTES];
};

/* status: the answer to "status"; client: a row of sample->after. */
void row_read(struct row *row, const json_t *status, const struct sample *sample,
              const json_t *client);

/* The row of a device in the answer to "status"; NULL: there is none with this index. */
const json_t *row_device(const json_t *status, json_int_t index);

/* "63%", or "-" for a negative share. Returns cell. */
const char *row_share(double share, char cell[CELL_BYTES]);

#endif
