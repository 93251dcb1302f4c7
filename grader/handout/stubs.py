"""assignment/*.py from reference/*.py, and what must be true of the files before students get them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.checking.spec import MODULES
from grader.checking.unwritten import unwritten_functions
from grader.handout import tags
from grader.handout.contract import is_public
from grader.handout.leaks import find_leaks, hidden_lines
from grader.handout.tags import SourceError

DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
INSTRUCTIONS = """\
To do: put your code in place of each `raise NotImplementedError(...)`. Names, arguments and docstrings stay.
To check this module, from the folder above: pytest -k test_{module}"""


def read_sources(reference: Path) -> dict[str, str]:
    """Filename -> tagged source of every module. Raises FileNotFoundError, naming it, if one is missing."""
    return {f"{module}.py": (reference / f"{module}.py").read_text(encoding="utf-8") for module in MODULES}


def build_stubs(sources: dict[str, str]) -> dict[str, str]:
    """Filename -> stub, as students get it. Pure.

    Raises SourceError where a tag is wrong (see `tags.parse`); where the module, or a public function or
    class that students see, has no docstring; where a function with a hidden part does not raise
    NotImplementedError with a sentence, or has code outside its tags; and where a line of a solution can be read in
    a stub.
    """
    stubs = {}
    hidden = hidden_lines(sources)
    for filename, source in sources.items():
        bare = tags.stub(source, filename)
        _check_contract(source, bare, filename)
        text = with_instructions(bare, filename.removesuffix(".py"))
        for leak in find_leaks(text, hidden):
            raise SourceError(leak.filename, leak.line, f"the stub of {filename} shows this line: {leak.text}")
        stubs[filename] = text
    return stubs


def with_instructions(stub: str, module: str) -> str:
    """The stub with a last paragraph in its module docstring that says what to do. Pure."""
    docstring = ast.parse(stub).body[0]
    lines = stub.split("\n")
    last = docstring.end_lineno or docstring.lineno
    opening = "\n".join(lines[:last]).removesuffix('"""').rstrip()
    return "\n".join([opening, "", *INSTRUCTIONS.format(module=module).split("\n"), '"""', *lines[last:]])


def _check_contract(source: str, stub: str, filename: str) -> None:
    tree, stub_tree = ast.parse(source), ast.parse(stub)
    if ast.get_docstring(stub_tree) is None or not _first_statement(stub).endswith('"""'):
        raise SourceError(filename, 1, 'the module begins with a docstring in """triple quotes"""')
    lines = {node.name: node.lineno for node in tree.body if isinstance(node, DEFINITIONS)}
    for node in stub_tree.body:
        if isinstance(node, DEFINITIONS) and is_public(node.name) and ast.get_docstring(node) is None:
            raise SourceError(filename, lines[node.name], f"{node.name} has no docstring that students can see")
    sentences = {name: "" for name, _ in _functions(stub_tree)}
    sentences |= {each.name: each.sentence for each in unwritten_functions(stub.encode())}
    blocks = tags.parse(source, filename)
    for name, node in _functions(tree):
        holds_block = any(node.lineno < block.begin <= (node.end_lineno or 0) for block in blocks)
        if holds_block and name in sentences and not _says_what_to_do(sentences[name]):
            message = f'the stub of {name} does not raise NotImplementedError("lower-case verb, and so on")'
            raise SourceError(filename, node.lineno, message)
        if holds_block and (line := _line_outside(node, blocks)):
            message = f"a line of {name} outside its tags: students would see it; a solution stands inside as a whole"
            raise SourceError(filename, line, message)


def _line_outside(function: ast.FunctionDef, blocks: Sequence[tags.Block]) -> int | None:
    """The first line of a function's code, its docstring apart, that no block holds; None if there is none."""
    code = function.body[1:] if ast.get_docstring(function) is not None else function.body
    for node in code:
        if not any(block.begin < node.lineno < block.end for block in blocks):
            return node.lineno
    return None


def _first_statement(stub: str) -> str:
    return ast.get_source_segment(stub, ast.parse(stub).body[0]) or ""


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function with its dotted name; those inside functions belong to their outermost one."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")


def _says_what_to_do(sentence: str) -> bool:
    return len(sentence.split()) > 1 and sentence[0].islower()
