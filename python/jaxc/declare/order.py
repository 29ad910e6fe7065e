"""Arrays before their sizes: what a C compiler would refuse, said with what to do."""

from __future__ import annotations

from pycparser import c_ast

from jaxc.declare import bounds
from jaxc.declare.errors import DeclarationError
from jaxc.declare.prototype import SIZE_FIRST, Candidate, parameters_of


def check_order(candidate: Candidate) -> None:
    """Finds arrays before their sizes, which no compiler of C takes.

    Raises:
      DeclarationError: for a bound that is a parameter to its right, and nothing else.
    """
    if candidate.node is None:
        return
    nodes = parameters_of(candidate.node.type)
    names = [getattr(node, "name", None) for node in nodes]
    for position, node in enumerate(nodes):
        later = [name for name in names[position:] if name is not None]
        inner = getattr(node, "type", None)
        while isinstance(inner, (c_ast.ArrayDecl, c_ast.PtrDecl)):
            dim = inner.dim if isinstance(inner, c_ast.ArrayDecl) else None
            inner = inner.type
            for bound in () if dim is None else bounds.names(dim):
                if bound not in later:
                    continue
                if candidate.types.is_declared(bound, candidate.item.start):
                    continue  # the name is the global one until the parameter follows
                raise _before_its_size(candidate, node, bound, nodes[names.index(bound)])


def _before_its_size(
    candidate: Candidate, node: c_ast.Node, bound: str, size: c_ast.Node
) -> DeclarationError:
    declaration, declared_size = (" ".join(bounds.text(n).split()) for n in (node, size))
    where, remedy = "the array itself", "name another one"
    if size is not node:
        where = "a parameter to its right"
        remedy = (
            f"put '{declared_size}' before '{declaration}'. The order of a library's function "
            f"is fixed: {SIZE_FIRST}"
        )
    shown = f"parameter '{node.name}' ({declaration})" if node.name else f"'{declaration}'"
    return DeclarationError(
        candidate.item.file,
        candidate.item.line,
        f"'{candidate.name}' has {shown} whose bound '{bound}' is {where}; in C a bound can "
        f"use only parameters to its left: {remedy}",
    )
