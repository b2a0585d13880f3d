/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* lateness: how late the end of work may be seen. */
#ifndef GPUSHARE_SERVER_SCHEDULER_LATENESS_H
#define GPUSHARE_SERVER_SCHEDULER_LATENESS_H

#include "common/units.h"

/* The worker's completer asks a busy device at least so often what it has reached, if nothing wakes
 * it. A time that is measured between ends that were seen is true within this. */
#define LATENESS_NS (5 * UNITS_MS)

#endif
