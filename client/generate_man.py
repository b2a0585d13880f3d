#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""usage: generate_man.py FOLDER

Write the manual pages of the client library, in section 3, from the comments of client/gpushare.h: gpushare(3) and a page for
each function. A function without a comment of its own stands on the page of the one before it, and so does one whose comment
begins with "The same"; its own name is then a file that leads there."""
import collections
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The date of all pages is the one of the page for the environment.
DATED = os.path.join(HERE, "../docs/man/gpushare.7")
LICENCE = '.\\" SPDX-License-Identifier: Apache-2.0\n.\\" SPDX-FileCopyrightText: The gpushare authors\n'
MADE = '.\\" Made by client/generate_man.py from client/gpushare.h; do not edit.\n'
Function = collections.namedtuple("Function", "name result parameters")
Page = collections.namedtuple("Page", "functions comments section constants")
# What the page of each function is about: the line that apropos(1) and whatis(1) show.
ABOUT = {
    "gpushare_version": "the version of the library, as a number",
    "gpushare_version_text": "the version of the library, as text",
    "gpushare_error_name": "the name of an error number",
    "gpushare_error_string": "the meaning of an error number",
    "gpushare_error_text": "why the latest failed call of this thread failed",
    "gpushare_connect": "become a client of a GPU",
    "gpushare_close": "close a connection, and free all that was made on it",
    "gpushare_connection_error": "the error that ended a connection",
    "gpushare_connection_state": "whether a connection serves, recovers or has ended",
    "gpushare_limits": "the limits that were asked for, and those that were granted",
    "gpushare_load_wait": "for whom a module load waits",
    "gpushare_device_count": "how many GPUs this process can see",
    "gpushare_device_query": "describe a GPU without becoming its client",
    "gpushare_device": "describe the GPU of a connection",
    "gpushare_memory_alloc": "allocate device memory",
    "gpushare_memory_free": "free device memory",
    "gpushare_memory_info": "the limits of a client's memory, and how much of them it uses",
    "gpushare_host_alloc": "allocate host memory that the GPU can use",
    "gpushare_host_free": "free host memory that the GPU can use",
    "gpushare_module_load": "load PTX, a cubin or a fatbin",
    "gpushare_module_load_file": "load PTX, a cubin or a fatbin from a file",
    "gpushare_module_unload": "unload a module",
    "gpushare_module_function": "find a kernel by its name",
    "gpushare_module_variable": "find a variable of a module by its name",
    "gpushare_function_info": "the attributes of a kernel",
    "gpushare_function_parameter": "where a parameter of a kernel lies in the parameter block",
    "gpushare_function_set_shared": "set how much shared memory launches of a kernel may ask for",
    "gpushare_occupancy": "how many blocks of a kernel one multiprocessor can hold",
    "gpushare_stream_create": "make a stream",
    "gpushare_stream_destroy": "destroy a stream",
    "gpushare_stream_priority": "the priority that a stream was granted",
    "gpushare_stream_synchronize": "wait for the work of a stream",
    "gpushare_stream_query": "whether the work of a stream is done",
    "gpushare_stream_wait_event": "have a stream wait for an event",
    "gpushare_synchronize": "wait for all work of a connection",
    "gpushare_stream_recover": "let an interrupted stream go on",
    "gpushare_launch": "launch a kernel",
    "gpushare_copy_to_device": "copy from host memory to device memory",
    "gpushare_copy_from_device": "copy from device memory to host memory",
    "gpushare_copy": "copy in any direction, found from the addresses",
    "gpushare_copy_peer": "copy device memory of one connection to that of another",
    "gpushare_fill": "fill device memory with a value",
    "gpushare_event_create": "make an event",
    "gpushare_event_destroy": "destroy an event",
    "gpushare_event_record": "have an event stand for the work of a stream",
    "gpushare_event_query": "whether the work that an event stands for is done",
    "gpushare_event_synchronize": "wait for the work that an event stands for",
    "gpushare_event_elapsed": "the device's time between two events",
}

ITEM = re.compile(r"( +)(\S+(?:,? \S+)*?)  +(\S.*)$")
PUNCTUATION = re.compile(r"([(\[]?)(.*?)((?:'s)?[)\].,:;?!]*)$")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# ---- reading the header -------------------------------------------------------------------------------
def lines_of(comment):
    """The lines of a comment without its frame."""
    found = []
    for line in comment.strip()[2:-2].split("\n"):
        line = re.sub(r"^ ?\* ?", "", line.rstrip()) if found else line.strip()
        found.append(line.rstrip())
    while found and not found[0]:
        del found[0]
    while found and not found[-1]:
        del found[-1]
    return found


def read_errors(text):
    """{enumerator: meaning} of gpushare_error.h."""
    return collections.OrderedDict((name, meaning.strip()) for name, meaning in re.findall(r"(GPUSHARE_ERROR_\w+) = \d+,?\s*/\*(.*?)\*/", text))


def read_types(text):
    """{name: source text} of the structs, enums and function types, with the comment before each."""
    found = collections.OrderedDict()
    comment = r"((?:/\*(?:(?!\*/).)*\*/\n)?)"
    for before, kind, name, body in re.findall(comment + r"(struct|enum) (\w+) \{\n(.*?)\n\};", text, re.S):
        found[f"{kind} {name}"] = f"{before if '----' not in before else ''}{kind} {name} {{\n{body}\n}};"
    for before, source, name in re.findall(comment + r"(typedef [^;]*?\(\*(\w+)\)[^;]*;)", text, re.S):
        found[name] = before + source
    return found


def read_function(statement):
    result, name, parameters = re.fullmatch(r"GPUSHARE_API (.*?)(\w+)\((.*)\);", " ".join(statement.split())).groups()
    return Function(name, result.strip(), [] if parameters == "void" else [part.strip() for part in parameters.split(",")])


def read_pages(text):
    """The pages in the header's order."""
    pages, section, shared, constants, comment = [], "", [], [], None
    text = text[text.index("#define GPUSHARE_API"):]
    for part in re.findall(r"/\*.*?\*/|GPUSHARE_API [^;{]*?;|(?:struct|enum) \w+ \{.*?\};|^#define.*?$|typedef [^;]*;", text, re.S | re.M):
        begun = bool(pages) and pages[-1].section == section
        if part.startswith("/* ----"):
            section, shared, comment = part.strip("/*- "), [], None
        elif part.startswith("/*"):
            if comment and not begun:
                shared.append(comment)  # what another comment follows is about the section
            comment = lines_of(part)
        elif part.startswith("GPUSHARE_API"):
            function = read_function(part)
            if begun and (comment is None or comment[0].startswith("The same")):
                pages[-1].functions.append(function)
                pages[-1].comments.extend([comment] if comment else [])
            else:
                pages.append(Page([function], [comment or []] + shared, section, constants))
                constants = []
            comment = None
        elif part.startswith("#define GPUSHARE_STREAM_PER_THREAD"):
            shared.append(comment)  # it says of every call which streams it takes
            comment = None
        elif part.startswith("#define") and comment and section != "versions":
            constants.append(f"/* {' '.join(comment)} */\n{part}")
            comment = None
        else:
            comment = None
    return pages


