/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_accounting: the file of what clients have used, for the server that writes it and for
 * `gpusharectl report`. Part of the table in common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_ACCOUNTING_H
#define GPUSHARE_COMMON_MESSAGES_ACCOUNTING_H

/* clang-format off */
#define MESSAGES_ACCOUNTING(X) \
    X(config_accounting_file, INVALID_VALUE, \
      "file must be a path that begins with a slash, not \"%.64s\"") \
    X(config_accounting_interval, INVALID_VALUE, \
      "interval must be a time of whole seconds from 1s to 24h, like 1h, not \"%.64s\"") \
    X(config_accounting_no_file, INVALID_VALUE, \
      "accounting needs a file: {file: /var/lib/gpushare/accounting.jsonl}") \
    X(log_accounting_not_written, SUCCESS, \
      "accounting: %s can't be written: %s: lines wait until it can") \
    X(accounting_waits, SUCCESS, \
      "accounting: %s can't be written (%s), and its lines wait: see the room and the rights of its folder") \
    X(log_accounting_written, SUCCESS, \
      "accounting: %s is written again") \
    X(log_accounting_lost, SUCCESS, \
      "accounting: lost %llu of the lines for %s, which can't be written, or for which there was no " \
      "memory") \
    X(log_accounting_no_memory, SUCCESS, \
      "accounting: no memory for a line of client %u: its use is lost") \
    X(accounting_not_regular, SUCCESS, \
      "it is no regular file") \
    X(accounting_link, SUCCESS, \
      "it is a symbolic link, which could lead to a file of others: name the file itself") \
    X(report_file, INVALID_VALUE, \
      "can't read %s: %s") \
    X(report_denied, INVALID_VALUE, \
      "can't read %s: %s: run this as root, or as a member of the group that may read it, which is gpushare " \
      "under the service") \
    X(report_folder, SUCCESS, \
      "can't look in %s for files that logrotate made: %s: run this as a user who can list it") \
    X(report_packed, SUCCESS, \
      "%s%s is left out, for this compression is not known here: decompress it, and have logrotate " \
      "use gzip or zstd") \
    X(report_cut, SUCCESS, \
      "it ends within a compressed part") \
    X(report_line_max, INVALID_VALUE, \
      "longer than %d bytes") \
    X(report_not_json, INVALID_VALUE, \
      "no JSON: %s") \
    X(report_version, NOT_SUPPORTED, \
      "its schema_version is %lld, and this gpusharectl knows %d: use a newer one") \
    X(report_member, INVALID_VALUE, \
      "its \"%s\" is missing or no such value") \
    X(report_damaged, SUCCESS, \
      "%s:%llu: line left out: %s") \
    X(report_damaged_more, SUCCESS, \
      "lines left out that are not named here: %llu") \
    X(report_by, INVALID_VALUE, \
      "--by must be one to %d of these, each once, with commas between: %s") \
    X(report_moment, INVALID_VALUE, \
      "%s must be a moment in UTC, like 2026-11-01, 2026-11-01T12:30, today or yesterday, or a time " \
      "ago, like 7d or 36h, not \"%.64s\"") \
    X(report_forms, INVALID_VALUE, \
      "--json and --csv exclude each other") \
    X(report_nothing, INVALID_VALUE, \
      "--until must be later than --since") \
    X(report_empty, SUCCESS, \
      "no line of the accounting is of this time")
/* clang-format on */

#endif
