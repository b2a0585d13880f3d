/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * recovery: an interrupted stream goes on, and its owner learns what it has lost. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_RECOVERY_H
#define GPUSHARE_CLIENT_ENGINE_RECOVERY_H

#include "client/gpushare.h"

/* Lets the stream go on, if it is interrupted. *recovery, which is all zero, is written on success;
 * its size is not looked at. */
gpushare_error recovery_ask(struct gpushare_stream *stream, struct gpushare_recovery *recovery);

#endif
