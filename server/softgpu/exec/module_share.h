/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module_share: modules of one text have one decoded code.
 *
 * A text that many clients load is decoded for the first of them. The others get a module with
 * their own addresses of variables, and everything else in common. The common parts go with the
 * last of them. Any thread.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_MODULE_SHARE_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_MODULE_SHARE_H

#include <stddef.h>

#include "server/softgpu/exec/module.h"

/* A module of this text, to be placed, where one is loaded. NULL: none is, or there is no
 * memory. */
struct module *module_share_find(const char *text, size_t length);

/* Gives a module that was decoded from this text, and is not placed yet, to those to come. Returns
 * the module to use in its place, which is the caller's; without memory that is itself. */
struct module *module_share_offer(const char *text, size_t length, struct module *decoded);

#endif
