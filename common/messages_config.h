/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_config: what is wrong with an administrator's configuration, or how it is read again.
 * Part of the table in common/messages.h. In front of most of them stands "FILE:LINE: ". */
#ifndef GPUSHARE_COMMON_MESSAGES_CONFIG_H
#define GPUSHARE_COMMON_MESSAGES_CONFIG_H

/* clang-format off */
#define MESSAGES_CONFIG(X) \
    X(config_no_memory, SERVER_RESOURCES, \
      "the server has no memory left to read the configuration") \
    X(config_not_a_file, INVALID_VALUE, \
      "%s: is not a regular file") \
    X(config_unreadable, INVALID_VALUE, \
      "%s: %s") \
    X(config_not_permitted, INVALID_VALUE, \
      "%s: %s: the user %s, as whom gpushared runs, must be able to read the file, and to pass through its folders") \
    X(config_service_user, SUCCESS, \
      "%s: the service's user %s can't read it: %s: see the rights of the file and of its folders") \
    X(config_bytes_max, INVALID_VALUE, \
      "the file has more than %d bytes") \
    X(config_file_nul, INVALID_VALUE, \
      "the file has a NUL byte: it must be a text file") \
    X(config_not_yaml, INVALID_VALUE, \
      "this is not YAML: %s") \
    X(config_not_yaml_near, INVALID_VALUE, \
      "this is not YAML: %s %s") \
    X(config_not_yaml_tab, INVALID_VALUE, \
      "this is not YAML: %s (indent with blanks, not with tabs)") \
    X(config_values_max, INVALID_VALUE, \
      "the file has more than %d values") \
    X(config_depth_max, INVALID_VALUE, \
      "mappings and lists are nested more than %d deep") \
    X(config_second_document, INVALID_VALUE, \
      "a second document begins here: write one document per file") \
    X(config_anchor, INVALID_VALUE, \
      "anchors and aliases (& and *) are not understood: name a profile, and put a text " \
      "that begins with one of them in quotes") \
    X(config_tag, INVALID_VALUE, \
      "tags (!) are not understood: leave the tag out") \
    X(config_text_nul, INVALID_VALUE, \
      "a text has a NUL byte: take it out") \
    X(config_key_text, INVALID_VALUE, \
      "a key must be a word") \
    X(config_keys_max, INVALID_VALUE, \
      "a mapping has more than %d keys") \
    X(config_key_twice, INVALID_VALUE, \
      "the key \"%.64s\" is given twice, first in line %u: delete one") \
    X(config_key_unknown, INVALID_VALUE, \
      "unknown key \"%.64s\" in %s: known are %s") \
    X(config_mapping, INVALID_VALUE, \
      "%s must be a mapping (key: value)") \
    X(config_list, INVALID_VALUE, \
      "%s must be a list (- ...)") \
    X(config_list_max, INVALID_VALUE, \
      "%s has more than %zu entries") \
    X(config_list_empty, INVALID_VALUE, \
      "%s is an empty list: leave the key out to mean everybody") \
    X(config_form, INVALID_VALUE, \
      "%s must be %s") \
    X(config_text, INVALID_VALUE, \
      "%s must be a text") \
    X(config_number, INVALID_VALUE, \
      "%s must be a number from %llu to %llu") \
    X(config_number_not, INVALID_VALUE, \
      "%s must be a number from %llu to %llu, not \"%.64s\"") \
    X(config_range, INVALID_VALUE, \
      "%s must be a number, a range like 1000-1999, or a name that this machine knows") \
    X(config_range_not, INVALID_VALUE, \
      "%s must be a number, a range like 1000-1999, or a name that this machine knows, not " \
      "\"%.64s\"") \
    X(id_name_no_user, INVALID_VALUE, \
      "there is no user \"%.64s\" on this machine: correct the name, or give the uid") \
    X(id_name_no_group, INVALID_VALUE, \
      "there is no group \"%.64s\" on this machine: correct the name, or give the gid") \
    X(id_name_user_lookup, INVALID_VALUE, \
      "the user \"%.64s\" can't be looked up (%s): give the uid, or try again") \
    X(id_name_group_lookup, INVALID_VALUE, \
      "the group \"%.64s\" can't be looked up (%s): give the gid, or try again") \
    X(config_pattern_path, INVALID_VALUE, \
      "%s must be an absolute path, with '*' for any part of a name in it") \
    X(config_pattern_text, INVALID_VALUE, \
      "%s must be a text, with '*' for any part of it") \
    X(config_bound, INVALID_VALUE, \
      "%s.limit \"%.64s\" must be %s") \
    X(config_bound_request, INVALID_VALUE, \
      "%s.request \"%.64s\" must be %s, or 0 so that nothing is reserved") \
    X(config_bound_form, INVALID_VALUE, \
      "%s.limit must be %s") \
    X(config_bound_request_form, INVALID_VALUE, \
      "%s.request must be %s") \
    X(config_per, INVALID_VALUE, \
      "per must be client: each client that the rule fits is then an account of its own") \
    X(config_cgroup_missing, INVALID_VALUE, \
      "an entry of cgroups needs the key cgroup: a path like /batch.slice") \
    X(config_total_request, INVALID_VALUE, \
      "%s.request is not allowed here: each client requests memory, and all clients together " \
      "can have a limit only") \
    X(config_resource_mapping, INVALID_VALUE, \
      "%s must be a mapping: %s: {request: ..., limit: ...}") \
    X(config_total_mapping, INVALID_VALUE, \
      "%s must be a mapping: %s: {limit: ...}") \
    X(config_request_over_limit, INVALID_VALUE, \
      "%s: the request %s exceeds the limit %s: lower the one or raise the other") \
    X(config_fraction, INVALID_VALUE, \
      "fraction must be %s") \
    X(config_fraction_not, INVALID_VALUE, \
      "fraction must be %s, not \"%.64s\"") \
    X(config_replicas_sum, INVALID_VALUE, \
      "%s: %llu replicas that request %s %% each need %s %%, and there are 100 %%: lower " \
      "replicas or the request") \
    X(config_gpu_name, INVALID_VALUE, \
      "gpu \"%.64s\" must be the number of a GPU, from 0, or its UUID (GPU-...)") \
    X(config_gpu_missing, INVALID_VALUE, \
      "an entry of gpus needs the key gpu, which says which GPU") \
    X(config_gpu_unknown, INVALID_VALUE, \
      "there is no GPU \"%s\": this server has %u, numbered from 0") \
    X(config_gpu_several, INVALID_VALUE, \
      "GPU \"%s\" is the beginning of several UUIDs: write more of the one that is meant") \
    X(config_gpu_equal, INVALID_VALUE, \
      "GPU \"%s\" has an entry already, in line %u: put both into one") \
    X(config_gpu_twice, INVALID_VALUE, \
      "GPU %u has an entry already, in line %u: put both into one") \
    X(config_profiles_mapping, INVALID_VALUE, \
      "profiles must be a mapping (name: {...})") \
    X(config_profiles_max, INVALID_VALUE, \
      "profiles has more than %d entries") \
    X(config_profile_name, INVALID_VALUE, \
      "a profile's name must be 1 to %d letters, digits, '_', '.' or '-'") \
    X(config_profile_unknown, INVALID_VALUE, \
      "there is no profile \"%.64s\": define it under profiles, or correct the name") \
    X(config_except_name, INVALID_VALUE, \
      "except can't name clients by name, because a client chooses its own: use uid, gid or " \
      "cgroup") \
    X(config_except_empty, INVALID_VALUE, \
      "except is empty: it must name uid, gid or cgroup") \
    X(config_sharing_no_resource, INVALID_VALUE, \
      "renameByDefault: true is not supported: gpushared advertises no resource to Kubernetes whose name it could change") \
    X(config_sharing_one_share, INVALID_VALUE, \
      "failRequestsGreaterThanOne: true is not supported: a pod's request is the kubelet's business, and each connection of a client gets one " \
      "share") \
    X(config_sharing_false, INVALID_VALUE, \
      "%s must be false") \
    X(config_sharing_name, INVALID_VALUE, \
      "name must be %s: other resources (MIG instances) can't be shared by this name") \
    X(config_sharing_rename, INVALID_VALUE, \
      "rename is not supported: gpushared advertises no resource to Kubernetes whose name it " \
      "could change") \
    X(config_sharing_devices, INVALID_VALUE, \
      "devices must be all: to share some GPUs in another way than others, write an entry " \
      "with replicas, or mode, for each in gpus") \
    X(config_sharing_twice, INVALID_VALUE, \
      "resources names %s twice: write one entry, which is for all GPUs") \
    X(config_sharing_replicas, INVALID_VALUE, \
      "an entry of resources needs the key replicas") \
    X(config_sharing_list, INVALID_VALUE, \
      "resources must be a list: - {name: %s, replicas: 4}") \
    X(config_sharing_both, INVALID_VALUE, \
      "sharing has both %s and %s: keep one, or give each of gpus its own way of sharing") \
    X(config_sharing_resources, INVALID_VALUE, \
      "%s needs the key resources") \
    X(schedule_value, INVALID_VALUE, \
      "%s: \"%.*s\" is not %s") \
    X(config_vanished, INVALID_VALUE, \
      "%s: the file is gone, and the configuration from it is in force: to lift all limits, " \
      "put an empty file there") \
    X(config_missing, INVALID_VALUE, \
      "%s: there is no such file: correct the path that --config or its default names") \
    X(config_checked, SUCCESS, \
      "%s: no mistake found; whether its GPUs are there was not checked") \
    X(config_users_time, SUCCESS, \
      "%s: the users that it names (%u) request %s %% of the time together, more than 100 %%: where " \
      "all of them come to one GPU in mode strict or fair, clients of the last ones are refused; " \
      "lower a request below users") \
    X(config_users_threads, SUCCESS, \
      "%s: the users that it names (%u) request %s %% of the threads together, more than 100 %%: " \
      "where all of them come to one GPU, clients of the last ones are refused; lower a request " \
      "below users") \
    X(config_absent, SUCCESS, \
      "%s: there is no such file, and the server starts without one") \
    X(reload_under_way, INVALID_VALUE, \
      "another reload is under way: try again when it is over") \
    X(reload_client, SUCCESS, \
      "client %u: %s") \
    X(reload_gpu, SUCCESS, \
      "GPU %u: %s") \
    X(reload_refused, SUCCESS, \
      "the configuration stays as it was: %s") \
    X(reload_late, DEVICE_NOT_READY, \
      "a worker has not answered for %d s: the configuration may still be put in force; " \
      "\"get\" shows what holds") \
    X(log_reload_not_undone, SUCCESS, \
      "the earlier configuration can't be restored completely: %s") \
    X(log_reload_signal, SUCCESS, \
      "SIGHUP: the configuration stays as it was: %s") \
    X(log_reload_signal_done, SUCCESS, \
      "SIGHUP: the configuration has been read again; changed: clients %u, settings of GPUs %u") \
    X(log_reload_admin, SUCCESS, \
      "admin: reload asked for by %s is refused, and the configuration stays as it was: %s") \
    X(log_reset_admin_done, SUCCESS, \
      "admin: reload --reset asked for by %s: done; all is as the configuration says; changed: " \
      "clients %u, settings of GPUs %u") \
    X(log_reload_admin_done, SUCCESS, \
      "admin: reload asked for by %s: done; changed: clients %u, settings of GPUs %u") \
    X(log_config, SUCCESS, \
      "configuration %s is in force; its entries: profiles %zu, rules %zu, gpus %zu, users %zu, " \
      "groups %zu, cgroups %zu") \
    X(log_config_time, SUCCESS, \
      "%s:%u: shares of time have an effect in modes strict and fair only, and GPU %u is in " \
      "mode %s") \
    X(configuration_copied, SUCCESS, \
      "the configuration file is refused, and the last server's goes on: the next stop or boot leaves no " \
      "server; mend the file, then gpusharectl reload: %s") \
    X(configuration_refused, SUCCESS, \
      "the configuration file is refused, and what was in force before it goes on: a server that starts anew " \
      "reads the file again; mend it, then gpusharectl reload: %s") \
    X(options_refused, SUCCESS, \
      "an option or a variable of the service is refused, and those of the server before go on: a server that starts " \
      "anew reads them again; mend it, then restart the service: %s") \
    X(configuration_not_copied, SUCCESS, \
      "%s/accepted.yaml can't be written (%s), so a server that takes over needs a file without a mistake: see " \
      "the room and the rights there; that is tried again every few seconds") \
    X(configuration_start_not_copied, SUCCESS, \
      "%s/accepted-start.json can't be written (%s), so a server that takes over needs options and variables " \
      "without a mistake: see the room and the rights there; that is tried again every few seconds") \
    X(accepted_stale, SUCCESS, \
      "%s is of a server before, and can't be removed (%s): remove it, or a mistake may put it in force") \
    X(accepted_in_force, SUCCESS, \
      "%s; the clients of the last server go on with the configuration that it had, %s: mend the " \
      "file, then 'gpusharectl reload'") \
    X(accepted_refused, SUCCESS, \
      "the last server's configuration can't take the place of a file that is refused: %s") \
    X(accepted_not_kept, SUCCESS, \
      "%s can't be written (%s): a server that takes over from this one needs a configuration " \
      "without a mistake") \
    X(accepted_kept, SUCCESS, \
      "%s could be written this time, so a server that takes over from this one has it") \
    X(accepted_start_in_force, SUCCESS, \
      "%s; the clients of the last server go on, with the options and variables that it had (%s): " \
      "mend them, then restart the server") \
    X(accepted_start_refused, SUCCESS, \
      "what the last server was started with can't take the place of what is refused: %s") \
    X(accepted_start_form, INVALID_VALUE, "%s is not as a server writes it: it may be deleted") \
    X(accepted_foreign, INVALID_VALUE, \
      "%s belongs to uid %u and has mode %03o: only its own user and root may write to it") \
    X(log_profile_gone, SUCCESS, \
      "client %u keeps its limits: the new configuration has no profile \"%s\"") \
    X(log_total_forgotten, SUCCESS, \
      "%s: the total of %s that an administrator set no longer holds, because the " \
      "configuration now has another one")
/* clang-format on */

#endif
