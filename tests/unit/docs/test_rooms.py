#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/architecture.md names every room, and no room that is not there."""
import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SUPERVISOR, WORKER, SOFTGPU = "server/supervisor/", "server/worker/", "server/softgpu/"
# The folders that each folder may include, and all that the scheduler may include of the system.
COMMON = ("common", "common/limits", "common/ipc", "common/cuda")
FLOOR_OF_SESSION = COMMON + tuple(SUPERVISOR + name for name in ("loop", "keep", "config", "account", "worker", "device", "client"))
FLOOR_OF_WORKER = COMMON + (WORKER + "calls", WORKER + "device")
MAY_INCLUDE = {
    "common": (),
    "common/limits": ("common",),
    "common/ipc": ("common",),
    "common/cuda": ("common",),
    "common/cuda/front": ("common", "common/cuda"),
    "common/cuda/link": ("common", "common/cuda", "common/cuda/front"),
    "server/scheduler/sm": (),
    "server/scheduler": ("server/scheduler/sm",),
    "server/supervisor/loop": COMMON,
    "server/supervisor/keep": COMMON + (SUPERVISOR + "loop",),
    "server/supervisor/config": COMMON,
    "server/supervisor/account": COMMON + (SUPERVISOR + "keep", SUPERVISOR + "config"),
    "server/supervisor/worker": COMMON + (SUPERVISOR + "loop", SUPERVISOR + "keep", SUPERVISOR + "config", SUPERVISOR + "account"),
    "server/supervisor/device": COMMON + (SUPERVISOR + "loop", SUPERVISOR + "keep", SUPERVISOR + "config", SUPERVISOR + "account",
                                 SUPERVISOR + "worker"),
    "server/supervisor/client": COMMON + (SUPERVISOR + "loop", SUPERVISOR + "keep"),
    "server/supervisor/session": FLOOR_OF_SESSION,
    "server/supervisor/session/owned": FLOOR_OF_SESSION + (SUPERVISOR + "session",),
    "server/supervisor/session/life": FLOOR_OF_SESSION + (SUPERVISOR + "session", SUPERVISOR + "session/owned"),
    "server/supervisor": FLOOR_OF_SESSION + (SUPERVISOR + "session", SUPERVISOR + "session/owned", SUPERVISOR + "session/life"),
    "server/supervisor/admin": COMMON + ("server/supervisor", SUPERVISOR + "loop", SUPERVISOR + "config", SUPERVISOR + "account"),
    "server/supervisor/admin/show": COMMON + ("server/supervisor", SUPERVISOR + "config", SUPERVISOR + "account", SUPERVISOR + "admin"),
    "server/worker/calls": COMMON,
    "server/worker/image": COMMON,
    "server/worker/device": COMMON + (WORKER + "calls",),
    "server/worker": FLOOR_OF_WORKER,
    "server/worker/client": FLOOR_OF_WORKER + ("server/scheduler", "server/worker"),
    "server/worker/code/cache": COMMON + (WORKER + "image",),
    "server/worker/code": FLOOR_OF_WORKER + ("server/worker", WORKER + "image", WORKER + "client", WORKER + "code/cache"),
    "server/worker/sharing": FLOOR_OF_WORKER + ("server/scheduler", "server/scheduler/sm", "server/worker", WORKER + "client"),
    "server/worker/run": FLOOR_OF_WORKER + ("server/scheduler", "server/worker", WORKER + "client", WORKER + "code",
                                            WORKER + "sharing"),
    "server/worker/control": FLOOR_OF_WORKER + ("server/scheduler", "server/worker", WORKER + "client", WORKER + "image",
                                                WORKER + "code", WORKER + "sharing", WORKER + "run"),
    "server/softgpu": COMMON,
    "server/softgpu/memory": COMMON + ("server/softgpu",),
    "server/softgpu/exec": COMMON + ("server/softgpu", SOFTGPU + "memory"),
    "server/softgpu/value": (SOFTGPU + "exec",),
    "server/softgpu/decode": COMMON + (SOFTGPU + "exec",),
    "server/softgpu/device": COMMON + ("server/softgpu", SOFTGPU + "memory", SOFTGPU + "exec"),
    "server/softgpu/api": COMMON + ("common/cuda/front", "server/softgpu", SOFTGPU + "memory", SOFTGPU + "exec", SOFTGPU + "decode",
                           SOFTGPU + "device"),
    "client/session": COMMON,
    "client/engine/range": COMMON,
    "client/engine": COMMON + ("client/session", "client/engine/range"),
    "client": COMMON + ("client/session", "client/engine"),
    "client/cuda/runtime": ("client/cuda/runtime/base", "common", "common/cuda"),
    "client/cuda/runtime/base": ("common", "common/cuda"),
    "client/cuda/driver/print": COMMON + ("client/session", "client/engine"),
    "client/cuda/driver/managed": COMMON + ("client/session", "client/engine", "client/cuda/driver/print"),
    "client/cuda/driver/base": COMMON + ("common/cuda/front", "client/session", "client/engine", "client/cuda/driver/print",
                                         "client/cuda/driver/managed"),
    "client/cuda/driver": COMMON + ("common/cuda/front", "client/session", "client/engine", "client/engine/range", "client/cuda/driver/base",
                                    "client/cuda/driver/print"),
    "client/cuda/loader": (),
    "client/tools/trace": COMMON + ("client", "client/session"),
    "client/tools/explain": COMMON,
    "client/tools/metrics": COMMON,
    "client/tools": COMMON + ("client", "client/session", "client/engine", "client/tools/trace", "client/tools/explain",
                              "client/tools/metrics"),
    "client/tools/exporter": COMMON + ("client/tools", "client/tools/metrics"),
    "client/tools/live": COMMON + ("client/tools",),
    "client/tools/mps": COMMON + ("client/tools",),
    "client/tools/configuration": COMMON + ("client/tools",),
    "client/tools/doctor": COMMON + ("client/tools",),
    "client/tools/report": COMMON + ("client/tools",),
}
# Of common/, the scheduler may include what has neither state nor memory, and includes no more than it may.
FLOOR = ("common/error.h", "common/list.h", "common/messages.h", "common/units.h", "common/util.h")
# The administrator's decisions may be read anywhere in the supervisor, and the public header anywhere in the library.
SETTINGS, PUBLIC = "server/supervisor/settings.h", "client/gpushare.h"
# The files that include what stands above their folder. A main stands on everything, and a session's connection on the
# handlers of all its messages. The headers of the supervisor and of the worker put together, by value, the parts that the folders declare; so the files of these folders, which are given the whole, stand
# below the parts and include the whole. Nothing else may go round like this.
ABOVE = {
    "server/supervisor/main.c": (SUPERVISOR + "admin",),
    "server/supervisor/admin/admin.c": (SUPERVISOR + "admin/show",),
    "client/tools/gpusharectl.c": ("client/tools/live", "client/tools/mps", "client/tools/configuration", "client/tools/report"),
    "client/tools/gpushare.c": ("client/tools/doctor",),
    "server/supervisor/session/session.c": (SUPERVISOR + "session/owned", SUPERVISOR + "session/life"),
    "server/supervisor/session/server.h": (SUPERVISOR + "session/owned",),
    "server/worker/main.c": (WORKER + "code", WORKER + "control"),
    "server/worker/worker.h": (WORKER + "client", WORKER + "code", WORKER + "sharing", WORKER + "run", WORKER + "code/cache"),
    "server/worker/client/client.h": (WORKER + "sharing",),
}
# Sources that a folder may have: more than a dozen or so are not overlooked at a glance.
SOURCES_MAX = 15
PURE = {"errno.h", "inttypes.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "string.h"}


def page():
    with open(os.path.join(ROOT, "docs/architecture.md"), encoding="utf-8") as text:
        return text.read()


def section(folder):
    """The page from the folder's own heading to the next one."""
    found = re.search(r"^\*\*%s/\*\*$(.*?)(?=^\*\*|^## )" % re.escape(folder), page(), re.M | re.S)
    return found.group(1) if found else ""


class Rooms(unittest.TestCase):
    def test_every_source_is_named_in_its_folders_table(self):
        anywhere = set(re.findall(r"`(\w+)`", page()))
        for folder in MAY_INCLUDE:
            here = set(re.findall(r"`(\w+)`", section(folder)))
            self.assertTrue(here, "no table for " + folder)
            for path in glob.glob(os.path.join(ROOT, folder, "*.[ch]")):
                noun = os.path.basename(path)[:-2]
                if noun == "gpushare":
                    continue  # the public header is the folder's own line
                own = os.path.exists(path[:-2] + ".c")
                self.assertIn(noun, here if own else anywhere, "%s/%s is not in docs/architecture.md" % (folder, noun))

    def test_every_folder_has_its_rules(self):
        found = {os.path.relpath(at, ROOT) for top in ("common", "client", "server")
                 for at, _, names in os.walk(os.path.join(ROOT, top)) if any(name.endswith((".c", ".h")) for name in names)}
        self.assertEqual(found, set(MAY_INCLUDE))

    def test_no_folder_has_too_many_sources(self):
        for folder in MAY_INCLUDE:
            sources = [os.path.basename(path) for path in glob.glob(os.path.join(ROOT, folder, "*.c"))]
            self.assertLessEqual(len(sources), SOURCES_MAX, "%s: divide it by subject: %s" % (folder, " ".join(sorted(sources))))

    def test_dependencies_point_one_way(self):
        used = {path: set() for path in ABOVE}
        for folder, others in MAY_INCLUDE.items():
            sources = glob.glob(os.path.join(ROOT, folder, "*.[ch]"))
            self.assertTrue(sources, folder)
            for path in sources:
                name = os.path.relpath(path, ROOT)
                with open(path, encoding="utf-8") as text:
                    included = re.findall(r'^#include "(([\w/]+)/\w+\.\w+)"', text.read(), re.M)
                for file, other in included:
                    if file in FLOOR or (file == SETTINGS and folder.startswith(SUPERVISOR)) or \
                            (file == PUBLIC and folder.startswith("client/")):
                        continue
                    if other in ABOVE.get(name, ()):
                        used[name].add(other)
                    else:
                        self.assertIn(other, (folder,) + others, name)
        self.assertEqual(used, {path: set(folders) for path, folders in ABOVE.items()}, "an exception that no file needs")

    def test_no_folder_stands_above_itself(self):
        below = {}  # the folders whose own folders are known

        def reach(folder, way):
            self.assertNotIn(folder, way, " -> ".join(way + (folder,)))
            if folder not in below:
                below[folder] = set(MAY_INCLUDE[folder]).union(*(reach(other, way + (folder,)) for other in MAY_INCLUDE[folder]))
            return below[folder]

        for folder in MAY_INCLUDE:
            reach(folder, ())
        for path, folders in ABOVE.items():  # what is permitted anyway is no exception
            for folder in folders:
                self.assertNotIn(folder, below[os.path.dirname(path)], path)

    def test_the_scheduler_has_no_clock_thread_or_memory_of_its_own(self):
        for path in glob.glob(os.path.join(ROOT, "server/scheduler/**/*.[ch]"), recursive=True) + [os.path.join(ROOT, file) for file in FLOOR]:
            with open(path, encoding="utf-8") as text:
                source = text.read()
            self.assertLessEqual(set(re.findall(r"^#include <(.+)>", source, re.M)), PURE, path)
            self.assertNotRegex(source, r"\b(f?printf|puts|fopen|fwrite)\(", path)  # of stdio, snprintf alone

    def test_every_path_is_there(self):
        for path in re.findall(r"`((?:client|common|docs|make|schemas|server|systemd|tests)/[\w./-]*)`", page()):
            self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)
        for link in re.findall(r"\]\(([\w./-]+)\)", page()):
            self.assertTrue(os.path.exists(os.path.join(ROOT, "docs", link)), link)

    def test_every_function_stands_in_the_file_that_is_named_beside_it(self):
        rows = re.findall(r"`([\w/]+\.[ch])`: ((?:`\w+`(?:, )?)+)", page())
        self.assertGreater(len(rows), 8)
        for path, names in rows:
            with open(os.path.join(ROOT, path), encoding="utf-8") as text:
                source = text.read()
            for name in re.findall(r"`(\w+)`", names):
                self.assertRegex(source, r"\b%s\(" % name, "%s has no %s" % (path, name))


if __name__ == "__main__":
    unittest.main()
