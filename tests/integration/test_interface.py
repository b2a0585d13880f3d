#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The interface that users rely on, compared with the record in tests/interface/.

The record names what programs, scripts and configurations of users depend on: error numbers, exit
codes, options, environment variables, configuration keys, the members of every JSON answer, the
library's symbols, declarations and layouts. How anything is worded is not recorded. A name that
vanished or changed fails, and so does a new one until it is recorded:

    make interface          (test_interface.py --record, after `make all tests`)

One file for each subject, one line for each name: NAME = VALUE. Two things are written by hand:
the invocations in exits.txt, of which the codes are recorded, and the samples of values in
flags.txt and yaml.txt; a new name stands there with a request to write one.
"""
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from private_server import BUILD, ENV, GPUSHARE, GPUSHARECTL, GPUSHARED, SECONDS, Server, run  # noqa: E402
from server_case import CHANGES  # noqa: E402

RECORD = os.path.join(ROOT, "tests/interface")
WORKER = os.path.join(BUILD, "libexec/gpushare-worker")
SOFTGPU = os.path.join(BUILD, "lib/softgpu/libcuda.so.1")
LIBRARY = os.path.join(BUILD, "lib/libgpushare-client.so.0")
HEADER = os.path.join(ROOT, "client/gpushare.h")
ERROR_HEADER = os.path.join(ROOT, "client/gpushare_error.h")
EXPORTER = os.path.join(BUILD, "bin/gpushare-exporter")
PROGRAMS = {"gpushared": GPUSHARED, "gpushare": GPUSHARE, "gpusharectl": GPUSHARECTL, "gpushare-worker": WORKER, "gpushare-exporter": EXPORTER}
BINARIES = {**PROGRAMS, "libgpushare-client": LIBRARY, "softgpu": SOFTGPU}


# ---- the record -----------------------------------------------------------------------------
def read_record(subject):
    """{name: value} of one subject."""
    with open(os.path.join(RECORD, subject + ".txt"), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    return dict(line.split(" = ", 1) for line in lines)


def write_record(subject, found):
    path = os.path.join(RECORD, subject + ".txt")
    with open(path, encoding="utf-8") as file:
        head = [line for line in file if line.startswith("#")]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(head)
        file.writelines(f"{name} = {value}\n" for name, value in sorted(found.items()))


def differences(recorded, found):
    """A sentence for each name that differs; an empty list if none does."""
    said = [f"{name} has vanished (it was: {recorded[name]})" for name in sorted(recorded.keys() - found.keys())]
    said += [f"{name} was {recorded[name]} and is {found[name]}"
             for name in sorted(recorded.keys() & found.keys()) if recorded[name] != found[name]]
    said += [f"{name} = {found[name]} is new; if it is meant: make interface" for name in sorted(found.keys() - recorded.keys())]
    return said


# ---- programs ------------------------------------------------------------------------
# Arguments with which a program exits with status 0, whatever valid options stand before them.
DOES_WELL = {"gpushared": ["--help"], "gpushare": ["--help"], "gpusharectl": ["--help"], "gpushare-exporter": ["--help"], "gpushare-worker": ["--driver", SOFTGPU, "--list"]}


def takes(program, *words):
    return run(PROGRAMS[program], *words, *DOES_WELL[program]).returncode == 0


def flags():
    """Options and commands that a program's own help names, and letters that it takes. The record
    has a sample of an option's argument, or says that it stands alone."""
    helps = {}
    for program, path in PROGRAMS.items():
        done = run(path, "--help")
        helps[program] = done.stdout + done.stderr
    named = {program: set(re.findall(r"(?<![\w-])--[a-z][a-z-]*|(?<![\w-])-[a-z](?= )", text)) for program, text in helps.items()}
    recorded, found = read_record("flags"), {}
    for program, path in PROGRAMS.items():
        for option in named[program]:
            key = f"{program} {option}"
            sample = recorded.get(key) or ("alone" if takes(program, option) else "write a sample of its argument here")
            words = [option] if sample == "alone" else [option, sample]
            if takes(program, *words) and (sample == "alone" or not takes(program, option)):
                found[key] = sample
            elif key in recorded or not any(option in named[other] for other in named.keys() - {program}):
                found[key] = "not taken as recorded" if key in recorded else sample
            # Otherwise the text mentions an option of another program.
        for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ":
            if f"-{letter}" not in named[program] and takes(program, "-" + letter):
                found[f"{program} -{letter}"] = "alone"
        commands = re.search(r"^commands:\n(.*?)\n\n", helps[program], re.M | re.S)
        for command in re.findall(r"^  ([a-z-]+) ", commands.group(1) if commands else "", re.M):
            found[f"{program} {command}"] = "command"
    for program, options in named.items():
        for option in options:  # a text that mentions another program's option, and no program that has it
            if not any(f"{other} {option}" in found for other in named):
                found[f"{program} {option}"] = "write a sample of its argument here"
    return found


