/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_doctor: what `gpushare doctor` finds, each with its remedy where there is something to
 * do. Part of the table in common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_DOCTOR_H
#define GPUSHARE_COMMON_MESSAGES_DOCTOR_H

/* clang-format off */
#define MESSAGES_DOCTOR(X) \
    X(tool_doctor_options, INVALID_VALUE, \
      "options of doctor stand behind it, as in: gpushare doctor --json") \
    X(doctor_root, INVALID_VALUE, \
      "--root: %s: %s: name a folder that holds the proc, dev and sys of a machine") \
    X(doctor_bundled, SUCCESS, \
      "%s has what a report of a fault needs; names of users and of the host, and arguments of programs, are " \
      "replaced in it, and values of unknown variables and comments of the configuration left out: look through " \
      "it before it is sent") \
    X(bundle_folder, SERVER_RESOURCES, \
      "%s can't be used for the files: %s: name another folder in TMPDIR") \
    X(bundle_memory, OUT_OF_MEMORY, \
      "memory is short: nothing was written") \
    X(bundle_file, SERVER_RESOURCES, \
      "%s can't be made: %s: name a file that does not exist, in a folder in which this user may write") \
    X(bundle_tar, SERVER_RESOURCES, \
      "tar could not write %s: see that tar and gzip are installed, and that there is room") \
    X(doctor_driver, SUCCESS, \
      "NVIDIA's driver %s is loaded") \
    X(doctor_driver_none, SUCCESS, \
      "no NVIDIA driver, and no NVIDIA GPU: the software GPU is what works here; gpushared --driver softgpu") \
    X(doctor_driver_not_loaded, SUCCESS, \
      "the machine has an NVIDIA GPU (PCI %s), and no driver for it is loaded; install NVIDIA's driver for " \
      "this kernel, or load it: modprobe nvidia") \
    X(doctor_library, SUCCESS, \
      "%s supports CUDA %d.%d; GPUs that it finds: %d") \
    X(doctor_library_none, SUCCESS, \
      "none is installed, and the kernel has driver %s; install the libraries of that version (Debian: libcuda1)") \
    X(doctor_library_contained, SUCCESS, \
      "none is in this container; clients of gpushared need none") \
    X(doctor_library_dropin, SUCCESS, \
      "%s is gpushare's own: programs that load it are clients of gpushared") \
    X(doctor_library_refused, SUCCESS, \
      "%s: %s") \
    X(doctor_library_silent, SUCCESS, \
      "%s did not answer within %d s; look for NVRM in the kernel's log (dmesg), and restart the machine") \
    X(doctor_library_crashed, SUCCESS, \
      "%s crashed when it was asked for its GPUs; install the driver's libraries anew") \
    X(doctor_library_differs, SUCCESS, \
      "%s is of another version than the kernel's driver, %s; restart the machine, or load the nvidia modules anew") \
    X(doctor_mode, SUCCESS, \
      "GPU %s is in the compute mode Default") \
    X(doctor_mode_exclusive, SUCCESS, \
      "GPU %s is in an exclusive compute mode: one process can use it, which must be the server's worker, so " \
      "nothing is compiled in a process of its own and there is no standby; nvidia-smi -i %s -c DEFAULT") \
    X(doctor_host_access, SUCCESS, \
      "GPU %s: %s") \
    X(doctor_host_access_none, SUCCESS, \
      "kernels on GPU %s reach no memory of the worker's but what is mapped for them (HMM is off)") \
    X(doctor_nodes, SUCCESS, \
      "all users may open /dev/nvidiactl and the node of each GPU; GPUs: %u") \
    X(doctor_nodes_contained, SUCCESS, \
      "none are in this container; clients of gpushared need none") \
    X(doctor_node_missing, SUCCESS, \
      "%s is missing; systemctl start gpushare-devices.service, or as root: nvidia-modprobe -c %u") \
    X(doctor_node_unreadable, SUCCESS, \
      "%s: %s; see the rights of its folders") \
    X(doctor_node_kind, SUCCESS, \
      "%s is no device; remove it, then systemctl start gpushare-devices.service") \
    X(doctor_node_closed, SUCCESS, \
      "%s has the mode %04o, so only its owner and the group %s may open it; the service needs that group: " \
      "SupplementaryGroups=%s in a drop-in (systemctl edit gpushared)") \
    X(doctor_uvm, SUCCESS, \
      "the module nvidia_uvm is loaded, and all users may open /dev/nvidia-uvm") \
    X(doctor_uvm_missing, SUCCESS, \
      "/dev/nvidia-uvm is missing, without which CUDA does not start; systemctl start gpushare-devices.service, " \
      "or as root: nvidia-modprobe -u -c 0") \
    X(doctor_uvm_not_loaded, SUCCESS, \
      "/dev/nvidia-uvm is there, and the module nvidia_uvm is not loaded; modprobe nvidia_uvm") \
    X(doctor_uvm_stale, SUCCESS, \
      "/dev/nvidia-uvm has the major number %u, and the module has %u now; remove the node, then as root: " \
      "nvidia-modprobe -u -c 0") \
    X(doctor_client, SUCCESS, \
      "%s takes this user as a client (owner %s, group %s, mode %04o)") \
    X(doctor_client_closed, SUCCESS, \
      "%s takes this user as a client, but not all users (mode %04o): only its owner %s and the group %s may " \
      "connect; if others are to be clients, SocketMode=0666 in gpushared.socket, or chmod 0666") \
    X(doctor_client_silent, SUCCESS, \
      "the server behind %s did not greet a client within %d s; look at its log (journalctl -u gpushared), and " \
      "see that its process is not stopped") \
    X(doctor_client_contained, SUCCESS, \
      "%s is not in this container; mount the folder in which the socket lies, as in -v /run/gpushare:/run/gpushare") \
    X(doctor_admin, SUCCESS, \
      "%s answers this user (owner %s, group %s, mode %04o)") \
    X(doctor_admin_open, SUCCESS, \
      "%s answers every user (mode %04o), who can thereby see each other's clients; SocketMode=0660 in " \
      "gpushared-admin.socket, or chmod 0660") \
    X(doctor_admin_session, SUCCESS, \
      "%s is closed to this session, which began before this user joined the socket's group; log in again") \
    X(doctor_admin_contained, SUCCESS, \
      "none is in this container; clients need none, and gpusharectl works on the host") \
    X(doctor_version, SUCCESS, \
      "release %s, protocol %s, as the server's") \
    X(doctor_version_differs, SUCCESS, \
      "release %s, protocol %s, and the server's are release %s, protocol %s; install one release of both") \
    X(doctor_server, SUCCESS, \
      "gpushared %s (process %lld) runs for %s on %s; clients: %lld of at most %lld") \
    X(doctor_server_unseen, SUCCESS, \
      "it serves clients; it shows its state to users who may open the admin socket") \
    X(doctor_state, SUCCESS, \
      "%s has room: %s") \
    X(doctor_state_full, SUCCESS, \
      "%s has room for %s and %llu files only, and what is set with --save, the accounting and a copy of the " \
      "configuration lie there; make room") \
    X(doctor_gpu, SUCCESS, \
      "%s is ready; its clients: %lld") \
    X(doctor_gpu_no_trouble, SUCCESS, \
      "its worker has not started yet") \
    X(doctor_gpu_state, SUCCESS, \
      "is %s: %s; journalctl -u gpushared says more") \
    X(doctor_gpu_drained, SUCCESS, \
      "is drained, and takes no new clients; gpusharectl resume %lld") \
    X(doctor_gpu_one_at_a_time, SUCCESS, \
      "serves one client at a time until it is known whose kernel faulted; that ends by itself") \
    X(doctor_systemd_none, SUCCESS, \
      "does not run here, so the server is started by hand, or by what runs the container") \
    X(doctor_systemd_silent, SUCCESS, \
      "systemctl does not answer; see that it is installed, and systemctl status as root") \
    X(doctor_unit, SUCCESS, \
      "gpushared.service is active") \
    X(doctor_unit_missing, SUCCESS, \
      "gpushared.service is not installed; make install UNITDIR=/etc/systemd/system, or install the package, " \
      "then systemctl daemon-reload") \
    X(doctor_unit_load, SUCCESS, \
      "gpushared.service can't be read (%s); systemctl status gpushared says why") \
    X(doctor_unit_failed, SUCCESS, \
      "gpushared.service has failed (%s); journalctl -u gpushared says why; then systemctl reset-failed " \
      "gpushared, and systemctl start gpushared") \
    X(doctor_unit_inactive, SUCCESS, \
      "gpushared.service is %s; systemctl enable --now gpushared.socket gpushared-admin.socket gpushared.service") \
    X(doctor_unit_beside, SUCCESS, \
      "gpushared.service is %s, so the server that answers was started otherwise; end that one before the " \
      "service is started") \
    X(doctor_unit_said, SUCCESS, \
      "the journal has of the server: %s") \
    X(doctor_unit_sockets, SUCCESS, \
      "gpushared.service is active, and after a restart of the machine its sockets start it") \
    X(doctor_unit_disabled, SUCCESS, \
      "gpushared.service is active, and won't be after a restart of the machine; systemctl enable gpushared") \
    X(doctor_unit_restarts, SUCCESS, \
      "gpushared.service was started again because the server had ended, so often: %s; journalctl -u gpushared says why") \
    X(doctor_mps_none, SUCCESS, \
      "no MPS control daemon runs") \
    X(doctor_mps_folder, SUCCESS, \
      "no MPS control daemon is seen, but its folder %s is there: it is left over, or the daemon runs outside " \
      "this container; gpushare does not use it") \
    X(doctor_pages, SUCCESS, \
      "transparent ones: %s, of shared memory: %s; gpushare works with any setting, and needs none reserved") \
    X(doctor_pages_reserved, SUCCESS, \
      "%s of the machine's %s are reserved for huge pages, which gpushare can't use for pinned host memory; " \
      "lower vm.nr_hugepages") \
    X(doctor_memlock_endless, SUCCESS, \
      "no limit, as pinned host memory needs") \
    X(doctor_memlock_server, SUCCESS, \
      "the server (process %d) may lock %s, and pinned host memory counts; LimitMEMLOCK=infinity in its unit, " \
      "or ulimit -l unlimited before it is started by hand") \
    X(doctor_memlock_here, SUCCESS, \
      "a server that is started from here may lock %s, and pinned host memory counts; the service has no limit, " \
      "and by hand ulimit -l unlimited takes it away") \
    X(doctor_nofile_endless, SUCCESS, \
      "no limit") \
    X(doctor_nofile, SUCCESS, \
      "the server may have %llu file descriptors") \
    X(doctor_nofile_few, SUCCESS, \
      "the server may have %llu file descriptors, enough for a few clients; LimitNOFILE=65536 in its unit, or " \
      "ulimit -Hn 65536 as root before it is started by hand") \
    X(doctor_container_none, SUCCESS, \
      "this is none") \
    X(doctor_container, SUCCESS, \
      "this is one (%s)") \
    X(doctor_container_shm, SUCCESS, \
      "this is one (%s), with %s in /dev/shm, of which gpushare uses nothing") \
    X(doctor_container_small, SUCCESS, \
      "this is one (%s), with %s in /dev/shm: gpushare uses nothing of it, but data loaders of several processes " \
      "do; give it more, as docker run --shm-size=1g does") \
    X(doctor_variable_hidden, SUCCESS, \
      "%s=%s has no effect beside %s=%s: unset one of them") \
    X(doctor_variable_twice, SUCCESS, \
      "%s and %s are two names of one limit, of which the tighter value holds; unset one of them") \
    X(doctor_environment, SUCCESS, \
      "no variable is misspelt, malformed or without effect")
/* clang-format on */

#endif
