/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/report/moment.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "common/units.h"

enum { DAY = 86400 };

/* "7d", which the configuration's times do not have, or one of these. */
static int parse_ago(const char *text, time_t now, double *moment)
{
    uint64_t ns, days;
    const size_t length = strlen(text);
    if (length && text[length - 1] == 'd' &&
        units_parse_number(text, length - 1, INT32_MAX, &days) == 0)
        *moment = (double)now - (double)days * DAY;
    else if (units_parse_duration(text, length, &ns) == 0)
        *moment = (double)now - (double)ns / 1e9;
    else
        return -EINVAL;
    return 0;
}

int moment_parse(const char *text, time_t now, double *moment)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};
    const time_t midnight = now - now % DAY;
    if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0) {
        *moment = (double)(text[0] == 't' ? midnight : midnight - DAY);
        return 0;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm parts = {0};
        const char *end = strptime(text, forms[i], &parts);
        if (!end || strcmp(*end == 'Z' ? end + 1 : end, "") != 0)
            continue;
        const int day = parts.tm_mday;
        const time_t seconds = timegm(&parts);
        /* February 30 would be March 2. */
        if (parts.tm_mday != day)
            return -EINVAL;
        *moment = (double)seconds;
        return 0;
    }
    return parse_ago(text, now, moment);
}
