/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_watch: workers that don't answer, and work that does not end. Part of the table in
 * common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_WATCH_H
#define GPUSHARE_COMMON_MESSAGES_WATCH_H

/* clang-format off */
#define MESSAGES_WATCH(X) \
    X(worker_output, SERVER_RESOURCES, \
      "standard output can't be turned to /dev/null: %s; give the service its device nodes") \
    X(activity_memory, SERVER_RESOURCES, \
      "the worker can't map the memory for notes of what its threads do: %s") \
    X(device_silent, DEVICE_NOT_READY, \
      "the worker of device %u has not answered for %s (%s): connect again later, or ask the " \
      "administrator") \
    X(attach_unanswered, DEVICE_NOT_READY, \
      "the worker of device %u is busy and has not taken the client in time: connect again") \
    X(worker_silent, WORKER_LOST, \
      "the worker of device %u did not answer for %s (%s) and was replaced") \
    X(worker_start_silent, WORKER_LOST, \
      "the worker of device %u was not ready after %s (%s) and was replaced") \
    X(config_kernel_time, INVALID_VALUE, \
      "%s must be %s, not \"%.64s\"") \
    X(config_kernel_time_form, INVALID_VALUE, \
      "%s must be %s, and a single value") \
    X(admin_kernel_time, INVALID_VALUE, \
      "\"%s\" must be %s, or 0 for none") \
    X(kernel_overran, LAUNCH_TIMEOUT, \
      "client %u '%s' ran a kernel for more than %s, its kernel_time_limit: make the kernel shorter, or " \
      "raise the limit") \
    X(session_overran, SUCCESS, \
      "%s (unfinished: %s)") \
    X(kernel_overran_one_of, SUCCESS, \
      "client %u '%s' or client %u '%s' ran a kernel for more than %s, the kernel_time_limit of " \
      "the first") \
    X(departed_overran, SUCCESS, \
      "the work of client %u '%s', which has left, did not end while others waited for %s, the " \
      "departed_time_limit") \
    X(worker_overran, WORKER_LOST, \
      "the worker of device %u was replaced, because %s") \
    X(client_leaving, NOT_READY, \
      "client %u has left, and its work on GPU %u has not ended: only another worker ends it, " \
      "which interrupts work of other clients (%u): %s: kill --force %u does that") \
    X(client_leaving_alone, NOT_READY, \
      "client %u has left, and its work on GPU %u has not ended: only another worker ends it, " \
      "which costs no other client any work: kill --force %u does that") \
    X(client_leaving_waits, NOT_READY, \
      "client %u has left and has no work: it waits for a quiet window to give its host memory " \
      "back, which client %u '%s' prevents: end that one") \
    X(client_leaving_idle, NOT_READY, \
      "client %u has left and has no work: what it had is being given back, and there is nothing " \
      "to end") \
    X(client_forced, WORKER_LOST, \
      "an administrator (%s) replaced the worker of device %u, to end the work of client %u " \
      "'%s', which had left") \
    X(session_worker_lost, SUCCESS, \
      "%s: what the client had on the device is lost: connect again") \
    X(admin_force, INVALID_VALUE, \
      "\"force\" must be true or false") \
    X(admin_reset, INVALID_VALUE, \
      "\"reset\" must be true or false") \
    X(ctl_reset_option, SUCCESS, \
      "--reset is an option of reload") \
    X(ctl_save_option, SUCCESS, \
      "--save is an option of set") \
    X(ctl_client_drift, SUCCESS, \
      "client %s: an administrator has set %s") \
    X(ctl_client_drift_remedy, SUCCESS, \
      "`gpusharectl set N NAME=configured` goes back to the client's own wish and the configuration") \
    X(ctl_drift_saved, SUCCESS, \
      "GPU %s: %s is %s, which is saved, and the configuration says %s") \
    X(ctl_drift, SUCCESS, \
      "GPU %s: %s is %s, and the configuration says %s") \
    X(ctl_drift_remedy, SUCCESS, \
      "`gpusharectl set gpu N NAME=configured` goes back to the configuration, and so does " \
      "`reload --reset` with everything that administrators have set") \
    X(ctl_force_option, SUCCESS, \
      "--force is an option of kill") \
    X(ctl_wide_option, SUCCESS, \
      "--wide is an option of status and clients") \
    X(silence_in, SUCCESS, \
      "thread %s in %s") \
    X(silence_outside, SUCCESS, \
      "thread %s, in no call of the driver") \
    X(silence_stopped, SUCCESS, \
      "the process is stopped, by a signal or a debugger") \
    X(log_worker_silent, SUCCESS, \
      "device %u: the worker has not answered for %s: %s") \
    X(log_worker_answers, SUCCESS, \
      "device %u: the worker answers again")
/* clang-format on */

#endif
