# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A client in Python that follows protocol.xml itself. It shares no code with the client library
or the generator."""
import os
import socket
import struct
import xml.etree.ElementTree as ElementTree

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
CODES = {"u8": "B", "u16": "H", "u32": "I", "i32": "i", "u64": "Q", "char": "s"}
HEADER = "<IHHQII"


class Schema:
    def __init__(self):
        self.messages, self.layouts, self.names, self.constants, self.errors = {}, {}, {}, {}, {}
        protocol = ElementTree.parse(os.path.join(ROOT, "schemas/protocol.xml")).getroot()
        self.major = int(protocol.get("major"))
        for node in protocol:
            if node.tag == "message":
                self.messages[node.get("name")] = node
                self.names[int(node.get("number"))] = node.get("name")
            elif node.tag == "layout":
                self.layouts[node.get("name")] = node
            elif node.tag == "constant":
                self.constants[node.get("name")] = int(node.get("value"), 0)
            elif node.tag == "error":
                self.errors[node.get("name")] = int(node.get("number"))

    def fields(self, node, prefix=""):
        """(name, count, code) of each, those of layouts within too: threads_request, memory_limit."""
        for field in node.findall("field"):
            kind, name = field.get("type"), field.get("name")
            if kind in self.layouts:
                inner = "" if name in ("allowance", "grant") else f"{prefix}{name}_"
                yield from self.fields(self.layouts[kind], inner)
            else:
                yield prefix + name, int(field.get("count", "1")), CODES[kind]

    def pack(self, name, serial, values):
        node, body = self.messages[name], b""
        fields = list(self.fields(node))
        unknown = set(values) - {field for field, _, _ in fields}
        if unknown:
            raise KeyError(f"{name} has no {', '.join(sorted(unknown))}")
        for field, count, code in fields:
            value = values.get(field, 0)
            if code == "s":
                body += struct.pack(f"<{count}s", value.encode() if value else b"")
            elif count > 1:
                body += struct.pack(f"<{count}{code}", *(value or [0] * count))
            else:
                body += struct.pack("<" + code, value)
        size = struct.calcsize(HEADER) + len(body)
        return struct.pack(HEADER, size, int(node.get("number")), 0, serial, 0, 0) + body

    def unpack(self, data):
        _, number, _, serial, _, _ = struct.unpack_from(HEADER, data)
        name, offset, values = self.names[number], struct.calcsize(HEADER), {}
        for field, count, code in self.fields(self.messages[name]):
            layout = f"<{count}{code}"
            found = struct.unpack_from(layout, data, offset)
            if code == "s":
                values[field] = found[0].split(b"\0")[0].decode()
            else:
                values[field] = found[0] if count == 1 else list(found)
            offset += struct.calcsize(layout)
        return name, serial, values


class RawClient:
    """One connection. ask() raises RuntimeError with the server's sentence if the server refuses."""

    def __init__(self, path):
        self.schema, self.serial, self.fds = Schema(), 0, []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        self.socket.connect(path)

    def receive(self):
        """Receives a message. Returns (name, serial, values), or None at the end of the connection."""
        data, fds, _, _ = socket.recv_fds(self.socket, self.schema.constants["message_max"], 8)
        self.fds += fds
        return self.schema.unpack(data) if data else None

    def ask(self, message, **values):
        self.serial += 1
        self.socket.send(self.schema.pack(message, self.serial, values))
        while True:
            answer = self.receive()
            if answer is None:
                raise RuntimeError("the connection ended")
            if answer[1] == self.serial:
                break
        if answer[0] == "failed":
            raise RuntimeError(answer[2]["text"])
        return answer[2]

    def attach(self, **wishes):
        unset = dict.fromkeys((name for name, _, _ in self.schema.fields(self.schema.layouts["allowance"])
                               if name.endswith(("_request", "_limit"))), self.schema.constants["unset"])
        self.ask("hello", major=self.schema.major)
        return self.ask("attach", **{**unset, **wishes})

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        self.socket.close()
