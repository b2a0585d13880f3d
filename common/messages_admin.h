/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_admin: what administrators are told on the admin socket, and what the log says of their
 * requests. Part of the table in common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_ADMIN_H
#define GPUSHARE_COMMON_MESSAGES_ADMIN_H

/* clang-format off */
#define MESSAGES_ADMIN(X) \
    X(server_no_memory, SERVER_RESOURCES, \
      "the server has no memory left for this request: try again later") \
    X(request_failed, SERVER_RESOURCES, \
      "the server could not do it: %s") \
    X(admin_line_max, INVALID_VALUE, \
      "a request may have at most %d bytes, its newline included") \
    X(admin_depth_max, INVALID_VALUE, \
      "a request may nest at most %d deep") \
    X(admin_not_json, INVALID_VALUE, \
      "a request must be one JSON object on one line: %s") \
    X(admin_request_text, INVALID_VALUE, \
      "a request must be an object with a text \"request\", such as {\"request\":\"status\"}") \
    X(admin_request_unknown, NOT_SUPPORTED, \
      "there is no request \"%.64s\": this server knows ping, version, status, clients, get, " \
      "set, kill, reload, trace, metrics, drain, resume, events, log-level and config") \
    X(admin_metrics_clients, INVALID_VALUE, \
      "\"clients\" must be a whole number from 0 to %d: how many clients have rows of their own") \
    X(admin_member_unknown, INVALID_VALUE, \
      "\"%s\" has no member \"%.64s\"") \
    X(admin_gpu_member_unknown, INVALID_VALUE, \
      "\"set\" of a GPU has no member \"%.64s\"") \
    X(admin_group_member_unknown, INVALID_VALUE, \
      "\"set\" of a group has no member \"%.64s\"") \
    X(admin_cgroup_member_unknown, INVALID_VALUE, \
      "\"set\" of a control group has no member \"%.64s\"") \
    X(admin_cgroup_path, INVALID_VALUE, \
      "\"cgroup\" must be the path of one control group, such as \"/batch.slice\": a text of at " \
      "most %d bytes that begins with a slash, does not end with one, and has no *") \
    X(admin_cgroup_total, INVALID_VALUE, \
      "\"set\" of a control group needs \"total\"") \
    X(admin_cgroup_total_object, INVALID_VALUE, \
      "\"total\" of a control group must be an object of \"threads\" and \"time\", at least one " \
      "of them") \
    X(admin_subject, INVALID_VALUE, \
      "\"%s\" needs \"client\", the number of a client as \"clients\" shows it, or \"user\", a " \
      "uid, or \"group\", a gid, or \"cgroup\", a path, or \"gpu\", the index of a device, and " \
      "only one of them") \
    X(admin_kill_subject, INVALID_VALUE, \
      "\"kill\" needs \"client\", the number of a client as \"clients\" shows it, or \"user\", a " \
      "uid, for all of that user's, or \"all\": true for everybody's: one of them") \
    X(admin_force_user, INVALID_VALUE, \
      "a worker is replaced for one client, so force needs \"client\": kill the clients " \
      "without it, and then, by its number, one whose work does not end") \
    X(admin_drain_gpu, INVALID_VALUE, \
      "\"%s\" takes \"gpu\", the number of a device as \"status\" shows it, or nothing, for all " \
      "devices") \
    X(admin_bound, INVALID_VALUE, \
      "\"%s.limit\": \"%.64s\" is not %s") \
    X(admin_bound_request, INVALID_VALUE, \
      "\"%s.request\": \"%.64s\" is not %s, or 0 for none") \
    X(admin_bound_text, INVALID_VALUE, \
      "\"%s.limit\" must be a text: %s") \
    X(admin_bound_request_text, INVALID_VALUE, \
      "\"%s.request\" must be a text: %s") \
    X(admin_resource, INVALID_VALUE, \
      "\"%s\" must be an object {\"request\": text, \"limit\": text} of one or both: %s") \
    X(admin_priority, INVALID_VALUE, \
      "\"%s\" must be %s") \
    X(admin_set_nothing, INVALID_VALUE, \
      "\"set\" needs something to set: %s, %s") \
    X(admin_total_request, INVALID_VALUE, \
      "total.%s.request can't be set: each client requests memory for itself, and all clients " \
      "together can only have a limit") \
    X(admin_total_resource, INVALID_VALUE, \
      "\"total.%s\" must be an object {\"limit\": text}: %s, or configured") \
    X(admin_total_share, INVALID_VALUE, \
      "\"total.%s\" must be an object {\"request\": text, \"limit\": text} of one or both: %s, or " \
      "configured") \
    X(admin_total_limit_text, INVALID_VALUE, \
      "\"total.%s.limit\" must be a text: %s, or configured, which stands for the " \
      "configuration's limit") \
    X(admin_total_limit, INVALID_VALUE, \
      "\"total.%s.limit\": \"%.64s\" is not %s, nor configured, which stands for the " \
      "configuration's limit") \
    X(admin_total_request_text, INVALID_VALUE, \
      "\"total.%s.request\" must be a text: %s, or configured, which stands for the " \
      "configuration's request") \
    X(admin_total_request_form, INVALID_VALUE, \
      "\"total.%s.request\": \"%.64s\" is not %s, nor configured, which stands for the " \
      "configuration's request") \
    X(admin_total_alone, INVALID_VALUE, \
      "\"total\" can't be set together with limits of each client: send two requests") \
    X(admin_group_total, INVALID_VALUE, \
      "\"set\" of a group needs \"total\"") \
    X(admin_total_object, INVALID_VALUE, \
      "\"total\" must be an object of %s, at least one of them") \
    X(admin_schedule_text, INVALID_VALUE, \
      "\"%s\" of a GPU must be a text, like \"fair\" or \"50ms\" or \"5%%\"") \
    X(admin_schedule_nothing, INVALID_VALUE, \
      "\"set\" of a GPU needs something to set: \"mode\", \"lease\", \"precision\", " \
      "\"quantum\", \"window_limit\", \"local_memory\", \"departed_time_limit\", " \
      "\"watchdog_warning\", \"watchdog_limit\" or \"standby\"") \
    X(admin_trace_gpu, INVALID_VALUE, \
      "\"trace\" needs \"gpu\", the number of a device as \"status\" shows it") \
    X(admin_trace_seconds, INVALID_VALUE, \
      "\"trace\" needs \"seconds\", a number from 0.001 to %d") \
    X(admin_nobody, NOT_PERMITTED, \
      "uid %u stands for every user that this server's user namespace does not know, and may " \
      "not use %s: ask root") \
    X(admin_not_permitted, NOT_PERMITTED, \
      "uid %u may not use %s: ask root, or start gpushared with --admin-uid %u") \
    X(admin_connections_max, SERVER_RESOURCES, \
      "the admin socket has %d connections, as many as it may have: try again later") \
    X(admin_user_connections_max, SERVER_RESOURCES, \
      "uid %u has %u connections to the admin socket, as many as it may have: close one") \
    X(admin_listen, SUCCESS, \
      "the server can't listen for administrators: %s") \
    X(admin_socket_taken, SUCCESS, \
      "the admin socket %s can't be made: another server listens there, or the file is no " \
      "socket: name another with --admin-socket") \
    X(admin_socket_make, SUCCESS, \
      "the admin socket %s can't be made: %s") \
    X(admin_socket_mode, SUCCESS, \
      "the mode of the admin socket %s can't be set: %s") \
    X(admin_socket_passed, SUCCESS, \
      "the admin socket that was passed to the server can't be used: %s") \
    X(client_unknown, NOT_FOUND, \
      "there is no client %u: \"clients\" shows the clients there are") \
    X(client_not_attached, NOT_FOUND, \
      "there is no attached client %u: \"clients\" shows the clients there are") \
    X(client_has_left, NOT_FOUND, \
      "client %u has left, and its limits can't be shown or changed any more: gpusharectl kill %u " \
      "says what keeps it") \
    X(user_not_attached, NOT_FOUND, \
      "no client of uid %u is attached: \"clients\" shows the clients there are") \
    X(gpu_unknown, NOT_FOUND, \
      "there is no GPU %u: \"status\" shows the GPUs there are") \
    X(reload_first, NOT_READY, \
      "a reload of the configuration is under way: try again when it is over") \
    X(set_client, SUCCESS, \
      "client %u: %s") \
    X(set_gpu, SUCCESS, \
      "GPU %u: %s") \
    X(change_profile_gone, NOT_FOUND, \
      "client %u asked for profile \"%.64s\", which the configuration does not define any more: name " \
      "the value instead of configured") \
    X(set_client_gone, NOT_FOUND, \
      "client %u left before the change was made") \
    X(set_user_gone, NOT_FOUND, \
      "the clients of uid %u left before the change was made") \
    X(set_late, DEVICE_NOT_READY, \
      "a worker has not answered for %d s: it may still make the change; \"get\" shows what " \
      "holds") \
    X(total_of_unidentified, NOT_FOUND, \
      "user %u can't have a total: the number stands for clients that the server can't " \
      "identify, and these have the lowest of all totals that are set") \
    X(total_of_unidentified_group, NOT_FOUND, \
      "group %u can't have a total: the number stands for clients that the server can't " \
      "identify, and these have the lowest of all totals that are set") \
    X(totals_max, SERVER_RESOURCES, \
      "%d totals have been set already: write more of them into the configuration") \
    X(admin_save, INVALID_VALUE, \
      "\"save\" must be true or false") \
    X(admin_save_clients, INVALID_VALUE, \
      "only the settings of a GPU and totals can be saved: the limits of " \
      "running clients end with them, and those of clients to come stand in the configuration") \
    X(saved_no_folder, NOT_SUPPORTED, \
      "the server has no folder in which it could save this: start gpushared with --state-dir " \
      "PATH, or with systemd's StateDirectory=") \
    X(saved_unreadable, SERVER_RESOURCES, \
      "%s can't be read: %s: mend or remove it, and start gpushared again") \
    X(saved_no_file, SERVER_RESOURCES, \
      "%s is not a file of at most %d MiB: remove it, and start gpushared again") \
    X(saved_foreign, NOT_PERMITTED, \
      "%s belongs to uid %u and has the mode %03o: only root or the server's own user may be able " \
      "to write it; mend that, and start gpushared again") \
    X(saved_not_json, INVALID_VALUE, \
      "%s:%d: %s: mend or remove the file, and start gpushared again") \
    X(saved_form, INVALID_VALUE, \
      "%s is not an object with \"schema_version\": %d and the objects \"gpus\", \"users\" and " \
      "\"groups\": mend or remove it, and start gpushared again") \
    X(saved_no_values, INVALID_VALUE, \
      "they must be an object with a member for each value") \
    X(set_not_saved, SERVER_RESOURCES, \
      "the change is in force, but the server could not write %s: %s: mend that and set it again") \
    X(log_saved_not_read, SUCCESS, \
      "what administrators have saved is not in force: %s") \
    X(log_saved_gpu_absent, SUCCESS, \
      "%s: %s is not among the GPUs of this server, so its settings have no effect") \
    X(log_saved_name, SUCCESS, \
      "%s: \"%.40s\" is not the number of a %s, so its values are not in force") \
    X(log_saved_refused, SUCCESS, \
      "%s: the values of %s %s are not in force: %s") \
    X(log_saved_late, SUCCESS, \
      "%s: values in it are not in force, which turned out late: %s") \
    X(log_saved_value_refused, SUCCESS, \
      "%s: the value %s of %s %s is not in force: %s") \
    X(saved_waits, SUCCESS, \
      "%s can't be written (%s), so what is set with --save does not outlive the server: see the room and the " \
      "rights of its folder, then set it again") \
    X(log_saved_not_written, SUCCESS, \
      "%s can't be written: %s") \
    X(trace_late, DEVICE_NOT_READY, \
      "the worker has not answered, so the trace has ended: try again, and look at the " \
      "server's log") \
    X(trace_descriptor, SERVER_RESOURCES, \
      "the server has no file descriptor left for the trace: raise its limit (LimitNOFILE)") \
    X(trace_gpu_unknown, INVALID_DEVICE, \
      "there is no GPU %u: this server has %u, numbered from 0") \
    X(admin_events_after, INVALID_VALUE, \
      "\"after\" must be the number of an event, as an earlier answer has it under \"latest\", or 0") \
    X(admin_log_level, INVALID_VALUE, \
      "\"level\" must be error, warning, notice, info or debug") \
    X(log_level_set, SUCCESS, \
      "the log has the level %s now, by %s") \
    X(drain_not_saved, SERVER_RESOURCES, \
      "the change is in force until this server ends, but the server could not write %s: %s: mend " \
      "that and give the command again") \
    X(log_drained, SUCCESS, \
      "device %u: takes no new clients any more: drained by %s") \
    X(log_resumed, SUCCESS, \
      "device %u: takes new clients again: resumed by %s") \
    X(log_drain_restored, SUCCESS, \
      "device %u: takes no new clients, because %s has it among the GPUs that are drained") \
    X(log_admin_refused, SUCCESS, \
      "admin: uid %u (pid %d) asked for \"%s\" and was refused") \
    X(log_admin_socket_group, SUCCESS, \
      "admin: %s can't be given to group %s (%s): only this server's own group and root may " \
      "open it") \
    X(log_set_not_undone, SUCCESS, \
      "admin: the limits of client %u could not be restored: %s") \
    X(total_request_over_limit, INVALID_VALUE, \
      "the request of %s in total, %s, would exceed the limit, %s: set both, or raise the limit " \
      "first") \
    X(log_total_set_request, SUCCESS, \
      "%s, request in total by %s: %s %s%s") \
    X(log_total_set, SUCCESS, \
      "%s, limit in total by %s: %s %s%s") \
    X(admin_new_clients_alone, INVALID_VALUE, \
      "limits of clients to come are set alone, and end with the server: give other settings in a " \
      "request of their own, and leave out \"save\" (the configuration file has limits that last)") \
    X(admin_new_clients_request, INVALID_VALUE, \
      "clients to come can have limits and no requests: leave out the request of %s, or write a rule " \
      "into the configuration file") \
    X(admin_new_clients_object, INVALID_VALUE, \
      "\"new_clients\" must be an object of limits, such as {\"threads\": {\"limit\": \"50%%\"}, " \
      "\"priority\": 1}") \
    X(admin_config_unready, DEVICE_NOT_READY, \
      "the limits of device %u are not known before its first worker is ready: gpusharectl status " \
      "shows why it is not") \
    X(log_new_clients_set, SUCCESS, \
      "device %u: limits of clients to come were set by %s")
/* clang-format on */

#endif