# ---- writing mdoc -------------------------------------------------------------------------------------
def macro_of(word, names):
    """The macro and its argument for a word that has a meaning, or None."""
    function = re.fullmatch(r"(gpushare_\w+)(?:\(\))?", word)
    if function and function[1] in names["functions"]:
        return None if function[1] in names["here"] and not word.endswith(")") else f"Xr {names['functions'][function[1]]} 3" \
            if function[1] not in names["here"] else f"Fn {function[1]}"
    if f"GPUSHARE_ERROR_{word}" in names["errors"]:
        return f"Er GPUSHARE_ERROR_{word}"
    if word in names["errors"]:
        return f"Er {word}"
    if re.fullmatch(r"\$?(GPUSHARE|CUDA)_[A-Z_]+", word) and word.lstrip("$") in names["variables"]:
        return "Ev " + word.lstrip("$")
    pointer = re.fullmatch(r"\*(\w+)", word)
    if pointer and pointer[1] in names["parameters"]:
        return f"Fa *{pointer[1]}"
    return None


def escaped(text):
    text = text.replace("\\", "\\e")
    return "\\&" + text if text[:1] in (".", "'") else text


def filled(text, names):
    """Lines of mdoc for a paragraph: each sentence begins a line, and words with a meaning have their macro."""
    lines, line = [], []

    def end():
        if line:
            lines.append(escaped(" ".join(line)))
            line.clear()

    for word in text.split():
        before, core, after = PUNCTUATION.match(word).groups()
        macro = macro_of(core, names) if "'" not in after and line[-1:] != ["struct"] else None
        if macro:
            end()
            name, *arguments = macro.split(" ")
            lines.append(" ".join([f".{name}"] + ([before] if before else []) + arguments + list(after)))
        else:
            line.append(word)
            if re.search(r"[\w)\"'][.?!]\)?$", word):
                end()
    end()
    return lines


