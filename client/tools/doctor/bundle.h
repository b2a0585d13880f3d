/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * bundle: the file that goes with a report of a fault: what was found, versions, variables, the
 * server's answers, its configuration and its latest lines in the journal. Names of users and of
 * the host, and the arguments of programs, are replaced (client/tools/doctor/hide.h). One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_DOCTOR_BUNDLE_H
#define GPUSHARE_CLIENT_TOOLS_DOCTOR_BUNDLE_H

#include <stdint.h>

#include "client/tools/doctor/exam.h"
#include "common/error.h"

/* Writes the archive, which only this user may read. path: must not exist. Returns 0, or an error
 * number with the sentence in *why; then there is no archive. */
uint32_t bundle_write(const struct exam *exam, const char *path, struct error *why);

#endif
