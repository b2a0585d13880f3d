/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * patience: how long a test waits for what has to come. Such a bound ends a test that would hang,
 * and says nothing of how fast something is. Any thread.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_PATIENCE_H
#define GPUSHARE_TESTS_SUPPORT_PATIENCE_H

/* Returns these seconds, or as many times more as $TEST_LIMIT, a test's time limit, is longer than
 * usual: under sanitizers it is. */
double patience_seconds(double seconds);

#endif
