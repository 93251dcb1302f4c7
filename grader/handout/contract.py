"""What a stub promises: its public names, signatures and docstrings, read by ast and never imported."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    """A public function, class or annotated value of a module.

    signature: the source up to the colon, decorators included; of a value, its name and annotation.
    docstring: cleaned of its indentation; "" where there is none.
    members:   of a class, its attributes and its methods that are public or `__init__`, in order.
    """

    name: str
    kind: str  # function, class or value
    signature: str
    docstring: str
    members: tuple[Definition, ...] = ()


@dataclass(frozen=True)
class Contract:
    """A module's docstring and its public definitions in order."""

    docstring: str
    definitions: tuple[Definition, ...]

    def names(self) -> set[str]:
        """Every public name: of functions, classes and values, and of members as CLASS.NAME."""
        members = {f"{each.name}.{member.name}" for each in self.definitions for member in each.members}
        return members | {each.name for each in self.definitions}


def read_contract(stub: str) -> Contract:
    """The contract of a module, from its stub's source (so that no solution can be part of it). Pure."""
    tree = ast.parse(stub)
    return Contract(ast.get_docstring(tree) or "", tuple(_definitions(tree.body, stub.split("\n"))))


def is_public(name: str) -> bool:
    """Whether students and checks may call it by this name."""
    return not name.startswith("_") or name == "__init__"


def _definitions(body: Sequence[ast.stmt], lines: list[str]) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_public(node.name):
            yield Definition(node.name, "function", _signature(node, lines), ast.get_docstring(node) or "")
        elif isinstance(node, ast.ClassDef) and is_public(node.name):
            members = tuple(_definitions(node.body, lines))
            yield Definition(node.name, "class", _signature(node, lines), ast.get_docstring(node) or "", members)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_public(node.target.id):
            annotation = f"{node.target.id}: {ast.unparse(node.annotation)}"
            yield Definition(node.target.id, "value", annotation, "")


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: list[str]) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    last = node.body[0].lineno
    head = lines[first - 1 : last - 1] or [lines[first - 1].rpartition(":")[0] + ":"]
    return textwrap.dedent("\n".join(head)).strip()
