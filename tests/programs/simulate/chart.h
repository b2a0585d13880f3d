/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * chart: the simulation's table as a picture: a panel a column, a bar a mode.
 */
#ifndef GPUSHARE_TESTS_SIMULATE_CHART_H
#define GPUSHARE_TESTS_SIMULATE_CHART_H

#include <stdio.h>

#include "tests/programs/simulate/day.h"

/* An SVG; errors are the file's. */
void chart_write(FILE *file, const struct day_result *results, int modes);

#endif
