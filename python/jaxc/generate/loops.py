"""The row loop of each function, in C that needs no header and no macro."""

from __future__ import annotations

from collections.abc import Sequence

from jaxc.description import OPERANDS, RESULTS, Description, Parameter, Result, Role
from jaxc.generate import points

_FAULT = "struct jaxci_fault { long long row; long long status; const char *text; };"
_ARGUMENTS = (
    "const long long *jaxci_dims, char *const *jaxci_data,\n"
    "    const long long *jaxci_strides, long long jaxci_count,\n"
    "    struct jaxci_fault *jaxci_fault"
)
#: Most operands for which every pattern of moving and shared operands gets its own loop.
_MAX_PATTERN_OPERANDS = 2


def loops(descriptions: Sequence[Description], *, is_bound: bool = False) -> str:
    """C text to stand behind the user's own: a ``jaxc_rows`` for each function.

    Args:
      is_bound: the functions are in another library, called through ``jaxci_at_<name>``,
        which ``bound`` fills. A function with a parameter of Role.DATA is called at the
        address that is there.

    All its names begin with ``jaxci_`` so that none can hide one of the user's; those of
    parameters with ``jaxci_p_`` (first row), ``jaxci_s_`` (bytes from row to row),
    ``jaxci_d_`` (dimension), ``jaxci_e_`` (as a plain array of elements, or one element),
    ``jaxci_i_`` (index of a grid) and ``jaxci_n_`` (its range).
    """
    callable_ = [d for d in descriptions if d.refusal is None]
    if not callable_:
        return ""
    return "\n".join([_FAULT, *(_function(d, is_bound) for d in callable_)])


_BOUND = """\
/* Where the functions are that this library is bound to, and is linked with. They are looked
 * up here and not by the loader, which would prefer one of the same name that is in the
 * program or in its C library. */
#define _GNU_SOURCE
#include <dlfcn.h>

%s
static const struct place {
  const char *name;
  void **at;
} places[] = {
%s};

__attribute__((constructor)) static void find(void) {
  void *self;
  unsigned i;
  Dl_info info;
  if (dladdr((const void *)places, &info) == 0) return;
  self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (self == 0) return;
  for (i = 0; i < sizeof places / sizeof *places; i++) {
    *places[i].at = dlsym(self, places[i].name);
  }
  dlclose(self);
}
"""


def bound(descriptions: Sequence[Description]) -> str:
    """C text of a unit that finds the functions of bound libraries when it is loaded."""
    names = [d.name for d in descriptions if d.refusal is None]
    if not names:
        return ""
    places = "".join(f'    {{"{name}", &jaxci_at_{name}}},\n' for name in names)
    return _BOUND % ("\n".join(f"extern void *jaxci_at_{name};" for name in names), places)


def _function(description: Description, is_bound: bool) -> str:
    name = f"jaxci_rows_{description.name}"
    callee = description.name
    place = f"jaxci_at_{description.name}" if is_bound else ""
    if description.with_role(Role.DATA):
        place = "jaxci_data[0]"
    head, elementwise = [], _elementwise(description)
    if place:
        # Its type is that of the declaration, so that arguments convert as in any call.
        kind = f"__typeof__(&{callee})"
        callee, elementwise = "jaxci_callee", []
        head = [f"  const {kind} {callee} = ({kind}){place};"]
    if is_bound:
        head += [
            f"  if ({callee} == 0) {{",
            "    jaxci_fault->row = 0;",
            f'    jaxci_fault->text = "the libraries that it is bound to lack '
            f"'{description.name}'\";",
            "    return 1;",
            "  }",
        ]
    lines = [
        "",
        *([f"void *{place};"] if is_bound else []),
        f"/* {description.prototype.replace('*/', '* /')} */",
        *(
            f'_Static_assert(({enumerator}) == {value}, "{enumerator}");'
            for enumerator, value in description.checks
        ),
        *(_grid_function(description, callee) if description.indices else ()),
        f"int {name}({_ARGUMENTS});",
        f"int {name}({_ARGUMENTS}) {{",
        "  long long jaxci_row;",
        *_locals(description),
        *head,
        *elementwise,
        "  for (jaxci_row = 0; jaxci_row < jaxci_count; jaxci_row++) {",
        *(_points if description.indices else _call)(description, callee),
        "  }",
        "  return 0;",
        "}",
    ]
    return "\n".join(lines)