def described(lines, names):
    """A comment's lines as mdoc: paragraphs, and lists of terms where lines are indented and have a gap."""
    out, paragraph, item = [], [], None

    def end_paragraph():
        if paragraph:
            out.extend(filled(" ".join(paragraph), names))
            paragraph.clear()

    def end_list():
        nonlocal item
        end_paragraph()
        if item is not None:
            out.extend([".El", ".Pp"])
            item = None

    for line in lines + [""]:
        found = ITEM.match(line)
        indent = len(line) - len(line.lstrip())
        if not line:
            end_paragraph()
            if item is None and out and out[-1] != ".Pp":
                out.append(".Pp")
        elif found and indent >= 2 and (item is None or indent <= item):
            end_paragraph()
            if item is None:
                if out and out[-1] == ".Pp":
                    out.pop()
                out.append(".Bl -tag -width Ds")
                item = indent
            out.append(".It " + escaped(found[2]))
            paragraph.append(found[3])
        elif item is not None and indent <= item:
            end_list()
            paragraph.append(line.strip())
        else:
            paragraph.append(line.strip())
    end_list()
    while out and out[-1] == ".Pp":
        out.pop()
    return out


def literal(text):
    return [".Bd -literal -offset indent"] + [escaped(line) for line in text.split("\n")] + [".Ed"]


def frame(name, section, date):
    return [f".Dd {date}", f".Dt {name.upper()} {section}", ".Os", ".Sh NAME"]


def about(page):
    name = page.functions[0].name
    if name not in ABOUT:
        sys.exit(f"client/generate_man.py: {name} has no line in ABOUT: write what it does there")
    return ABOUT[name]


def types_used(page, types):
    """The types that the page's functions take, and those that these have in turn."""
    waiting = [part for function in page.functions for part in function.parameters + [function.result]]
    found = []
    while waiting:
        part = waiting.pop(0)
        for name, source in types.items():
            if name not in found and name not in ("enum gpushare_error",) and re.search(r"\b%s\b" % re.escape(name), part):
                found.append(name)
                waiting.append(source)
    return [name for name in types if name in found]


def errors_of(page, errors):
    text = " ".join(" ".join(comment) for comment in page.comments)
    return [name for name in errors if re.search(r"\b(?:%s|%s)\b" % (name, name[len("GPUSHARE_ERROR_"):]), text)]


def synopsis(functions):
    out = [".Sh LIBRARY", "The gpushare client library, libgpushare-client (pkg-config gpushare-client)", ".Sh SYNOPSIS", ".In gpushare.h"]
    for function in functions:
        out += [f".Ft {function.result}", f".Fo {function.name}"] + [f'.Fa "{part}"' for part in function.parameters or ["void"]] + [".Fc"]
    return out


