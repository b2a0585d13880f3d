/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_tools: what gpushare and gpusharectl say themselves. Part of the table in
 * common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_TOOLS_H
#define GPUSHARE_COMMON_MESSAGES_TOOLS_H

/* clang-format off */
#define MESSAGES_TOOLS(X) \
    X(option_unknown, INVALID_VALUE, \
      "there is no option %.*s: --help shows those that there are") \
    X(option_letter_unknown, INVALID_VALUE, \
      "there is no option -%c: --help shows those that there are") \
    X(option_value_missing, INVALID_VALUE, \
      "%.*s needs a value: --help shows which") \
    X(option_value_extra, INVALID_VALUE, \
      "%.*s takes no value") \
    X(tool_command_missing, INVALID_VALUE, \
      "no command: run executes a CUDA program, info shows what a client gets, doctor what is wrong") \
    X(tool_run_options, INVALID_VALUE, \
      "options of run stand behind it: gpushare run [OPTION]... PROGRAM") \
    X(tool_device, INVALID_VALUE, \
      "--device: \"%s\" is not the number of a device") \
    X(tool_warning, SUCCESS, \
      "warning: %s") \
    X(exporter_mode, INVALID_VALUE, \
      "one of --listen, --textfile and --once is needed, and no two of them") \
    X(exporter_interval, INVALID_VALUE, \
      "--interval: \"%s\" is no time from 1s to 1h, such as 15s (units: %s)") \
    X(exporter_interval_alone, INVALID_VALUE, \
      "--interval belongs to --textfile") \
    X(exporter_clients, INVALID_VALUE, \
      "--max-clients: \"%s\" is no number from 0 to %d") \
    X(exporter_textfile, INVALID_VALUE, \
      "--textfile: \"%s\" looks like an option: write ./ before a path that begins so") \
    X(exporter_address, INVALID_VALUE, \
      "--listen: \"%s\" is no ADDRESS:PORT, such as 127.0.0.1:9408 or [::1]:9408") \
    X(exporter_address_unknown, INVALID_VALUE, \
      "--listen: %s: %s") \
    X(exporter_listen, SERVER_RESOURCES, \
      "%s can't be listened on: choose an address of this machine, and a port that no other program has") \
    X(exporter_file, SERVER_RESOURCES, \
      "%s can't be written: %s: see that its folder exists and that this user may write there") \
    X(exporter_http, SUCCESS, \
      "HTTP: %s") \
    X(exporter_http_more, SUCCESS, \
      "HTTP: %u more messages were left out: at most %d in %d s are logged") \
    X(log_exporter_ready, SUCCESS, \
      "metrics are at http://%s/metrics") \
    X(log_exporter_lost, SUCCESS, \
      "the server does not answer, so gpushare_up is 0: %s") \
    X(log_exporter_found, SUCCESS, \
      "the server behind %s answers") \
    X(tool_output, SUCCESS, \
      "the output can't be written: %s") \
    X(ctl_command_missing, INVALID_VALUE, \
      "no command: one of %s") \
    X(explain_file, NOT_FOUND, \
      "%s: %s") \
    X(explain_no_executable, INVALID_IMAGE, \
      "%s is no executable that can be explained: name the program itself, not a script that starts it") \
    X(explain_memory, OUT_OF_MEMORY, \
      "%s can't be explained: this process has no memory left") \
    X(explain_damaged, SUCCESS, \
      "%s: is damaged, so not all libraries and functions that it needs are known; build or copy it again") \
    X(explain_static, SUCCESS, \
      "%s: has the CUDA runtime linked statically, which asks for undocumented parts of NVIDIA's driver; " \
      "link it again with nvcc -cudart shared") \
    X(explain_runtime, SUCCESS, \
      "%s: needs %s, and gpushare has libcudart.so.12 and libcudart.so.13; build it with CUDA 12 or 13") \
    X(explain_tables, SUCCESS, \
      "%s: uses %s, which asks for undocumented parts of NVIDIA's driver; there is no remedy yet") \
    X(explain_setuid, SUCCESS, \
      "%s: is setuid or setgid, so the dynamic linker does not let gpushare run choose its libraries; " \
      "take that bit away") \
    X(explain_unknown, SUCCESS, \
      "%s: calls functions of CUDA that gpushare's libraries do not have: %s; they are newer than these " \
      "libraries, so install a newer gpushare, or build it with an older CUDA") \
    X(explain_refused, SUCCESS, \
      "%s: calls functions of CUDA that gpushare does not carry, so each call of them fails as not " \
      "supported: %s; use others in their place: cuda-api.md lists those that are carried") \
    X(explain_in_part, SUCCESS, \
      "%s: calls functions of CUDA that gpushare carries in part: %s; cuda-api.md says what each of them " \
      "does not do") \
    X(explain_more, SUCCESS, \
      " and %zu more") \
    X(explain_no_ptx, SUCCESS, \
      "%s: its kernels have no PTX, so only GPUs that their cubins are for can run them, and the software " \
      "GPU can't; build it with nvcc -gencode arch=compute_75,code=compute_75") \
    X(explain_no_sections, SUCCESS, \
      "%s: has no section headers, so its kernels can't be found; build it without stripping these") \
    X(explain_missing, SUCCESS, \
      "%s: libraries that it needs were not found, and not looked at: %s; name their folders in " \
      "LD_LIBRARY_PATH") \
    X(explain_cut, SUCCESS, \
      "%s: needs too many libraries to look at all of them; name those with --explain one by one") \
    X(explain_nothing, SUCCESS, \
      "%s: has no kernels and links no CUDA library; a library that it opens or a program that it executes " \
      "may have, so name that one") \
    X(explain_runs, SUCCESS, \
      "%s: nothing of the file is in the way; its kernels: of PTX %u, cubins %u; functions of CUDA that it " \
      "calls: %zu, none of them refused") \
    X(explain_brief, SUCCESS, \
      "%s: in the way: %s") \
    X(explain_brief_damaged, SUCCESS, \
      "the file is damaged") \
    X(explain_brief_static, SUCCESS, \
      "a static CUDA runtime") \
    X(explain_brief_runtime, SUCCESS, \
      "needs %s") \
    X(explain_brief_tables, SUCCESS, \
      "uses %s, which asks for undocumented parts of NVIDIA's driver") \
    X(explain_brief_setuid, SUCCESS, \
      "is setuid or setgid") \
    X(explain_brief_unknown, SUCCESS, \
      "unknown functions: %s") \
    X(explain_brief_refused, SUCCESS, \
      "refused functions: %s") \
    X(explain_brief_runs, SUCCESS, \
      "%s: nothing in the way; its kernels: of PTX %u, cubins %u; its functions of CUDA: %zu carried, %zu in part") \
    X(explain_not_looked_at, SUCCESS, \
      "not looked at: %s") \
    X(explain_folder, SUCCESS, \
      "%s: files that use CUDA: %u, with something in the way: %u; gpushare run --explain FILE says more, and " \
      "has the remedies") \
    X(explain_folder_nothing, SUCCESS, \
      "%s: no executable and no library in it uses CUDA") \
    X(explain_folder_cut, SUCCESS, \
      "%s: has more than %u files or more than %u folders within each other, and not all were looked at; name " \
      "folders within it") \
    X(run_option, INVALID_VALUE, \
      "--%s: %s") \
    X(run_no_program, INVALID_VALUE, \
      "a program is missing, as in %s run ./program") \
    X(run_not_found, NOT_FOUND, \
      "there is no program %s in the folders of PATH: name its path, as in ./program") \
    X(run_not_in_path, NOT_FOUND, \
      "%s is a file of this folder, which is none of PATH: write ./%s") \
    X(run_no_file, NOT_FOUND, \
      "%s: No such file: see that its path is right") \
    X(run_unreadable, NOT_PERMITTED, \
      "%s: %s: see the rights of its folders") \
    X(run_folder, INVALID_VALUE, \
      "%s is a folder: name a program in it; gpushare run --explain %s looks at all that it holds") \
    X(run_not_executable, NOT_PERMITTED, \
      "%s is not executable for this user: chmod +x %s, or name the program that reads it, as in python3 FILE") \
    X(run_setuid, NOT_PERMITTED, \
      "%s is setuid or setgid, so the dynamic linker does not let gpushare run choose its libraries: execute " \
      "gpushare run as the user for whom the program works (sudo gpushare run PROGRAM), or take that bit away") \
    X(run_interpreter, NOT_FOUND, \
      "%s names an interpreter or a dynamic linker that is not there: see its first line, or file %s") \
    X(run_format, INVALID_VALUE, \
      "%s can't be executed: %s: see with file %s that it is for this machine") \
    X(run_libraries, NOT_FOUND, \
      "%s can't be used: install gpushare's CUDA libraries beside this program's folder, on a path " \
      "without a colon or a space") \
    X(ctl_command_unknown, INVALID_VALUE, \
      "unknown command \"%s\"") \
    X(ctl_command_misspelt, INVALID_VALUE, \
      "there is no command \"%s\": perhaps %s was meant") \
    X(ctl_command_none, INVALID_VALUE, \
      "there is no command \"%s\": there are %s") \
    X(ctl_argument, INVALID_VALUE, \
      "\"%s\" is one argument too many") \
    X(ctl_target_missing, INVALID_VALUE, \
      "this command needs the number of a client, as `gpusharectl clients` shows it, or user " \
      "and a uid or name, or group and a gid or name, or cgroup and a path, or gpu and an index") \
    X(ctl_victim_missing, INVALID_VALUE, \
      "this command needs the number or the name of a client, as `gpusharectl clients` shows them, " \
      "or user and a uid or name") \
    X(ctl_victim, INVALID_VALUE, \
      "\"%s\" is not the number or the name of a client, as `gpusharectl clients` shows them, or " \
      "user and a uid or name") \
    X(ctl_client_missing, INVALID_VALUE, \
      "this command needs the number of a client, as `gpusharectl clients` shows it") \
    X(ctl_user_missing, INVALID_VALUE, \
      "this command needs a uid, or the name of a user") \
    X(ctl_group_missing, INVALID_VALUE, \
      "this command needs a gid, or the name of a group") \
    X(ctl_cgroup_missing, INVALID_VALUE, \
      "this command needs the path of a control group, such as /batch.slice") \
    X(ctl_gpu_missing, INVALID_VALUE, \
      "this command needs the index of a GPU, as `gpusharectl status` shows it") \
    X(ctl_target, INVALID_VALUE, \
      "\"%s\" is not the number of a client, as `gpusharectl clients` shows it, or user and a " \
      "uid or name, or group and a gid or name, or cgroup and a path, or gpu and an index") \
    X(ctl_client_number, INVALID_VALUE, \
      "\"%s\" is not the number of a client, as `gpusharectl clients` shows it") \
    X(ctl_user_number, INVALID_VALUE, \
      "\"%s\" is neither a uid nor the name of a user") \
    X(ctl_group_number, INVALID_VALUE, \
      "\"%s\" is neither a gid nor the name of a group") \
    X(ctl_cgroup_path, INVALID_VALUE, \
      "\"%s\" is not the path of a control group, such as /batch.slice") \
    X(ctl_gpu_number, INVALID_VALUE, \
      "\"%s\" is not the index of a GPU, as `gpusharectl status` shows it") \
    X(ctl_value, INVALID_VALUE, \
      "\"%s\": %s") \
    X(ctl_value_name, INVALID_VALUE, \
      "\"%s\" is none of %s (each with .request or .limit, or without), fraction=, " \
      "%s with a value") \
    X(ctl_value_name_user, INVALID_VALUE, \
      "\"%s\" is none of %s (each with .request or .limit, or without), fraction=, " \
      "%s, of each client, or %s with a value") \
    X(ctl_value_name_group, INVALID_VALUE, \
      "\"%s\" is none of %s with a value") \
    X(ctl_value_name_cgroup, INVALID_VALUE, \
      "\"%s\" is none of total.threads= or total.time= (each with .request or .limit, or without) " \
      "with a value") \
    X(ctl_value_name_gpu, INVALID_VALUE, \
      "\"%s\" is none of mode=, lease=, precision=, quantum=, window_limit=, local_memory=, " \
      "departed_time_limit=, watchdog_warning=, watchdog_limit= or standby= with a value, nor a " \
      "limit of clients to come (new_clients.threads=)") \
    X(ctl_value_of_gpu, INVALID_VALUE, \
      "\"%s\" is a setting of a GPU: gpusharectl set gpu 0 %s") \
    X(ctl_value_of_client, INVALID_VALUE, \
      "\"%s\" is a limit of clients, and not of a GPU: gpusharectl set 7 %s, for client 7 (of clients " \
      "to come: set gpu 0 new_clients.%s)") \
    X(ctl_value_twice, INVALID_VALUE, \
      "\"%s\" sets a value twice: another argument sets it too") \
    X(ctl_value_utf8, INVALID_VALUE, \
      "\"%s\" is not UTF-8") \
    X(ctl_value_priority, INVALID_VALUE, \
      "\"%s\": the value must be %s") \
    X(ctl_value_text, INVALID_VALUE, \
      "the value is not UTF-8") \
    X(ctl_set_nothing, INVALID_VALUE, \
      "set needs a limit to set, such as %s") \
    X(ctl_totals_alone, INVALID_VALUE, \
      "totals and the limits of each client can't be set together: give two commands") \
    X(ctl_trace_option, INVALID_VALUE, \
      "%s is an option of trace") \
    X(ctl_trace_file, INVALID_VALUE, \
      "trace needs a file to write: -o FILE") \
    X(ctl_trace_seconds, INVALID_VALUE, \
      "\"%s\": a trace lasts from 0.001 to 600 seconds (a number, or a time with one of the units %s)") \
    X(ctl_trace_gpu, INVALID_VALUE, \
      "\"%s\" is not the number of a GPU, as `gpusharectl status` shows it") \
    X(ctl_trace_write, INVALID_VALUE, \
      "cannot write %s: %s") \
    X(ctl_trace_memory, CONNECTION_LOST, \
      "the server sent no memory with the trace") \
    X(ctl_trace_unreadable, SUCCESS, \
      "the server's trace can't be read: %s") \
    X(ctl_trace_size, SERVER_RESOURCES, \
      "the server's trace can't be read: its size is not that of a trace") \
    X(ctl_trace_unsealed, SERVER_RESOURCES, \
      "the server's trace can't be read: it is not sealed") \
    X(ctl_trace_version, PROTOCOL_VIOLATION, \
      "the server's trace can't be read: it is of another version: use the gpusharectl of the " \
      "server's release") \
    X(ctl_trace_unbegun, PROTOCOL_VIOLATION, \
      "the server's trace can't be read: the worker had not begun to write") \
    X(ctl_trace_no_memory, SERVER_RESOURCES, \
      "the server's trace can't be read: memory is short") \
    X(ctl_trace_lost, SUCCESS, \
      "records that did not fit: %llu; trace a shorter time") \
    X(ctl_trace_cut, SUCCESS, \
      "the trace is cut short: %s") \
    X(ctl_traced, SUCCESS, \
      "%s: %.3f s of GPU %u, records: %llu, clients: %u; open it at https://ui.perfetto.dev") \
    X(ctl_killed, SUCCESS, \
      "client %s '%s' (pid %s, uid %s): connection ended") \
    X(ctl_killed_alone, SUCCESS, \
      "client %s '%s' (pid %s, uid %s): its work is ended, with the worker of GPU %s; no other " \
      "client had that worker") \
    X(ctl_killed_worker, SUCCESS, \
      "client %s '%s' (pid %s, uid %s): its work is ended, with the worker of GPU %s; work " \
      "of these clients is interrupted if it was under way:") \
    X(ctl_killed_other, SUCCESS, \
      "  client %s '%s' (pid %s, uid %s)") \
    X(ctl_name_unknown, SUCCESS, \
      "no client is named \"%s\": `gpusharectl clients` shows their names, and `kill user NAME` ends " \
      "those of a user") \
    X(ctl_name_of_several, SUCCESS, \
      "\"%s\" is the name of several clients: %s; give the number of one, or --all with the name to " \
      "end each of them") \
    X(ctl_kill_stopped, SUCCESS, \
      "of the clients named \"%s\" the connections of %zu of %zu were ended, and then: %s") \
    X(ctl_killed_nobody, SUCCESS, \
      "there was no client to end") \
    X(ctl_option_other, INVALID_VALUE, \
      "%s is no option of %s: gpusharectl help %s") \
    X(ctl_kill_whom, INVALID_VALUE, \
      "kill takes one of: the number or the name of a client, --user NAME or --all; --all with a name " \
      "ends each client of that name") \
    X(ctl_columns, INVALID_VALUE, \
      "\"%.*s\" is no column: -o takes wide, json, csv, or columns with commas between them: %s") \
    X(ctl_output_twice, INVALID_VALUE, \
      "-o says how the clients are printed, and so does --json or --wide: give one of them") \
    X(ctl_top_number, INVALID_VALUE, \
      "\"%s\": -n needs a whole number from 1 on, of looks after which top ends") \
    X(ctl_top_delay, INVALID_VALUE, \
      "\"%s\": -d needs a number of seconds from 0.1 to 3600 between two looks") \
    X(ctl_shell, INVALID_VALUE, \
      "completion is there for bash alone: gpusharectl completion bash") \
    X(ctl_events_missed, SUCCESS, \
      "(lines before these that are kept no longer: %lld)") \
    X(ctl_log_level, SUCCESS, \
      "the log has the level %s") \
    X(ctl_drained, SUCCESS, \
      "GPU %s takes no new clients; clients that are still attached: %s") \
    X(ctl_resumed, SUCCESS, \
      "GPU %s takes new clients") \
    X(ctl_drain_unsaved, SUCCESS, \
      "this holds until the server ends for good: to have it hold after that, start gpushared with " \
      "--state-dir PATH, or with systemd's StateDirectory=") \
    X(ctl_drain_idle, SUCCESS, \
      "no client is left on the GPUs that are drained") \
    X(ctl_drain_over, NOT_READY, \
      "GPU %lld takes new clients again, because somebody resumed it: drain it again") \
    X(ctl_drain_late, NOT_READY, \
      "clients are still attached after %s, and their GPUs stay drained: wait again with drain " \
      "--wait, or end them with kill (%s)") \
    X(ctl_drain_time, INVALID_VALUE, \
      "\"%s\": --timeout needs a time of at least 1 ms, such as 30s or 5min (units: %s; a number " \
      "alone is seconds)") \
    X(ctl_check_program, SERVER_RESOURCES, \
      "%s can't be executed: %s: install gpushared beside gpusharectl, or run gpushared " \
      "--check-config where it is") \
    X(ctl_check_ended, SERVER_RESOURCES, \
      "%s ended without a word about the file: run it with --check-config to see why") \
    X(ctl_config_missing, INVALID_VALUE, \
      "config needs a word behind it: check [FILE], or show") \
    X(ctl_config_word, INVALID_VALUE, \
      "\"%s\" is no part of config: there are check [FILE] and show") \
    X(ctl_config_head, SUCCESS, \
      "# The configuration that gpushared %s has in force. Its file: %s") \
    X(ctl_config_total, SUCCESS, \
      "# set by an administrator, in the place of the file's total: gpusharectl %s") \
    X(ctl_new_clients, SUCCESS, \
      "gpu %s: new_clients.%s is %s, set by an administrator (back: gpusharectl set gpu %s " \
      "new_clients.%s=configured)") \
    X(info_request_lowered, SUCCESS, \
      "%s.request: less is granted than was asked for: the server's configuration, its environment or an " \
      "administrator says less, or other users are there: a client may reserve for itself an equal " \
      "part, which rises when they leave") \
    X(ctl_device_drained, SUCCESS, \
      "device %s: takes no new clients, because an administrator drains it: gpusharectl resume %s") \
    X(top_nobody, SUCCESS, \
      "there is no client to kill") \
    X(top_kill, SUCCESS, \
      "end the connection of client %lld '%s' of %s? y: yes, any other key: no") \
    X(top_killed, SUCCESS, \
      "client %lld '%s' of %s: connection ended") \
    X(top_spared, SUCCESS, \
      "client %lld goes on") \
    X(top_terminal, SERVER_RESOURCES, \
      "this terminal can't be read key by key: %s: use top -b") \
    X(ctl_ping, SUCCESS, \
      "gpushared answers") \
    X(ctl_reloaded, SUCCESS, \
      "%s is in force; its entries: profiles %lld, rules %lld, gpus %lld, users %lld, groups %lld, " \
      "cgroups %lld") \
    X(ctl_reload_changed, SUCCESS, \
      "changed by that: clients %lld, settings of GPUs %lld") \
    X(ctl_no_configuration, SUCCESS, \
      "there is no configuration file, so no limits are configured (write " \
      "/etc/gpushare/gpushared.yaml, or start gpushared with --config)") \
    X(ctl_unreachable, CONNECTION_FAILED, \
      "the server could not be reached") \
    X(ctl_socket_missing, CONNECTION_FAILED, \
      "no admin socket is at %s (%s): start gpushared, or correct the path (--socket, " \
      "GPUSHARE_SOCKET)") \
    X(ctl_socket_abandoned, CONNECTION_FAILED, \
      "cannot connect to %s: %s: the server that made this socket has ended: start " \
      "gpushared") \
    X(ctl_socket_kind, CONNECTION_FAILED, \
      "cannot connect to %s: %s: that is not an admin socket (it may be the clients' " \
      "socket): name the admin socket with --socket") \
    X(ctl_socket_folder, CONNECTION_FAILED, \
      "cannot connect to %s: %s: a folder above it is closed to this user: use sudo") \
    X(ctl_socket_group, CONNECTION_FAILED, \
      "cannot connect to %s: %s: only its owner, root and members of its group gpushare " \
      "may: ask to be added to the group, or use sudo") \
    X(ctl_socket_other_group, CONNECTION_FAILED, \
      "cannot connect to %s: %s: only its owner, root and members of its group %s may: use " \
      "sudo (if the system has a group gpushare when gpushared starts, that group gets the " \
      "socket)") \
    X(ctl_socket_unreachable, CONNECTION_FAILED, \
      "cannot connect to %s: %s: see that gpushared runs") \
    X(ctl_answer_form, CONNECTION_LOST, \
      "the answer from %s is not in gpushared's format: name the admin socket with --socket") \
    X(ctl_answer_missing, CONNECTION_LOST, \
      "the server behind %s did not answer: %s: look at its log (journalctl -u gpushared), or ask gpushare doctor")
/* clang-format on */

#endif