def _locals(description: Description) -> list[str]:
    """Each dimension in its own C type, and pointer and step of each parameter."""
    out = [] if description.indices else _dims(description)
    for position, parameter in enumerate(description.parameters):
        if parameter.role in (Role.DIM, Role.DATA, Role.INDEX):
            continue
        out.append(f"  char *const jaxci_p_{parameter.name} = jaxci_data[{position}];")
        if parameter.role in OPERANDS + RESULTS:
            out.append(
                f"  const long long jaxci_s_{parameter.name} = jaxci_strides[{position}];"
            )
    unused = [name for name, used in (("dims", description.dims),) if not used]
    if description.indices:
        out.extend(points.range_(description))
        unused.clear()
    unused += [] if any(p.role != Role.DIM for p in description.parameters) else ["data"]
    if not any(p.role in OPERANDS + RESULTS for p in description.parameters):
        unused.append("strides")
    if description.result not in (Result.STATUS, Result.TEXT):
        unused.append("fault")
    out.extend(f"  (void)jaxci_{name};" for name in unused)
    return out


def _dims(description: Description) -> list[str]:
    return [
        f"  const {dim.ctype} jaxci_d_{dim.name} = ({dim.ctype})jaxci_dims[{number}];"
        for number, dim in enumerate(description.dims)
    ]


def _at_row(parameter: Parameter) -> str:
    if parameter.role in OPERANDS + RESULTS:
        return f"jaxci_p_{parameter.name} + jaxci_row * jaxci_s_{parameter.name}"
    return f"jaxci_p_{parameter.name}"


def _is_value(parameter: Parameter) -> bool:
    """Whether the C parameter takes a number, not a pointer."""
    by_pointer = "*" in parameter.declaration or "[" in parameter.declaration
    return parameter.role in (Role.INPUT, Role.STATIC) and not (
        parameter.rank > 0 or by_pointer
    )


def _argument(parameter: Parameter) -> str:
    if parameter.role == Role.DIM:
        return f"jaxci_d_{parameter.name}"
    if parameter.role == Role.STATIC and "*" in parameter.declaration:
        return f"*(const char *const *)({_at_row(parameter)})"
    if _is_value(parameter):
        return f"*(const {parameter.ctype} *)({_at_row(parameter)})"
    return f"(void *)({_at_row(parameter)})"


def _grid(description: Description) -> list[tuple[str, str, str]]:
    """What a grid's function takes of a row: C type, name of the parameter, and value."""
    out = []
    for parameter in description.parameters:
        if parameter.role in (Role.INDEX, Role.DIM, Role.DATA):
            continue
        kind = "void *"
        if parameter.role in RESULTS:
            kind = "void *__restrict "  # nothing else is in the memory of a result
        elif _is_value(parameter):
            kind = f"{parameter.ctype} "
        elif parameter.role == Role.STATIC:
            kind = "const char *"
        out.append((kind, parameter.name, _argument(parameter)))
    return out


def _grid_function(description: Description, callee: str) -> list[str]:
    """The loop over points apart: compilers believe __restrict of parameters only."""
    taken = "".join(f",\n    {kind}jaxci_e_{name}" for kind, name, _ in _grid(description))
    if callee != description.name:
        taken += f",\n    const __typeof__(&{description.name}) {callee}"
    arguments = []
    for parameter in description.parameters:
        if parameter.role == Role.DATA:
            continue
        prefix = {Role.INDEX: "i", Role.DIM: "d"}.get(parameter.role, "e")
        arguments.append(f"jaxci_{prefix}_{parameter.name}")
    return [
        f"__attribute__((noinline)) static void jaxci_grid_{description.name}(",
        f"    const long long *jaxci_dims, const long long *jaxci_range{taken}) {{",
        *_dims(description),
        *points.ranges(description),
        *points.loop(description, f"{callee}({', '.join(arguments)});"),
        *([] if description.dims else ["  (void)jaxci_dims;"]),
        "}",
    ]


