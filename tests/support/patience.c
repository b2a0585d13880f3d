/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/patience.h"

#include <stdlib.h>

/* That of tests/run. */
#define LIMIT_USUAL 180.0

double patience_seconds(double seconds)
{
    const char *limit = getenv("TEST_LIMIT");
    double scale = limit ? strtod(limit, NULL) / LIMIT_USUAL : 1;
    return scale > 1 ? seconds * scale : seconds;
}