VARIABLE = re.compile(rb"(?<![\x20-\x7e])((?:GPUSHARE|SOFTGPU|CUDA_MPS|CUDA_VISIBLE|CUDA_DEVICE_MAX|CUDA_MODULE|LISTEN|NOTIFY|XDG|JOURNAL"
                      rb"|RUNTIME|STATE)_[A-Z0-9_]+|NO_COLOR|TERM)(?=\0)")


def header_text():
    """The public headers without comments."""
    texts = []
    for path in (ERROR_HEADER, HEADER):
        with open(path, encoding="utf-8") as file:
            texts.append(re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S))
    return "\n".join(texts)


def variables():
    """Names of environment variables that a binary has as separate strings. Identifiers of the public
    header are not variables; a name that ends in _ is a prefix of names."""
    identifiers = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", header_text()))
    resources = set()
    for path in ("common/limits/allowance.h", "common/limits/allowance.c"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            resources |= set(re.findall(r'"([A-Z]+_[A-Z_]+)"', file.read()))
    found = {}
    for binary, path in BINARIES.items():
        with open(path, "rb") as file:
            names = {name.decode() for name in VARIABLE.findall(file.read().replace(b"\0", b"\0\0"))} - identifiers
        # A program with the table of resources, and without the reader of limits beside it, has the
        # table for the names of the resources. It reads none of their variables.
        if "GPUSHARE_CLIENT_NAME" not in names:
            names -= resources
        found.update({f"{binary} {name}": "prefix" if name.endswith("_") else "read" for name in names})
    return found


def messages():
    """The names of the messages that users get; their words may change."""
    lists = [subprocess.run([BINARIES[name], "--list-messages"], capture_output=True, text=True, check=True).stdout
             for name in ("gpushare", "gpushared")]
    assert lists[0] == lists[1]
    return dict(line.split(" ")[:2] for line in lists[0].splitlines())


# ---- exit codes ---------------------------------------------------------------------------------
def split_invocation(name):
    """"[VARIABLE=VALUE]... PROGRAM ARGUMENT..." as (environment, program, arguments)."""
    words, env = name.split(), {}
    while "=" in words[0]:
        key, value = words.pop(0).split("=", 1)
        env[key] = value
    return env, words[0], words[1:]


def exits():
    """The exit code of each invocation that is recorded. Words with @ stand for values that differ between machines and runs."""
    with tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        files = {"@good.yaml": "clients: {memory: {limit: 64M}}\n", "@bad.yaml": "clients: {memory: {limit: much}}\n",
                 "@unknown.yaml": "clients: {memories: {limit: 64M}}\n", "@broken.yaml": "clients: [\n"}
        for name, text in files.items():
            with open(os.path.join(folder, name[1:]), "w", encoding="utf-8") as file:
                file.write(text)
        config = os.path.join(folder, "good.yaml")
        with Server("--config", config) as server, live_client(server, "recorded") as number:
            words = {**{name: os.path.join(folder, name[1:]) for name in files}, "@absent": os.path.join(folder, "absent"),
                     "@socket": server.client, "@admin": server.admin, "@client": str(number), "@uid": str(os.getuid()),
                     "@softgpu": SOFTGPU, "@trace": server.file("trace.json"), "@folder": folder}

            def meant(word):
                return re.sub(r"@[a-z.]+", lambda match: words[match.group(0)], word)

            found = {}
            for name in read_record("exits"):
                env, program, arguments = split_invocation(name)
                done = run(PROGRAMS[program], *map(meant, arguments), **{key: meant(value) for key, value in env.items()})
                found[name] = str(done.returncode)
            return found


@contextlib.contextmanager
def live_client(server, name):
    """A client that is attached and has done nothing yet. Yields its number."""
    with server.work(name, 100, 0.01) as client:
        rows = json.loads(server.ctl("--json", "clients").stdout)["clients"]
        yield next(row["client"] for row in rows if row["pid"] == client.pid)


# ---- configuration --------------------------------------------------------------------------------
def type_name(value):
    return {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null", list: "array", dict: "object"}[type(value)]


def schema_types(node, root):
    """The JSON types that a schema node allows, resolved."""
    if "$ref" in node:
        return schema_types(root["$defs"][node["$ref"].rsplit("/", 1)[1]], root)
    types = set()
    for form in ("anyOf", "oneOf", "allOf"):
        for part in node.get(form, ()):
            types |= schema_types(part, root)
    if "enum" in node or "const" in node:
        types |= {type_name(value) for value in node.get("enum", [node.get("const")])}
    kinds = node.get("type", [])
    return types | {"number" if kind == "integer" else kind for kind in ([kinds] if isinstance(kinds, str) else kinds)}


def schema_paths(node, root, path=""):
    """Yields (path, types, required) of every member; [] is an item, * a name of the user's choice."""
    if "$ref" in node:
        yield from schema_paths(root["$defs"][node["$ref"].rsplit("/", 1)[1]], root, path)
        return
    for form in ("anyOf", "oneOf", "allOf"):
        for part in node.get(form, ()):
            yield from schema_paths(part, root, path)
    members = dict(node.get("properties", {}))
    if isinstance(node.get("additionalProperties"), dict):
        members["*"] = node["additionalProperties"]
    for name, member in members.items():
        here = f"{path}.{name}" if path else name
        yield here, schema_types(member, root), name in node.get("required", ())
        yield from schema_paths(member, root, here)
    if "items" in node:
        yield from schema_paths(node["items"], root, path + "[]")


def load_schema(name):
    with open(os.path.join(ROOT, "schemas", name), encoding="utf-8") as file:
        return json.load(file)


def schemas():
    """Every member of every published JSON document, by schema. Alternatives of a request are listed separately."""
    found = {}
    for name in sorted(os.listdir(os.path.join(ROOT, "schemas"))):
        if not name.endswith(".schema.json"):
            continue
        root, stem = load_schema(name), name[:-len(".schema.json")]
        for form in root.get("oneOf", [root]):
            label = stem
            if stem == "admin-request":
                kinds = form["properties"]["request"]
                label += " " + "|".join(kinds.get("enum", [kinds.get("const")]))
                label += "".join(f" {key}" for key in form.get("required", ()) if key not in ("request",))
            for path, types, required in schema_paths(form, root):
                key = f"{label}: {path}"
                before = set(found[key].split()[0].split("|")) if key in found else set()
                found[key] = "|".join(sorted(types | before)) + (" required" if required else "")
    return found


# Keys that must stand beside a key, by the key above both.
BESIDE = {"gpus[]": "gpu: 0", "users[]": "uid: 1", "groups[]": "gid: 1", "cgroups[]": "cgroup: /a", "resources[]": "replicas: 2",
          "accounting": "file: /a", "mps": "resources: [{replicas: 2}]", "timeSlicing": "resources: [{replicas: 2}]"}


def yaml_of(path, value):
    """A document in which this key alone has this value, given the keys that must stand beside it."""
    words, text = path.split("."), value
    for at, word in reversed(list(enumerate(words))):
        name = "of-the-user" if word == "*" else word.removesuffix("[]")
        beside = BESIDE.get(words[at - 1], "") if at else ""
        text = f"[{text}]" if word.endswith("[]") else text
        text = f"{{{beside + ', ' if beside and not beside.startswith(name + ':') else ''}{name}: {text}}}"
    if path == "rules[].profile":
        text = f"{{profiles: {{{value}: {{}}}}, {text[1:]}"
    return text + "\n"


def yaml():
    """Each key of the schema with the sample of the record, if the server takes it; a key that it
    does not know beside it must be refused."""
    root = load_schema("gpushared-config.schema.json")
    keys = {path for path, types, _ in schema_paths(root, root) if types - {"object", "array", "null"}}
    samples, found = read_record("yaml"), {}
    with tempfile.TemporaryDirectory(prefix="gpushare-test-") as folder:
        file = os.path.join(folder, "gpushared.yaml")

        def taken(text):
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
            return run(GPUSHARED, "--config", file, "--check-config").returncode == 0

        for path in sorted(keys | samples.keys()):
            sample = samples.get(path)
            if sample is None:
                found[path] = "write a sample of its value here"
            elif path not in keys:
                continue  # no longer in the schema: differences() reports that
            elif not taken(yaml_of(path, sample)):
                found[path] = "REFUSED BY THE SERVER: " + yaml_of(path, sample).strip()
            elif taken(yaml_of(path.rsplit(".", 1)[0] + ".no-such-key", sample)):
                found[path] = "A KEY THAT NOBODY KNOWS IS TAKEN BESIDE IT"
            else:
                found[path] = sample
    return found


# ---- JSON answers -----------------------------------------------------------------------------------
def note_members(value, path, found):
    if isinstance(value, dict):
        for key, member in value.items():
            here = f"{path}{key}"
            found.setdefault(here, set()).add(type_name(member))
            note_members(member, here + ".", found)
    elif isinstance(value, list):
        for item in value:
            found.setdefault(path[:-1] + "[]", set()).add(type_name(item))
            note_members(item, path[:-1] + "[].", found)


def live_answers():
    """(label, answer) of every command that prints JSON. A label may come more than once."""
    with tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        config = os.path.join(folder, "gpushared.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("profiles: {small: {memory: {limit: 64M}}}\n"
                       f"rules: [{{match: {{uid: {os.getuid()}}}, priority: 3}}]\n"
                       f"users: [{{uid: {os.getuid()}, memory: {{limit: 1G}}, host_memory: {{limit: 64M}}}}]\n"
                       f"groups: [{{gid: {os.getgid()}, memory: {{limit: 1G}}}}]\n")
        with Server("--config", config) as server:
            def ctl(*words):
                return json.loads(server.ctl("--json", *words).stdout)

            def ask(line):
                with socket.socket(socket.AF_UNIX) as admin:
                    admin.settimeout(SECONDS)
                    admin.connect(server.admin)
                    admin.sendall(line.encode() + b"\n")
                    with admin.makefile() as answer:
                        return json.loads(answer.readline())

            # Greeted, but not yet attached: the members of a client's row are null.
            yield "info", json.loads(server.info("--json").stdout)
            asked = {"GPUSHARE_PROFILE": "small", "GPUSHARE_THREADS_LIMIT": "50%", "GPUSHARE_THREADS_REQUEST": "10%",
                     "GPUSHARE_MEMORY_LIMIT": "32M", "GPUSHARE_MEMORY_REQUEST": "8M", "GPUSHARE_HOST_MEMORY_LIMIT": "16M",
                     "GPUSHARE_HOST_MEMORY_REQUEST": "1M", "GPUSHARE_TIME_LIMIT": "50%", "GPUSHARE_TIME_REQUEST": "10%",
                     "GPUSHARE_CLIENT_PRIORITY": "5", "GPUSHARE_VISIBLE_DEVICES": "0"}
            yield "info", json.loads(server.info("--json", **asked).stdout)
            # Of a machine on which there is nothing: what is found of this one would not be recorded everywhere.
            yield "doctor", json.loads(run(GPUSHARE, "doctor", "--json", "--root", folder, "--socket", server.client).stdout)
            yield "info refused", json.loads(server.info("--json", GPUSHARE_PROFILE="none-of-this-name").stdout or "{}")
            with server.work("asks", 100, 0.01, **asked) as client, server.work("asks for nothing", 100, 0.01):
                client.go()
                client.row()
                rows = ctl("clients")
                number = str(next(row["client"] for row in rows["clients"] if row["pid"] == client.pid))
                uid, gid = str(os.getuid()), str(os.getgid())
                yield "clients", rows
                for words in (["ping"], ["version"], ["status"], ["get", number], ["get", "user", uid],
                              ["get", "group", gid], ["get", "gpu", "0"], ["kill", "4294967295"], ["set", "gpu", "0", "lease=1ns"],
                              ["set", number, "threads.limit=40%", "memory.limit=16M"], ["set", "user", uid, "total.memory=512M"],
                              ["set", "group", gid, "total.host_memory=32M"], ["set", "gpu", "0", "mode=fair"],
                              ["reload"], ["metrics"], ["get", "user", uid], ["get", "gpu", "0"], ["status"],
                              ["trace", "-o", server.file("trace.json"), "--seconds", "0.05"]):
                    kind = " ".join(word for word in words[:2] if word.isalpha())
                    answer = ctl(*words)
                    yield "error" if not answer["ok"] else kind, answer
                for request in ({"request": "status"}, {"request": "clients"}, {"request": "get", "client": int(number)},
                                {"request": "version"}, {"request": "nonsense"}):
                    answer = ask(json.dumps(request))
                    yield f"socket {request['request']}" if answer["ok"] else "socket error", answer
                for words in (["drain"], ["resume"], ["events"], ["log-level"]):
                    yield words[0], ctl(*words)
                # What is inside is the file, whose keys are recorded, and rows of get.
                yield "config show", {**ctl("config", "show"), "configuration": {}}
                yield "config check", ctl("config", "check", config)
                yield "get all", {**ctl("get", "all"), "gpus": [], "clients": [], "totals": []}
                # The answers inside are those of status and clients, which are recorded above.
                for words in ((), ("top", "-d", "0.1")):
                    yield "overview", {**ctl(*words), "status": {}, "clients": {}}
                yield "kill", ctl("kill", number)
                yield "kill --all", ctl("kill", "--all")


def answers():
    found = {}
    for label, answer in live_answers():
        note_members(answer, label + ": ", found)
    return {name: "|".join(sorted(types)) for name, types in found.items()}


# ---- the library ------------------------------------------------------------------------------------
def symbols():
    found = {}
    for binary, path, options in (("libgpushare-client.so", LIBRARY, ["-D"]), ("softgpu", SOFTGPU, ["-D"]),
                                  ("libgpushare-client.a", os.path.join(BUILD, "lib/libgpushare-client.a"), [])):
        output = subprocess.run(["nm", *options, "-g", "--defined-only", "-P", path], capture_output=True, text=True, check=True).stdout
        for name, kind in re.findall(r"^(\S+) ([A-Z])", output, re.M):
            found[f"{binary} {name}"] = kind
    return found


def declarations():
    """(functions, constants, structs, errors) of the public header."""
    text = header_text()
    constants = {name: value.strip() for name, value in re.findall(r"^#define (GPUSHARE_\w+)[ \t]+(.+)$", text, re.M)
                 if name not in ("GPUSHARE_API", "GPUSHARE_VERSION_NUMBER")}
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)
    enums = dict(re.findall(r"\benum (\w+) \{(.*?)\}", text, re.S))
    structs = dict(re.findall(r"\bstruct (\w+) \{(.*?)\}", text, re.S))
    rest = re.sub(r"\b(enum|struct) \w+ \{.*?\}\s*;", "", text, flags=re.S)
    functions = {}
    for statement in rest.split(";"):
        statement = " ".join(statement.replace('extern "C" {', "").replace("GPUSHARE_API", "").split())
        match = re.fullmatch(r"(.*?)(\w+)\((.*)\)", statement)
        if statement.startswith("typedef"):
            functions[re.findall(r"\w+", statement.split(")")[0])[-1]] = statement
        elif match:
            result, name, parameters = match.groups()
            # No program depends on the name of a parameter.
            bare = [re.sub(r"(?<=[\s*])\w+$", "", part).strip() if " " in part.strip() else part.strip() for part in parameters.split(",")]
            functions[name] = f"{result.strip()} ({', '.join(bare)})"
    return functions, constants, structs, enums


def header():
    """Functions by their types; constants, enumerators, sizes and offsets as the compiler has them."""
    functions, constants, structs, enums = declarations()
    lines = []
    for tag, body in structs.items():
        lines.append(f'printf("struct {tag} = %zu bytes\\n", sizeof(struct {tag}));')
        for statement in filter(None, (" ".join(part.split()) for part in body.split(";"))):
            base = re.match(r"(?:const )?(?:struct )?\w+", statement).group(0)
            for declarator in statement[len(base):].split(","):
                name = re.search(r"\w+", declarator).group(0)
                kind = (base + " " + declarator.strip().replace(name, "", 1)).strip()
                lines.append(f'printf("struct {tag}.{name} = %s, %zu bytes at %zu\\n", "{kind}", '
                             f'sizeof(((struct {tag} *)0)->{name}), offsetof(struct {tag}, {name}));')
    for tag, body in enums.items():
        for name in re.findall(r"\b(GPUSHARE_\w+)\b\s*(?:=|,|$)", body):
            lines.append(f'printf("enum {tag} {name} = %d\\n", (int){name});')
    for name in constants:
        lines.append(f'printf("constant {name} = %llu\\n", (unsigned long long){name});')
    with tempfile.TemporaryDirectory(prefix="gpushare-test-") as folder:
        source, program = os.path.join(folder, "header.c"), os.path.join(folder, "header")
        with open(source, "w", encoding="utf-8") as file:
            file.write('#include <stddef.h>\n#include <stdio.h>\n#include "gpushare.h"\nint main(void)\n{\n' + "\n".join(lines) + "\n}\n")
        subprocess.run(["cc", "-I", os.path.dirname(HEADER), "-o", program, source], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    found = dict(line.split(" = ", 1) for line in output.splitlines())
    found.update({f"declaration {name}": text for name, text in functions.items()})
    return found


def errors():
    """The number, the enumerator and the library's name of each error, from a program that links the library."""
    enumerators = re.findall(r"\b(GPUSHARE_\w+)\s*=", declarations()[3]["gpushare_error"])
    lines = "\n".join(f'printf("%d = {name} %s\\n", (int){name}, gpushare_error_name({name}));' for name in enumerators)
    with tempfile.TemporaryDirectory(prefix="gpushare-test-") as folder:
        source, program = os.path.join(folder, "errors.c"), os.path.join(folder, "errors")
        with open(source, "w", encoding="utf-8") as file:
            file.write('#include <stdio.h>\n#include "gpushare.h"\nint main(void)\n{\n' + lines + "\n"
                       'printf("any other = none %s\\n", gpushare_error_name((gpushare_error)12345));\n}\n')
        subprocess.run(["cc", "-I", os.path.dirname(HEADER), "-o", program, source, LIBRARY, f"-Wl,-rpath,{os.path.dirname(LIBRARY)}"], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True, env=ENV).stdout
    return dict(line.split(" = ", 1) for line in output.splitlines())


# ---- the protocol, as clients of other releases speak it -------------------------------------
def protocol():
    """Each message, command and layout that a client sees. A client library of an earlier minor version knows no other form of
    them, so a new field needs a new message."""
    found = {}
    for node in xml.etree.ElementTree.parse(os.path.join(ROOT, "schemas/protocol.xml")).getroot():
        if node.tag == "message" and not {node.get("from"), node.get("to")} & {"client", "any"}:
            continue
        if node.tag in ("message", "command", "layout"):
            fields = " ".join(field.get("type") + "*" + field.get("count", "1") for field in node.iter("field"))
            found[f"{node.tag} {node.get('name')}"] = f"{node.get('number', '-')}: {fields} tail {node.get('tail', '0')} fds {node.get('fds', '0')}"
    return found


SUBJECTS = {"errors": errors, "protocol": protocol, "exits": exits, "flags": flags, "variables": variables, "messages": messages, "yaml": yaml, "schemas": schemas,
            "answers": answers, "symbols": symbols, "header": header}


class Interface(unittest.TestCase):
    def hold(self, subject):
        said = differences(read_record(subject), SUBJECTS[subject]())
        if said:
            self.fail(f"tests/interface/{subject}.txt:\n  " + "\n  ".join(said))

    def test_error_numbers_and_names(self):
        self.hold("errors")

    @CHANGES
    def test_messages_of_clients(self):
        self.hold("protocol")

    def test_exit_codes(self):
        self.hold("exits")

    def test_options_and_commands(self):
        self.hold("flags")

    def test_environment_variables(self):
        self.hold("variables")

    def test_message_names(self):
        self.hold("messages")

    def test_configuration_keys(self):
        self.hold("yaml")

    def test_published_json(self):
        self.hold("schemas")

    @CHANGES
    def test_json_answers(self):
        self.hold("answers")

    def test_symbols(self):
        self.hold("symbols")

    def test_the_header(self):
        self.hold("header")


class Differences(unittest.TestCase):
    def test_each_difference_is_named(self):
        said = differences({"gone": "1", "other": "2", "same": "3"}, {"other": "4", "same": "3", "new": "5"})
        self.assertEqual([line.split()[0] for line in said], ["gone", "other", "new"])
        self.assertIn("vanished", said[0])
        self.assertIn("was 2 and is 4", said[1])
        self.assertIn("make interface", said[2])
        self.assertEqual(differences({"same": "3"}, {"same": "3"}), [])

    def test_a_document_for_a_key(self):
        self.assertEqual(yaml_of("clients.memory.limit", "1G"), "{clients: {memory: {limit: 1G}}}\n")
        self.assertEqual(yaml_of("gpus[].mode", "fair"), "{gpus: [{gpu: 0, mode: fair}]}\n")
        self.assertEqual(yaml_of("gpus[].gpu", "1"), "{gpus: [{gpu: 1}]}\n")
        self.assertEqual(yaml_of("profiles.*.priority", "1"), "{profiles: {of-the-user: {priority: 1}}}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        for each in sys.argv[2:] or SUBJECTS:
            write_record(each, SUBJECTS[each]())
    else:
        unittest.main()
