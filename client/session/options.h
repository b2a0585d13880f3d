/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * options: the limits that the program's options ask for, as an allowance.
 */
#ifndef GPUSHARE_CLIENT_SESSION_OPTIONS_H
#define GPUSHARE_CLIENT_SESSION_OPTIONS_H

#include "client/gpushare.h"
#include "common/limits/allowance.h"

/* Reads the program's wish. options: whole. Returns SUCCESS, or INVALID_VALUE with the sentence set
 * if a member is out of its range, or a request is above the limit beside it. */
gpushare_error options_read(const struct gpushare_options *options, struct allowance *allowance);

#endif
