"""The descriptor table of a library and its handlers, as readable C."""

from __future__ import annotations

from collections.abc import Sequence

from jaxc.declare.types import INTEGERS
from jaxc.description import (
    STRING,
    Bound,
    Code,
    Description,
    Dim,
    Parameter,
    Role,
)

#: The unit that is the same in every library.
DRIVER = """\
/* The driver of a jaxc library: <jaxc/batch.h>, compiled once for all libraries. */
#include <jaxc/batch.h>

jaxc_abi_error *jaxci_handle(jaxc_abi_call_frame *frame, const jaxc_function *function);
jaxc_abi_error *jaxci_handle(jaxc_abi_call_frame *frame, const jaxc_function *function) {
  return jaxc_batch_handle(frame, function);
}
"""

_DTYPES = {
    "_Bool": "JAXC_PRED",
    "float": "JAXC_F32",
    "double": "JAXC_F64",
    "float _Complex": "JAXC_C64",
    "double _Complex": "JAXC_C128",
    "_Float16": "JAXC_F16",
    "jaxc_bf16": "JAXC_BF16",
    "jaxc_f8e4m3fn": "JAXC_F8E4M3FN",
    "jaxc_f8e5m2": "JAXC_F8E5M2",
}


def table(name: str, hash_: str, version: str, descriptions: Sequence[Description]) -> str:
    """C text that defines ``jaxc_library_table`` and a handler for each function.

    Args:
      name: of the library.
      hash_: of its source, in hexadecimal.
      version: of jaxc.
    """
    serial = any(d.serial for d in descriptions if d.refusal is None)
    parts = [
        f"/* Table and handlers of the library {_comment(name)}, written by jaxc {version}. */",
        "#include <jaxc/library.h>",
        *(["#include <jaxc/lock.h>"] if serial else []),
        "",
        "jaxc_abi_error *jaxci_handle(jaxc_abi_call_frame *frame,",
        "                             const jaxc_function *function);",
    ]
    for description in descriptions:
        parts.extend(_function(description))
    if descriptions:
        names = ", ".join(f"&k_{d.name}_function" for d in descriptions)
        parts.append(f"\nstatic const jaxc_function *const functions[] = {{{names}}};")
    parts.extend(
        [
            "",
            "JAXC_EXPORT extern const jaxc_library jaxc_library_table;",
            "const jaxc_library jaxc_library_table = {",
            "    .struct_size = sizeof(jaxc_library),",
            "    .abi_version = JAXC_LIBRARY_ABI,",
            f"    .function_count = {len(descriptions)},",
            f"    .jaxc_version = {_string(version)},",
            f"    .name = {_string(name)},",
            f"    .hash = {_string(hash_)},",
            f"    .functions = {'functions' if descriptions else 'NULL'},",
            "};",
            "",
        ]
    )
    return "\n".join(parts)


def _comment(text: str) -> str:
    return text.replace("*/", "* /")


def _string(text: str | None) -> str:
    if text is None:
        return "NULL"
    escaped = []
    for byte in text.encode("utf-8", "surrogateescape"):
        char = chr(byte)
        if char in '"\\?':
            escaped.append("\\" + char)
        elif 32 <= byte < 127:
            escaped.append(char)
        else:
            escaped.append(f"\\{byte:03o}")
    return '"' + "".join(escaped) + '"'


def _function(d: Description) -> list[str]:
    head = ["", f"/* {_comment(d.prototype)} */"]
    if d.refusal is not None:
        return [*head, *_descriptor(d, [f"    .refusal = {_string(d.refusal)},"])]
    out = [*head, f"jaxc_rows jaxci_rows_{d.name};"]
    bounds = [bound for parameter in d.parameters for bound in parameter.bounds]
    out.extend(_bounds(d, bounds))
    first = 0
    rows = []
    for parameter in d.parameters:
        rows.append("    " + _parameter(d, parameter, first) + ",")
        first += parameter.rank
    fields = [f"    .parameter_count = {len(d.parameters)},"]
    if rows:
        out.extend([f"static const jaxc_parameter k_{d.name}_parameters[] = {{", *rows, "};"])
        fields.append(f"    .parameters = k_{d.name}_parameters,")
    if d.dims:
        out.append(f"static const jaxc_dim k_{d.name}_dims[] = {{")
        out.extend(f"    {_dim(dim)}," for dim in d.dims)
        out.append("};")
        fields.append(f"    .dim_count = {len(d.dims)},")
        fields.append(f"    .dims = k_{d.name}_dims,")
    if d.solve:
        steps = ", ".join(f"{{{dim}, {k}, {axis}}}" for dim, k, axis in d.solve)
        out.append(f"static const jaxc_solve_step k_{d.name}_solve[] = {{{steps}}};")
        fields.append(f"    .solve_count = {len(d.solve)},")
        fields.append(f"    .solve = k_{d.name}_solve,")
    arguments, results, attributes = d.counts
    fields.append(f"    .argument_count = {arguments},")
    fields.append(f"    .result_count = {results},")
    fields.append(f"    .attribute_count = {attributes},")
    fields.append(f"    .rows = jaxci_rows_{d.name},")
    if d.serial:
        fields.append(f"    .lock = k_{d.name}_lock,")
    if d.with_role(Role.DATA):  # the process gives it a handler with an address
        return [*out, *_lock(d), *_descriptor(d, fields)]
    fields.append("    .entry_count = 1,")
    fields.append(f"    .entries = k_{d.name}_entries,")
    out.extend(_handler(d))
    return [*out, *_descriptor(d, fields)]


