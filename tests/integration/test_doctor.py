#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpushare doctor: each thing that can be wrong with a machine, a server or an environment is found, named and has a remedy;
the machine is a made tree, and its driver is the software GPU."""
import json
import os
import shutil
import socket
import stat
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from private_server import BUILD, GPUSHARE, Server, run  # noqa: E402

SOFTGPU = os.path.join(BUILD, "lib/softgpu/libcuda.so.1")
DROPIN = os.path.join(BUILD, "lib/gpushare/libcuda.so.1")
LIBRARY = "usr/lib/x86_64-linux-gnu/libcuda.so.1"
KERNEL = "550.54.14"
VERSION = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {KERNEL}  Thu Feb 22 01:44:30 UTC 2024\nGCC version:  gcc version 12.2.0\n"
LIMITS = ("Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max open files            1024                 {files}              files     \n"
          "Max locked memory         8388608              {lock}               bytes     \n")
MEMINFO = "MemTotal:       65536 kB\nHugePages_Total:       {pages}\nHugepagesize:       2048 kB\n"
SYSTEMCTL = ("#!/bin/sh\ntest \"$1\" = show || exit 2\nfor unit; do :; done\n"
             "case $unit in gpushared.service) printf '%s\\n' {lines};; gpushared.socket) echo UnitFileState={sockets};; *) exit 2;; esac\n")


class Tree:
    """A machine as the doctor sees it: one NVIDIA GPU, its driver, and nothing wrong with it."""

    def __init__(self, folder):
        self.folder = folder
        self.write("proc/driver/nvidia/version", VERSION)
        self.write("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t GPU\nDevice Minor: \t 0\n")
        self.write("proc/devices", "Character devices:\n  1 mem\n  1 nvidia-uvm\n\nBlock devices:\n  8 sd\n")
        self.write("proc/meminfo", MEMINFO.format(pages=0))
        self.write("proc/self/limits", LIMITS.format(files=65536, lock="unlimited"))
        self.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
        self.write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise [never] deny force\n")
        for node in ("nvidiactl", "nvidia0", "nvidia-uvm"):
            self.link("dev/" + node, "/dev/null")  # a character device with major number 1 that all users may open
        os.makedirs(self.path("dev/shm"))
        self.link(LIBRARY, SOFTGPU)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def link(self, name, target):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.symlink(target, self.path(name))

    def remove(self, name):
        if os.path.isdir(self.path(name)):
            shutil.rmtree(self.path(name))
        else:
            os.unlink(self.path(name))


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop_well)

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder)
        self.tree = Tree(folder)

    def examined(self, *options, status=None, socket_path=None, **env):
        """The checks, after the document was compared with its schema and its parts with each other."""
        ended = run(GPUSHARE, "doctor", "--root", self.tree.folder, "--socket", socket_path or self.server.client, "--json", *options, **env)
        self.assertEqual(ended.stderr, "")
        answer = json.loads(ended.stdout)
        json_check.check("gpushare-doctor", answer)
        fails = [check for check in answer["checks"] if check["status"] == "fail"]
        self.assertEqual((answer["ok"], answer["failures"]), (not fails, len(fails)))
        self.assertEqual(ended.returncode, 1 if fails else 0)
        if status is not None:
            self.assertEqual(ended.returncode, status, ended.stdout)
        return answer["checks"]

    def finds(self, status, subject, message, *words, checks=None, **env):
        """One check of this subject has this outcome and names these words."""
        checks = self.examined(**env) if checks is None else checks
        of_subject = [check for check in checks if check["subject"] == subject]
        found = [check for check in of_subject if (check["status"], check["message"]) == (status, message)]
        self.assertEqual(len(found), 1, of_subject)
        for word in words:
            self.assertIn(word, found[0]["text"])

    # ---- a machine that is well, and one without a GPU
    def test_a_machine_that_is_well_has_no_failure(self):
        checks = self.examined(status=0)
        self.assertEqual([check for check in checks if check["status"] != "ok"], [])
        self.finds("ok", "kernel driver", "doctor_driver", KERNEL, checks=checks)
        self.finds("ok", "libcuda", "doctor_library", "CUDA 13.0", "GPUs that it finds: 1", checks=checks)
        self.finds("ok", "device nodes", "doctor_nodes", "GPUs: 1", checks=checks)
        self.finds("ok", "unified memory", "doctor_uvm", checks=checks)
        self.finds("ok", "compute mode", "doctor_mode", checks=checks)
        self.finds("ok", "host memory", "doctor_host_access_none", checks=checks)
        self.finds("ok", "library", "doctor_version", checks=checks)
        self.finds("ok", "server", "doctor_server", f"process {self.server.process.pid}", checks=checks)
        self.finds("ok", "GPU 0", "doctor_gpu", "is ready", checks=checks)
        self.finds("ok", "systemd", "doctor_systemd_none", checks=checks)
        self.finds("ok", "MPS", "doctor_mps_none", checks=checks)
        self.finds("ok", "huge pages", "doctor_pages", "madvise", "never", checks=checks)
        self.finds("ok", "locked memory", "doctor_memlock_endless", checks=checks)
        self.finds("ok", "open files", "doctor_nofile", "65536", checks=checks)
        self.finds("ok", "container", "doctor_container_none", checks=checks)
        self.finds("ok", "environment", "doctor_environment", checks=checks)

    def test_for_people_each_line_has_status_subject_and_sentence(self):
        self.tree.remove("dev/nvidia-uvm")
        self.tree.write("proc/self/limits", LIMITS.format(files=256, lock="unlimited"))
        ended = run(GPUSHARE, "doctor", "--root", self.tree.folder, "--socket", self.server.client)
        self.assertEqual((ended.returncode, ended.stderr), (1, ""))
        for line in ended.stdout.splitlines():
            self.assertRegex(line, r"^(ok  |warn|FAIL) [A-Za-z][A-Za-z0-9 ]*: \S")
        self.assertIn("FAIL unified memory: /dev/nvidia-uvm is missing", ended.stdout)
        self.assertIn("warn open files: the server may have 256", ended.stdout)

    def test_a_machine_without_a_gpu_is_told_what_works_there(self):
        for name in ("proc/driver", "dev/nvidiactl", "dev/nvidia0", "dev/nvidia-uvm", LIBRARY):
            self.tree.remove(name)
        checks = self.examined(status=0)
        self.finds("warn", "kernel driver", "doctor_driver_none", "no NVIDIA driver", "the software GPU is what works here", checks=checks)
        self.assertFalse({"libcuda", "device nodes", "unified memory", "compute mode"} & {check["subject"] for check in checks})

    # ---- the driver
    def test_a_gpu_without_its_driver_fails(self):
        self.tree.remove("proc/driver")
        self.tree.write("sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n")
        self.tree.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
        self.tree.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
        self.finds("fail", "kernel driver", "doctor_driver_not_loaded", "0000:01:00.0", "modprobe nvidia")

    def test_a_missing_library_fails_but_in_a_container(self):
        self.tree.remove(LIBRARY)
        self.finds("fail", "libcuda", "doctor_library_none", KERNEL, "install")
        self.tree.write("run/systemd/container", "podman\n")
        self.finds("ok", "libcuda", "doctor_library_contained")

    def test_a_library_of_another_version_than_the_kernels_driver_fails(self):
        shutil.copy(SOFTGPU, self.tree.path("usr/lib/libcuda.so.535.104.05"))
        self.tree.remove(LIBRARY)
        self.tree.link(LIBRARY, self.tree.path("usr/lib/libcuda.so.535.104.05"))
        self.finds("fail", "libcuda", "doctor_library_differs", "535.104.05", KERNEL, "restart the machine")

    def test_a_library_that_does_not_start_says_why_and_what_helps(self):
        self.finds("fail", "libcuda", "doctor_library_refused", "nvidia-modprobe -u -c 0", SOFTGPU_INIT_ERROR="999")
        self.finds("fail", "libcuda", "doctor_library_refused", "nvidia-smi", SOFTGPU_INIT_ERROR="100")

    def test_gpushares_own_library_is_no_driver(self):
        self.tree.remove(LIBRARY)
        self.tree.link(LIBRARY, DROPIN)
        self.finds("ok", "libcuda", "doctor_library_dropin", "clients of gpushared")

    def test_what_is_no_library_is_refused(self):
        self.tree.remove(LIBRARY)
        self.tree.write(LIBRARY, "no library\n")
        self.finds("fail", "libcuda", "doctor_library_refused", "cannot load the driver library")

    def test_exclusive_and_prohibited_modes_are_named(self):
        self.finds("warn", "compute mode", "doctor_mode_exclusive", "nvidia-smi -i", "-c DEFAULT", SOFTGPU_COMPUTE_MODE="3")
        self.finds("fail", "compute mode", "device_prohibited", "-c DEFAULT", SOFTGPU_COMPUTE_MODE="2")

    def test_kernels_that_reach_all_host_memory_are_warned_of(self):
        self.finds("warn", "host memory", "doctor_host_access", "uvm_disable_hmm=1", SOFTGPU_PAGEABLE_ACCESS="1")

    # ---- device nodes
    def test_a_missing_node_fails(self):
        self.tree.remove("dev/nvidia0")
        self.finds("fail", "device nodes", "doctor_node_missing", "/dev/nvidia0", "gpushare-devices.service", "nvidia-modprobe -c 0")
        self.tree.remove("dev/nvidia-uvm")
        self.finds("fail", "unified memory", "doctor_uvm_missing", "gpushare-devices.service")

    def test_a_container_needs_no_nodes(self):
        for name in ("dev/nvidiactl", "dev/nvidia0", "dev/nvidia-uvm"):
            self.tree.remove(name)
        self.tree.write("run/systemd/container", "podman\n")
        self.finds("ok", "device nodes", "doctor_nodes_contained")

    def test_what_is_no_device_fails(self):
        self.tree.remove("dev/nvidiactl")
        self.tree.write("dev/nvidiactl", "")
        self.finds("fail", "device nodes", "doctor_node_kind", "/dev/nvidiactl")

    def test_a_node_that_is_closed_names_its_group(self):
        self.tree.remove("dev/nvidia0")
        try:
            os.mknod(self.tree.path("dev/nvidia0"), 0o660 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            self.skipTest("this user may make no device nodes")
        os.chmod(self.tree.path("dev/nvidia0"), 0o660)
        self.finds("warn", "device nodes", "doctor_node_closed", "0660", "SupplementaryGroups=")

    def test_a_node_of_an_earlier_driver_fails(self):
        self.tree.write("proc/devices", "Character devices:\n509 nvidia-uvm\n")
        self.finds("fail", "unified memory", "doctor_uvm_stale", "509")
        self.tree.write("proc/devices", "Character devices:\n195 nvidia\n")
        self.finds("fail", "unified memory", "doctor_uvm_not_loaded", "modprobe nvidia_uvm")

    # ---- the machine
    def test_mps_is_found(self):
        self.tree.write("proc/4242/comm", "nvidia-cuda-mps\n")
        self.finds("warn", "MPS", "warning_mps", "4242", "quit")
        self.tree.remove("proc/4242")
        os.makedirs(self.tree.path("tmp/nvidia-mps"))
        self.finds("ok", "MPS", "doctor_mps_folder", "/tmp/nvidia-mps")

    def test_limits_of_the_servers_process_are_read(self):
        pid = self.server.process.pid
        self.tree.write(f"proc/{pid}/comm", "gpushared\n")
        self.tree.write(f"proc/{pid}/limits", LIMITS.format(files=256, lock=65536))
        checks = self.examined()
        self.finds("warn", "locked memory", "doctor_memlock_server", "64 KiB", "LimitMEMLOCK=infinity", checks=checks)
        self.finds("warn", "open files", "doctor_nofile_few", "256", "LimitNOFILE=65536", checks=checks)
        # Another process with that number is not the server.
        self.tree.write(f"proc/{pid}/comm", "sleep\n")
        self.finds("ok", "locked memory", "doctor_memlock_endless")
        self.tree.write("proc/self/limits", LIMITS.format(files="unlimited", lock=65536))
        self.finds("ok", "locked memory", "doctor_memlock_here", "64 KiB", "ulimit -l unlimited")

    def test_memory_that_is_reserved_for_huge_pages_is_named(self):
        self.tree.write("proc/meminfo", MEMINFO.format(pages=20))
        self.finds("warn", "huge pages", "doctor_pages_reserved", "40 MiB", "64 MiB", "vm.nr_hugepages")

    def test_containers_are_recognized(self):
        for name, text, kind in (("run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"), (".dockerenv", "", "docker"),
                                 ("proc/1/cgroup", "12:memory:/kubepods/burstable/pod1\n", "kubernetes")):
            with self.subTest(kind):
                self.tree.write(name, text)
                found = [check["text"] for check in self.examined() if check["subject"] == "container"]
                self.assertEqual(len(found), 1)
                self.assertIn(f"this is one ({kind})", found[0])
                self.tree.remove(name)

    # ---- sockets and the server
    def test_a_missing_socket_fails_and_in_a_container_names_the_mount(self):
        where = self.server.file("nowhere.sock")
        checks = self.examined(socket_path=where)
        self.finds("fail", "client socket", None, where, checks=checks)
        self.finds("ok", "admin socket", "doctor_admin", checks=checks)  # it lies beside
        self.tree.write("run/systemd/container", "podman\n")
        self.finds("fail", "client socket", "doctor_client_contained", "-v /run/gpushare:/run/gpushare", socket_path=where)

    def test_the_usual_socket_lies_below_the_root(self):
        ended = run(GPUSHARE, "doctor", "--root", self.tree.folder, "--json")
        self.assertEqual(ended.returncode, 1)
        text = "\n".join(check["text"] for check in json.loads(ended.stdout)["checks"] if check["subject"].endswith("socket"))
        self.assertIn(self.tree.path("run/gpushare/gpushare.sock"), text)
        self.assertIn(self.tree.path("run/gpushare/admin.sock"), text)

    def test_a_socket_that_nobody_listens_at_fails(self):
        where = self.tree.path("gpushare.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
            left.bind(where)
        checks = self.examined(socket_path=where)
        self.finds("fail", "client socket", None, where, checks=checks)
        self.finds("fail", "admin socket", None, self.tree.path("admin.sock"), checks=checks)

    def test_modes_of_the_sockets_are_judged(self):
        for path, before, mode, subject, message, words in (
                (self.server.client, 0o666, 0o660, "client socket", "doctor_client_closed", "SocketMode=0666"),
                (self.server.admin, 0o660, 0o666, "admin socket", "doctor_admin_open", "SocketMode=0660")):
            was = stat.S_IMODE(os.stat(path).st_mode)
            os.chmod(path, mode)
            try:
                self.finds("warn", subject, message, words)
            finally:
                os.chmod(path, was)
            self.assertEqual(was, before)

    def test_a_drained_gpu_is_named(self):
        if os.getuid() and not self.server.ctl("drain", "0").returncode == 0:
            self.skipTest("this user may change nothing")
        self.server.ctl("drain", "0")
        try:
            self.finds("warn", "GPU 0", "doctor_gpu_drained", "gpusharectl resume 0")
        finally:
            self.server.ctl("resume", "0")

    # ---- systemd
    def systemd(self, *lines, sockets="disabled"):
        self.tree.write("bin/systemctl", SYSTEMCTL.format(lines=" ".join(lines), sockets=sockets), 0o755)
        os.makedirs(self.tree.path("run/systemd/system"), exist_ok=True)
        return {"PATH": f"{self.tree.path('bin')}:{os.environ['PATH']}"}

    def test_the_units_state_is_told(self):
        nowhere = self.server.file("nowhere.sock")
        for lines, socket_path, expected in (
                (("LoadState=loaded", "ActiveState=active", "UnitFileState=enabled", "NRestarts=0"), None, ("ok", "doctor_unit")),
                (("LoadState=loaded", "ActiveState=active", "UnitFileState=disabled"), None, ("warn", "doctor_unit_disabled")),
                (("LoadState=loaded", "ActiveState=active", "UnitFileState=enabled", "NRestarts=3"), None, ("warn", "doctor_unit_restarts")),
                (("LoadState=loaded", "ActiveState=failed", "Result=exit-code"), nowhere, ("fail", "doctor_unit_failed")),
                (("LoadState=loaded", "ActiveState=inactive"), nowhere, ("warn", "doctor_unit_inactive")),
                (("LoadState=loaded", "ActiveState=inactive"), None, ("warn", "doctor_unit_beside")),
                (("LoadState=not-found", "ActiveState=inactive"), nowhere, ("warn", "doctor_unit_missing")),
                (("LoadState=not-found", "ActiveState=inactive"), None, ("ok", "doctor_unit_missing")),
                (("LoadState=bad-setting", "ActiveState=inactive"), None, ("fail", "doctor_unit_load"))):
            with self.subTest(expected):
                env = self.systemd(*lines)
                self.finds(expected[0], "systemd", expected[1], socket_path=socket_path, **env)

    def test_a_service_that_has_failed_says_why(self):
        env = self.systemd("LoadState=loaded", "ActiveState=failed", "Result=start-limit-hit")
        # As journalctl is called, and not otherwise: the server's own lines, without those of systemd.
        self.tree.write("bin/journalctl", "#!/bin/sh\ncase \" $* \" in *' --unit=gpushared.service '*) ;; *) exit 2;; esac\n"
                        "case \" $* \" in *' --identifier=gpushared '*) ;; *) echo systemd: stopped;; esac\n"
                        "for time in 1 2 3; do echo '/etc/gpushare/gpushared.yaml:2: mode: \"fare\" is wrong'; done\n", 0o755)
        checks = self.examined(socket_path=self.server.file("nowhere.sock"), **env)
        self.finds("fail", "systemd", "doctor_unit_failed", "start-limit-hit", checks=checks)
        self.finds("fail", "systemd", "doctor_unit_said", 'gpushared.yaml:2: mode: "fare" is wrong', checks=checks)
        # Where this user may not read it, the journal is named.
        self.tree.write("bin/journalctl", "#!/bin/sh\nexit 1\n", 0o755)
        checks = self.examined(socket_path=self.server.file("nowhere.sock"), **env)
        self.finds("fail", "systemd", "doctor_unit_failed", "journalctl -u gpushared", checks=checks)
        self.assertNotIn("doctor_unit_said", [check["message"] for check in checks])

    def test_a_service_whose_socket_is_enabled_is_well(self):
        env = self.systemd("LoadState=loaded", "ActiveState=active", "UnitFileState=disabled", sockets="enabled")
        checks = self.examined(**env)
        self.finds("ok", "systemd", "doctor_unit_sockets", checks=checks)
        self.assertNotIn("warn", [check["status"] for check in checks if check["subject"] == "systemd"])

    def test_a_systemctl_that_fails_is_told(self):
        env = self.systemd("LoadState=loaded")
        self.tree.write("bin/systemctl", "#!/bin/sh\nexit 1\n", 0o755)
        self.finds("warn", "systemd", "doctor_systemd_silent", **env)

    # ---- the environment
    def test_variables_are_judged(self):
        self.finds("warn", "environment", None, "GPUSHARE_MEMORY_LIMITS", GPUSHARE_MEMORY_LIMITS="1G")
        self.finds("fail", "environment", None, "GPUSHARE_MEMORY_LIMIT", "much", GPUSHARE_MEMORY_LIMIT="much")
        self.finds("warn", "environment", "doctor_variable_hidden", "CUDA_VISIBLE_DEVICES=1",
                   CUDA_VISIBLE_DEVICES="1", GPUSHARE_VISIBLE_DEVICES="0")
        self.finds("warn", "environment", "doctor_variable_twice", "GPUSHARE_THREADS_LIMIT",
                   GPUSHARE_THREADS_LIMIT="50%", GPUSHARE_ACTIVE_THREAD_PERCENTAGE="40")


    # ---- the bundle
    def bundled(self, **env):
        """{name: text} of the files in the archive."""
        path = self.tree.path("report.tar.gz")
        checks = self.examined("--bundle", path, TMPDIR=self.tree.path("tmp"), **env)
        self.finds("ok", "bundle", "doctor_bundled", path, checks=checks)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(os.listdir(self.tree.path("tmp")), [], "nothing is left behind")
        with tarfile.open(path) as archive:
            return {os.path.basename(member.name): archive.extractfile(member).read().decode() for member in archive if member.isfile()}

    def test_a_bundle_has_what_a_report_needs_and_no_names(self):
        os.makedirs(self.tree.path("tmp"))
        self.tree.write("etc/gpushare/gpushared.yaml", "# alice may have half\nrules: [{match: {uid: [bob, 7]}, priority: 1}]\n"
                        "users:\n  - uid:\n    - carol\n    - dave\n    memory: {limit: 1G}\n")
        self.tree.write("etc/default/gpushared", "GPUSHARED_OPTIONS=--config /home/alice/x.yaml\nAPI_KEY=s3cret\n# CUDA_VISIBLE=s3cret\n")
        self.tree.write("bin/journalctl", "#!/bin/sh\necho \"$HOST gpushared: client 1 'train --key s3cret' of alice, not of malice\"\n", 0o755)
        env = {"SUDO_USER": "alice", "PATH": f"{self.tree.path('bin')}:{os.environ['PATH']}", "HOST": socket.gethostname(),
               "GPUSHARE_MEMORY_LIMIT": "1G", "API_KEY": "s3cret", "CUDA_CACHE_PATH": "/home/alice/cache"}
        with self.server.work("train --key s3cret", 100, 0.01):
            files = self.bundled(**env)
        self.assertEqual(set(files), {"report.txt", "report.json", "versions.txt", "environment.txt", "version.json", "status.json",
                                      "clients.json", "gpushared.yaml", "default-gpushared.txt", "journal.txt"})
        for name, text in files.items():
            self.assertNotRegex(text, r"s3cret|\b(alice|bob|carol|dave)\b", name)
        json_check.check("gpushare-doctor", json.loads(files["report.json"]))
        json_check.check("admin-status", json.loads(files["status.json"]))
        json_check.check("admin-clients", json.loads(files["clients.json"]))
        self.assertEqual([client["name"] for client in json.loads(files["clients.json"])["clients"]], ["train [arguments]"])
        self.assertIn("GPUSHARE_MEMORY_LIMIT=1G\n", files["environment.txt"])
        self.assertRegex(files["environment.txt"], r"CUDA_CACHE_PATH=/home/user-\d+/cache\n")
        self.assertNotIn("API_KEY", files["environment.txt"] + files["default-gpushared.txt"])
        self.assertRegex(files["journal.txt"], r"^host gpushared: client 1 'train \[arguments\]' of user-\d+, not of malice\n$")
        self.assertRegex(files["gpushared.yaml"], r"^\nrules: \[\{match: \{uid: \[user-\d+, 7\]\}, priority: 1\}\]\n"
                         r"users:\n  - uid:\n    - user-\d+\n    - user-\d+\n    memory: \{limit: 1G\}\n$")
        self.assertIn(f"Module  {KERNEL} ", files["versions.txt"])

    def test_a_bundle_has_no_secrets_of_other_software(self):
        os.makedirs(self.tree.path("tmp"))
        self.tree.write("etc/gpushare/gpushared.yaml", "# password: s3cret\nclients: {memory: {limit: 1G}}  # s3cret\n"
                        "rules:\n  - match: {name: \"a # \\\" # b\"}\t# s3cret\n    priority: 1 # it's \"s3cret\n"
                        "  - match: {name: it's}  # s3cret\n  - match: {name: 'c #''# d'} #s3cret\n  - match: {name: e#f}\n"
                        "  - match: {name: rock 'n roll} # s3cret\n  - match: {name: x, 'y: 1} # s3cret\n  - \"a\" 'b # s3cret\n#s3cret")
        self.tree.write("etc/default/gpushared", "GPUSHARED_OPTIONS=--log-level debug\nGPUSHARE_TOKEN=s3cret\nCUDA_API_KEY=\"s3cret\"\n"
                        "CUDA_VISIBLE_DEVICES=0\n")
        files = self.bundled(GPUSHARE_TOKEN="s3cret", CUDA_API_KEY="s3cret", CUDA_VISIBLE_DEVICES="0", GPUSHARE_MEMORY_LIMIT="1G")
        for name, text in files.items():
            self.assertNotIn("s3cret", text, name)
        self.assertEqual(files["gpushared.yaml"], "\nclients: {memory: {limit: 1G}}  \nrules:\n  - match: {name: \"a # \\\" # b\"}\t\n"
                         "    priority: 1 \n  - match: {name: it's}  \n  - match: {name: 'c #''# d'} \n  - match: {name: e#f}\n"
                         "  - match: {name: rock 'n roll} \n  - match: {name: x, 'y: 1} \n  - \"a\" 'b \n")
        lines = files["environment.txt"].splitlines()
        for line in ("GPUSHARE_TOKEN [value left out]", "CUDA_API_KEY [value left out]", "CUDA_VISIBLE_DEVICES=0", "GPUSHARE_MEMORY_LIMIT=1G"):
            self.assertIn(line, lines)
        self.assertEqual(files["default-gpushared.txt"], "GPUSHARED_OPTIONS=--log-level debug\nGPUSHARE_TOKEN [value left out]\n"
                         "CUDA_API_KEY [value left out]\nCUDA_VISIBLE_DEVICES=0\n")

    def test_a_bundle_has_no_arguments_of_clients_that_have_left(self):
        os.makedirs(self.tree.path("tmp"))
        lines = ("client 1 'sh -c 'a s3cret'' (pid 7, uid 1000) is gone: it closed its connection",
                 "device 0: client 2 'x --s3cret' (pid 8, uid 1000) made it fail: a trap; its unfinished kernels: 1",
                 "device 0: these clients had work in flight, and one of them made it fail: 3 'a b s3cret', 4 'plain', 5 'c s3cret'; of those "
                 "that had left: 0",
                 "client 6 'y s3cret' or client 7 'z' ran a kernel for more than 1 s, the kernel_time_limit of the first",
                 "module loads wait until kernels of client 8 ('w s3cret'), which has left, have ended",
                 "an administrator (uid 0) replaced the worker of device 0, to end the work of client 9 'v s3cret', which had left",
                 "configuration /home/zoe/c.yaml is in force", "client 10 'cut by the end of s3cret")
        self.tree.write("journal", "".join(line + "\n" for line in lines))
        self.tree.write("bin/journalctl", f"#!/bin/sh\ncat {self.tree.path('journal')}\n", 0o755)
        env = {"PATH": f"{self.tree.path('bin')}:{os.environ['PATH']}", "GPUSHARE_CLIENT_NAME": "next --key s3cret"}
        # What a client calls itself hides nothing else.
        with self.server.work("made it fail", 100, 0.01), self.server.work(": s3cret", 100, 0.01):
            files = self.bundled(**env)
        names = sorted(client["name"] for client in json.loads(files["clients.json"])["clients"])
        self.assertEqual(names, [": [arguments]", "made [arguments]"])
        self.assertEqual(files["journal.txt"].splitlines(), [
            "client 1 'sh [arguments]' (pid 7, uid 1000) is gone: it closed its connection",
            "device 0: client 2 'x [arguments]' (pid 8, uid 1000) made it fail: a trap; its unfinished kernels: 1",
            "device 0: these clients had work in flight, and one of them made it fail: 3 'a [arguments]', 4 'plain', 5 'c [arguments]'; of those "
            "that had left: 0",
            "client 6 'y [arguments]' or client 7 'z' ran a kernel for more than 1 s, the kernel_time_limit of the first",
            "module loads wait until kernels of client 8 ('w [arguments]'), which has left, have ended",
            "an administrator (uid 0) replaced the worker of device 0, to end the work of client 9 'v [arguments]', which had left",
            "configuration /home/user/c.yaml is in force", "client 10 'cut [arguments]"])
        self.assertIn("GPUSHARE_CLIENT_NAME=next [arguments]\n", files["environment.txt"])
        for name, text in files.items():
            self.assertNotIn("s3cret", text, name)

    def test_a_bundle_is_written_over_nothing(self):
        self.tree.write("mine", "mine")
        os.makedirs(self.tree.path("tmp"))
        checks = self.examined("--bundle", self.tree.path("mine"), TMPDIR=self.tree.path("tmp"), status=1)
        self.finds("fail", "bundle", None, self.tree.path("mine"), checks=checks)
        with open(self.tree.path("mine"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")
        checks = self.examined("--bundle", self.tree.path("other"), TMPDIR=self.tree.path("nowhere"), status=1)
        self.finds("fail", "bundle", None, "TMPDIR", checks=checks)


class CommandLine(unittest.TestCase):
    def test_what_is_wrong_is_named(self):
        for words, command in (("no option --nothing", ("doctor", "--nothing")), ("one argument too many", ("doctor", "more")),
                               ("/nonexistent", ("doctor", "--root", "/nonexistent")), ("stand behind it", ("--json", "doctor"))):
            ended = run(GPUSHARE, *command)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), command)
            self.assertIn(words, ended.stderr)
        self.assertIn("usage: gpushare doctor", run(GPUSHARE, "doctor", "--help").stdout)
        self.assertIn("gpushare doctor", run(GPUSHARE, "--help").stdout)


if __name__ == "__main__":
    unittest.main()
