"""What the syntax of a tree says: its statements, the names it defines twice, who imports whom."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ONE_IN_EACH = {"State", "every"}
"""Names with one meaning in each file that has them: a learner's state, a folder's registry."""


class Module(NamedTuple):
    """A module by its name inside the package: "sets.base", "sets", "" for the package itself."""

    name: str
    tree: ast.Module
    is_package: bool


class Import(NamedTuple):
    """One module of the package imports another."""

    importer: str
    imported: str

    def between(self) -> tuple[str, str]:
        """The folders or modules of the first level that it joins."""
        return self.importer.partition(".")[0], self.imported.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.importer} -> {self.imported}"


def read_modules(package: Path) -> list[Module]:
    """Every module below the folder of a package, parsed."""
    found = []
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(Module(name, ast.parse(file.read_text(encoding="utf-8")), is_package))
    return found


def count_statements(modules: Iterable[Module]) -> int:
    """Every ast.stmt node, nested ones and docstrings included."""
    return sum(isinstance(node, ast.stmt) for module in modules for node in ast.walk(module.tree))


def repeated_definitions(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Public functions and classes that two or more modules define at top level, by name."""
    return _repeated((name, module.name) for module in modules for name in _defined(module.tree))


def repeated_assignments(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Public constants and type aliases that two or more modules assign at top level, by name."""
    return _repeated((name, module.name) for module in modules for name in _assigned(module.tree))


def _repeated(places: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    modules_of = defaultdict(set)
    for name, module in places:
        if not name.startswith("_") and name not in ONE_IN_EACH:
            modules_of[name].add(module)
    found = sorted(modules_of.items())
    return {name: sorted(modules) for name, modules in found if len(modules) > 1}


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _assigned(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    yield part.id


def read_imports(modules: Iterable[Module], package: str) -> list[Import]:
    """Which module imports which; imports inside functions count, those for type checkers do not.

    The package's own `__init__`, which hands out names when first asked, is left out.
    """
    modules = list(modules)
    known = {module.name for module in modules if module.name}
    found = set()
    for module in modules:
        for name in _imported(module.tree, _home(module, package)):
            inside = name.removeprefix(f"{package}.") if name.startswith(f"{package}.") else ""
            inside = inside if inside in known else inside.rpartition(".")[0]
            if module.name and inside and inside != module.name:
                found.add(Import(module.name, inside))
    return sorted(found)


def _home(module: Module, package: str) -> list[str]:
    """The package that relative imports of a module start from."""
    path = [package, *filter(None, module.name.split("."))]
    return path if module.is_package else path[:-1]


def _imported(node: ast.AST, home: list[str]) -> Iterator[str]:
    """The dotted names that imports below a node name, `from a import b` as a.b."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        start = home[: len(home) + 1 - node.level] if node.level else []
        origin = ".".join([*start, *filter(None, [node.module])])
        yield from (f"{origin}.{alias.name}" for alias in node.names)
    below: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        below = node.orelse
    for child in below:
        yield from _imported(child, home)


def package_cycles(imports: Iterable[Import]) -> list[list[str]]:
    """Groups of folders and modules of the first level that reach one another by imports."""
    direct: dict[str, set[str]] = defaultdict(set)
    for one in imports:
        importer, imported = one.between()
        direct[importer].add(imported)
    reached = {part: _reached(part, direct) for part in sorted(direct)}
    groups = set()
    for part in reached:
        back = {other for other in reached[part] if part in reached.get(other, ())}
        groups.add(frozenset(back | {part}))
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _reached(part: str, direct: dict[str, set[str]]) -> set[str]:
    """Everything that a part imports, directly or through others."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        new = direct.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found