def _bounds(d: Description, bounds: list[Bound]) -> list[str]:
    if not bounds:
        return []
    steps = [step for bound in bounds for step in bound.steps]
    out = [f"static const jaxc_bound_step k_{d.name}_steps[] = {{"]
    out.extend(f"    {{JAXC_BOUND_{Code(code).name}, {arg}}}," for code, arg in steps)
    out.extend(["};", f"static const jaxc_bound k_{d.name}_bounds[] = {{"])
    first = 0
    for bound in bounds:
        count = len(bound.steps)
        out.append(
            f"    {{{_string(bound.text)}, k_{d.name}_steps + {first}, {count}, "
            f"{-1 if bound.dim is None else bound.dim}}},"
        )
        first += count
    return [*out, "};"]


def _parameter(d: Description, parameter: Parameter, first: int) -> str:
    if not parameter.ctype or parameter.role == Role.DIM:
        dtype = "JAXC_DTYPE_INVALID"
    elif parameter.dtype == STRING:
        dtype = "JAXC_STRING"
    elif parameter.ctype in INTEGERS:
        dtype = f"JAXC_INTEGER_DTYPE({parameter.ctype})"
    else:
        dtype = _DTYPES[parameter.ctype]
    bounds = f"k_{d.name}_bounds + {first}" if parameter.rank else "NULL"
    return (
        f"{{{_string(parameter.name)}, {_string(parameter.declaration)}, "
        f"JAXC_ROLE_{parameter.role.name}, {dtype}, {parameter.rank}, {parameter.dim}, "
        f"{bounds}, {_flags(parameter)}}}"
    )


def _flags(parameter: Parameter) -> int:
    marks = (parameter.nondifferentiable, parameter.linear, parameter.zero)
    return sum(int(is_set) << bit for bit, is_set in enumerate(marks))


def _dim(dim: Dim) -> str:
    return (
        f"{{{_string(dim.name)}, JAXC_INTEGER_MINIMUM({dim.ctype}), "
        f"JAXC_INTEGER_MAXIMUM({dim.ctype}), {int(dim.is_static)}}}"
    )


def _lock(d: Description) -> list[str]:
    if not d.serial:
        return []
    return [
        f"static void k_{d.name}_lock(int take) {{",
        "  if (take) {",
        "    jaxc_lock_acquire();",
        "  } else {",
        "    jaxc_lock_release();",
        "  }",
        "}",
    ]


def _handler(d: Description) -> list[str]:
    call = f"jaxci_handle(frame, &k_{d.name}_function)"
    body = [f"  return {call};"]
    if d.serial:
        body = [
            "  jaxc_abi_error *error;",
            "  jaxc_lock_acquire();",
            f"  error = {call};",
            "  jaxc_lock_release();",
            "  return error;",
        ]
    return [
        *_lock(d),
        f"static const jaxc_function k_{d.name}_function;",
        f"JAXC_EXPORT jaxc_abi_error *jaxc_call_{d.name}(jaxc_abi_call_frame *frame);",
        f"jaxc_abi_error *jaxc_call_{d.name}(jaxc_abi_call_frame *frame) {{",
        *body,
        "}",
        f'static const jaxc_entry k_{d.name}_entries[] = {{{{"cpu", jaxc_call_{d.name}}}}};',
    ]


def _descriptor(d: Description, fields: list[str]) -> list[str]:
    flags = [
        name
        for name, is_set in (
            ("JAXC_FUNCTION_SERIAL", d.serial),
            ("JAXC_FUNCTION_EFFECT", d.effect),
            ("JAXC_FUNCTION_ZERO", any(p.zero for p in d.parameters)),
        )
        if is_set
    ]
    return [
        f"static const jaxc_function k_{d.name}_function = {{",
        "    .struct_size = sizeof(jaxc_function),",
        f"    .name = {_string(d.name)},",
        f"    .overload = {_string(d.overload)},",
        f"    .prototype = {_string(d.prototype)},",
        f"    .doc = {_string(d.doc)},",
        f"    .file = {_string(d.file)},",
        f"    .line = {d.line},",
        f"    .flags = {' | '.join(flags) or '0'},",
        *fields,
        "};",
    ]
