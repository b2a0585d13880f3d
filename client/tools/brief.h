/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * brief: tables of devices and of clients in 80 columns, with what each uses now. The tables of
 * `show` have everything else. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_BRIEF_H
#define GPUSHARE_CLIENT_TOOLS_BRIEF_H

#include <stdio.h>

#include <jansson.h>

#include "client/tools/sample.h"
#include "client/tools/table.h"

/* answer: to "status". */
void brief_devices(FILE *out, const json_t *answer, const struct sample *sample,
                   struct table_look look);

/* The clients of sample->after. Users have their names, where this machine knows them. */
void brief_clients(FILE *out, const struct sample *sample, struct table_look look);

#endif
