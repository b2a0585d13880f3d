/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * unsaved: what the code of a PTX text can keep on the device that another worker does not have.
 *
 * Code and constants of a module lie elsewhere in another context, and what kernels allocate with
 * malloc is gone with it. An address of either that was stored in the client's memory would be a
 * stale one. Nobody can see whether it was stored, so what may be is taken for what was. Any
 * thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_UNSAVED_H
#define GPUSHARE_SERVER_WORKER_IMAGE_UNSAVED_H

#include "protocol.h"

struct ptx_module;

/* The first thing of this kind in the text; addresses of functions only where there is nothing
 * else. Variables that can't move are the caller's affair. */
enum proto_unsaved unsaved_find(const struct ptx_module *tree);

#endif