def _points(description: Description, callee: str) -> list[str]:
    """A call for all points of a row."""
    given = "".join(f",\n        {value}" for _, _, value in _grid(description))
    if callee != description.name:
        given += f",\n        {callee}"
    return [f"    jaxci_grid_{description.name}(jaxci_dims, jaxci_range{given});"]


def _call(description: Description, callee: str) -> list[str]:
    arguments = ", ".join(
        _argument(p)
        for p in description.parameters
        if p.name != "return" and p.role != Role.DATA
    )
    call = f"{callee}({arguments});"
    if description.result is Result.VALUE:
        value = next(p for p in description.parameters if p.name == "return")
        return [f"    *({value.ctype} *)({_at_row(value)}) =\n        {call}"]
    if description.result is Result.STATUS:
        return [
            f"    const int jaxci_status = {call}",
            "    if (jaxci_status != 0) {",
            "      jaxci_fault->row = jaxci_row;",
            "      jaxci_fault->status = jaxci_status;",
            "      return 1;",
            "    }",
        ]
    if description.result is Result.TEXT:
        return [
            f"    const char *jaxci_text = {call}",
            "    if (jaxci_text != 0) {",
            "      jaxci_fault->row = jaxci_row;",
            "      jaxci_fault->text = jaxci_text;",
            "      return 1;",
            "    }",
        ]
    return [f"    {call}"]


def _elementwise(description: Description) -> list[str]:
    """For a function of numbers: loops over plain arrays, which the compiler vectorises.

    One loop for each pattern of operands that move by one element or are shared by all
    rows; other strides take the general loop below.
    """
    operands = description.with_role(*OPERANDS)
    results = description.with_role(*RESULTS)
    if (
        not all(_is_value(p) for p in operands)
        or any(p.rank > 0 or p.role == Role.INOUT for p in results)
        or description.result in (Result.STATUS, Result.TEXT)
        or description.with_role(Role.SCRATCH, Role.CONTEXT, Role.INDEX)
        or description.serial
        or description.effect
        or not operands
        or not results
    ):
        return []
    everything = (1 << len(operands)) - 1
    if len(operands) <= _MAX_PATTERN_OPERANDS:
        patterns = list(range(everything, 0, -1))
    else:
        patterns = [everything]
    out = []
    for mask in patterns:
        moving = [p for bit, p in enumerate(operands) if mask >> bit & 1]
        out.extend(_elementwise_loop(description, moving))
    return out


def _elementwise_loop(description: Description, moving: list[Parameter]) -> list[str]:
    conditions, pointers, arguments = [], [], []
    for parameter in description.parameters:
        local = f"jaxci_e_{parameter.name}"
        step = f"jaxci_s_{parameter.name}"
        if parameter.role == Role.OUTPUT:
            conditions.append(f"{step} == (long long)sizeof({parameter.ctype})")
            pointers.append(
                f"    {parameter.ctype} *__restrict {local} = (void *)jaxci_p_{parameter.name};"
            )
            argument = f"&{local}[jaxci_row]"
        elif parameter in moving:
            conditions.append(f"{step} == (long long)sizeof({parameter.ctype})")
            pointers.append(
                f"    const {parameter.ctype} *__restrict {local} = "
                f"(const void *)jaxci_p_{parameter.name};"
            )
            argument = f"{local}[jaxci_row]"
        elif parameter.role == Role.INPUT:
            conditions.append(f"{step} == 0")
            pointers.append(
                f"    const {parameter.ctype} {local} = "
                f"*(const {parameter.ctype} *)jaxci_p_{parameter.name};"
            )
            argument = local
        else:
            argument = _argument(parameter)
        if parameter.name != "return":
            arguments.append(argument)
    call = f"{description.name}({', '.join(arguments)});"
    if description.result is Result.VALUE:
        call = f"jaxci_e_return[jaxci_row] = {call}"
    return [
        f"  if ({' && '.join(conditions)}) {{",
        *pointers,
        "    for (jaxci_row = 0; jaxci_row < jaxci_count; jaxci_row++) {",
        f"      {call}",
        "    }",
        "    return 0;",
        "  }",
    ]