def page_of(page, pages, header):
    types, errors = header["types"], header["errors"]
    names = dict(header["names"], here={function.name for function in page.functions},
                 parameters={re.findall(r"\w+", part)[-1] for function in page.functions for part in function.parameters})
    out = frame(page.functions[0].name, 3, header["date"])
    out += [f".Nm {function.name}{' ,' if function is not page.functions[-1] else ''}" for function in page.functions]
    out += [".Nd " + escaped(about(page))] + synopsis(page.functions) + [".Sh DESCRIPTION"]
    for at, comment in enumerate(page.comments):
        out += ([".Pp"] if at else []) + described(comment, names)
    declared = page.constants + [types[name] for name in types_used(page, types)]
    if declared:
        out += [".Sh TYPES AND CONSTANTS"] + literal("\n\n".join(declared))
    out += [".Sh RETURN VALUES"]
    if page.functions[0].result == "gpushare_error":
        out += [".Dv GPUSHARE_SUCCESS ,", "or the number of an error;", ".Xr gpushare_error_text 3", "then says what went wrong.", ".Sh ERRORS",
                "What", ".Xr gpushare 3", "says of every call holds here too." ]
        named = errors_of(page, errors)
        if named:
            out += ["This page speaks of these:", ".Bl -tag -width Ds"]
            for name in named:
                out += [f".It Bq Er {name}", escaped(errors[name][:1].upper() + errors[name][1:] + ".")]
            out += [".El"]
    elif page.functions[0].result == "void":
        out += ["None."]
    else:
        out += ["As described above; the call can't fail."]
    others = sorted({other.functions[0].name for other in pages if other.section == page.section and other is not page})
    out += [".Sh SEE ALSO", ".Xr gpushare 3" + (" ," if others else "")]
    out += [f".Xr {name} 3{' ,' if name != others[-1] else ''}" for name in others]
    return out


def overview(pages, header, top):
    """gpushare(3): the header's first comment, all functions by subject, and all errors."""
    names = dict(header["names"], here=set(), parameters=set())
    start = next(at for at, line in enumerate(top) if line.startswith("    "))
    end = next(at for at, line in enumerate(top) if at > start and line and not line.startswith("    "))
    out = frame("gpushare", 3, header["date"])
    out += [".Nm gpushare", ".Nd run kernels on an NVIDIA GPU that many processes share"]
    out += [".Sh LIBRARY", "The gpushare client library, libgpushare-client (pkg-config gpushare-client)", ".Sh SYNOPSIS", ".In gpushare.h", ".Sh DESCRIPTION"]
    out += described(top[top.index("") + 1:start], names)
    out += literal("\n".join(line[4:] for line in top[start:end - 1]))
    rules = top[end + 1:]
    last = max(at for at, line in enumerate(rules) if line.startswith("  "))
    out += [".Ss What holds for every call"] + described(rules[:last + 1], names) + [".Pp"] + described(rules[last + 2:], names)
    out += [".Sh FUNCTIONS"]
    for section in list(collections.OrderedDict.fromkeys(page.section for page in pages)):
        out += [f".Ss {section[:1].upper() + section[1:]}", ".Bl -tag -width Ds"]
        for page in pages:
            if page.section == section:
                for function in page.functions:
                    out += [f".It Xr {function.name} 3"]
                    out += [escaped(about(page))] if function is page.functions[0] else ["On the page of", f".Xr {page.functions[0].name} 3 ."]
        out += [".El"]
    out += [".Sh ENVIRONMENT", ".Xr gpushare 7", "lists the variables that", ".Xr gpushare_connect 3", "reads.", ".Sh ERRORS", ".Bl -tag -width Ds"]
    for name, meaning in header["errors"].items():
        out += [f".It Bq Er {name}", escaped(meaning[:1].upper() + meaning[1:] + ".")]
    out += [".El", ".Sh SEE ALSO", ".Xr gpushare 1 ,", ".Xr gpushare 7"]
    return out


def all_pages():
    """{file name: text} of the pages."""
    text = text_of(os.path.join(HERE, "gpushare.h"))
    top = lines_of(re.findall(r"/\*.*?\*/", text, re.S)[2])
    pages = read_pages(text)
    header = {
        "types": read_types(text), "errors": read_errors(text_of(os.path.join(HERE, "gpushare_error.h"))),
        "date": re.search(r"^\.Dd (.*)$", text_of(DATED), re.M)[1],
    }
    header["names"] = {"functions": {function.name: page.functions[0].name for page in pages for function in page.functions},
                       "errors": header["errors"], "variables": set(re.findall(r"\b(?:GPUSHARE|CUDA)_[A-Z_]+[A-Z]\b", text))}
    found = {"gpushare.3": LICENCE + MADE + "\n".join(overview(pages, header, top)) + "\n"}
    for page in pages:
        first = page.functions[0].name
        found[first + ".3"] = LICENCE + MADE + "\n".join(page_of(page, pages, header)) + "\n"
        for function in page.functions[1:]:
            found[function.name + ".3"] = f".so man3/{first}.3\n"
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n", 1)[0])
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, text in all_pages().items():
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
