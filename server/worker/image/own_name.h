/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * own_name: a beginning of names that stands nowhere in a PTX text, for what is added to it. Any
 * thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_OWN_NAME_H
#define GPUSHARE_SERVER_WORKER_IMAGE_OWN_NAME_H

#include <stddef.h>

/*
 * Writes the beginning, a name of a register; without its % it begins a variable's. The same text
 * gets the same one, so that its code is found again. max: bytes of memory that this may take.
 * Returns 0, -ENOBUFS if max is not enough, or -ENOMEM.
 */
int own_name_choose(const char *text, size_t length, size_t max, char *name, size_t size);

#endif
