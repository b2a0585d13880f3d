/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * crash_signal: signals that end a process of the server as a crash would.
 *
 * A sanitizer catches SIGSEGV and SIGBUS and reports them, and a test of a server fails for each
 * report in its log. In such a build SIGABRT, which it leaves alone, stands for both.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_CRASH_SIGNAL_H
#define GPUSHARE_TESTS_SUPPORT_CRASH_SIGNAL_H

#include <signal.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CRASH_SIGNAL_IS_CAUGHT 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CRASH_SIGNAL_IS_CAUGHT 1
#endif

/* The signal to send in the place of this one. */
static inline int crash_signal(int signal)
{
#ifdef CRASH_SIGNAL_IS_CAUGHT
    return signal == SIGSEGV || signal == SIGBUS ? SIGABRT : signal;
#else
    return signal;
#endif
}

#endif
