"""No import cycle, not even among imports for type checking alone."""

from __future__ import annotations

import grimp


def cycles(graph: grimp.ImportGraph) -> list[set[str]]:
    """The strongly connected components of more than one module (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in graph.find_modules_directly_imported_by(module):
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            at = stack.index(module)
            component = set(stack[at:])
            del stack[at:]
            if len(component) > 1:
                found.append(component)

    for module in sorted(graph.modules):
        if module not in number:
            visit(module)
    return found


def test_a_cycle_is_found() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in ("ab", "bc", "ca", "cd", "de"):
        graph.add_import(importer=importer, imported=imported)
    assert cycles(graph) == [{"a", "b", "c"}]


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("bridge", exclude_type_checking_imports=False)
    for name in graph.find_modules_directly_imported_by("bridge"):
        graph.remove_import(importer="bridge", imported=name)  # public names, imported when used
    assert cycles(graph) == []
