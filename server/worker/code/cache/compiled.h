/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * compiled: code that was made from a text, shared by the cache and the loads that use it. Any
 * thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CACHE_COMPILED_H
#define GPUSHARE_SERVER_WORKER_CODE_CACHE_COMPILED_H

#include <stddef.h>

struct compiled;

/* Takes over code, which is malloc'ed and has so many bytes, with one hold for the caller. NULL: no
 * memory, and code is freed. */
struct compiled *compiled_new(void *code, size_t bytes);
/* Another hold. Returns compiled. */
struct compiled *compiled_hold(struct compiled *compiled);
/* The code and its bytes go with the last hold. NULL is allowed. */
void compiled_release(struct compiled *compiled);

/* The code, as long as the caller has a hold. */
const void *compiled_code(const struct compiled *compiled);
size_t compiled_bytes(const struct compiled *compiled);

#endif
