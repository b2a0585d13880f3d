# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A JSON Schema checker for what the project's schemas use. A keyword that it does not
know is an error, so nothing in a schema goes unchecked. Where Python's jsonschema is
installed it must agree.

Why our own: Python's standard library has no such checker, and `make check` installs no Python packages."""
import json
import os
import re

try:
    import jsonschema
except ImportError:
    jsonschema = None

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
IGNORED = {"$schema", "$id", "$comment", "title", "description", "$defs"}
# For each keyword: the type whose length it limits, and whether it is a minimum.
SIZES = {"minLength": (str, True), "maxLength": (str, False), "minItems": (list, True), "maxItems": (list, False),
         "minProperties": (dict, True), "maxProperties": (dict, False)}
TYPES = {
    "object": lambda v: isinstance(v, dict), "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str), "boolean": lambda v: isinstance(v, bool), "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}


class Mismatch(Exception):
    pass


def load(name):
    with open(os.path.join(ROOT, "schemas", f"{name}.schema.json"), encoding="utf-8") as file:
        return json.load(file)


def _need(holds, where, what):
    if not holds:
        raise Mismatch(f"{where or 'the whole'}: {what}")


def _same(a, b):
    return type(a) is type(b) and a == b


def _object(schema, value, where, root):
    known = schema.get("properties", {})
    for key in schema.get("required", []):
        _need(key in value, where, f"lacks {key}")
    for key, member in value.items():
        if key in known:
            check_value(known[key], member, f"{where}.{key}", root)
        else:
            others = schema.get("additionalProperties", True)
            if isinstance(others, dict):
                check_value(others, member, f"{where}.{key}", root)
            else:
                _need(others, where, f"has an unknown member {key}")
        if "propertyNames" in schema:
            check_value(schema["propertyNames"], key, f"{where}.{key}", root)


def _fits(schema, value, where, root=None):
    try:
        check_value(schema, value, where, root)
        return True
    except Mismatch:
        return False


def check_value(schema, value, where="", root=None):
    """Checks a value. root: the whole schema, to which $ref refers."""
    root = root or schema
    number = TYPES["number"](value)
    for keyword, rule in schema.items():
        if keyword in IGNORED:
            continue
        if keyword == "type":
            names = rule if isinstance(rule, list) else [rule]
            _need(any(TYPES[name](value) for name in names), where, f"{value!r} is no {' or '.join(names)}")
        elif keyword == "const":
            _need(_same(value, rule), where, f"{value!r} is not {rule!r}")
        elif keyword == "enum":
            _need(any(_same(value, one) for one in rule), where, f"{value!r} is none of {rule}")
        elif keyword == "pattern":
            _need(not isinstance(value, str) or re.search(rule, value), where, f"{value!r} does not match {rule}")
        elif keyword == "minimum":
            _need(not number or value >= rule, where, f"{value!r} is below {rule}")
        elif keyword == "exclusiveMinimum":
            _need(not number or value > rule, where, f"{value!r} is not above {rule}")
        elif keyword == "maximum":
            _need(not number or value <= rule, where, f"{value!r} is above {rule}")
        elif keyword == "items":
            for i, item in enumerate(value if isinstance(value, list) else []):
                check_value(rule, item, f"{where}[{i}]", root)
        elif keyword == "oneOf":
            _need(sum(_fits(one, value, where, root) for one in rule) == 1, where, "does not fit exactly one form")
        elif keyword == "anyOf":
            _need(any(_fits(one, value, where, root) for one in rule), where, f"{value!r} fits no form")
        elif keyword == "$ref":
            _need(rule.startswith("#/$defs/"), where, f"the checker does not follow {rule}")
            check_value(root["$defs"][rule[len("#/$defs/"):]], value, where, root)
        elif keyword in SIZES:
            kind, least = SIZES[keyword]
            _need(not isinstance(value, kind) or (len(value) >= rule if least else len(value) <= rule), where,
                  f"{value!r}: {keyword} is {rule}")
        elif keyword in ("properties", "required", "additionalProperties", "propertyNames"):
            pass  # below, together
        else:
            raise AssertionError(f"{where}: the checker does not know the keyword {keyword}")
    if isinstance(value, dict):
        _object(schema, value, where, root)


def check(name, value):
    """Raises Mismatch unless the value fits schemas/NAME.schema.json."""
    schema = load(name)
    try:
        check_value(schema, value)
        wrong = None
    except Mismatch as mismatch:
        wrong = mismatch
    if jsonschema:
        fits = jsonschema.Draft202012Validator(schema).is_valid(value)
        if fits != (wrong is None):
            raise AssertionError(f"{name}: jsonschema says {fits}, the checker says {wrong}")
    if wrong:
        raise Mismatch(f"{name}: {wrong}")
