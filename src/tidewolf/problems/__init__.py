"""Built-in problems, and readers of tables and graphs.

To add a problem, write its file and put its builder into a tuple below and `__all__`.
"""

from tidewolf.core.arguments import as_text, did_you_mean
from tidewolf.core.errors import InvalidInput
from tidewolf.files import FileFormat, Graph, Table, read_graph, read_table
from tidewolf.problems.adversarial import adversarial
from tidewolf.problems.base import Builder, Problem
from tidewolf.problems.matrices import completion, sdp
from tidewolf.problems.records import abilene, carbon, freeway, meta
from tidewolf.problems.shares import gateway, portfolio, scheduling
from tidewolf.problems.traffic import geant, pairs, routing, uunet, zoo

__all__ = [
    "Builder", "FileFormat", "Graph", "Problem", "Table", "abilene", "adversarial", "carbon",
    "completion", "every", "freeway", "gateway", "geant", "meta", "named", "pairs", "portfolio",
    "read_graph", "read_table", "routing", "scheduling", "sdp", "uunet", "zoo",
]  # fmt: skip

_GENERATED = (routing, sdp, completion, portfolio, scheduling, gateway, adversarial)
_RECORDED = (abilene, freeway, carbon, geant, uunet, zoo, meta, pairs)


def every() -> dict[str, Builder]:
    """The builder of every problem, by name.

    Returns
    -------
    dict of str and Builder
        The builders: `tidewolf list` shows the first line of their docstrings.

    Examples
    --------
    >>> sorted(tw.problems.every())[:4]
    ['abilene', 'adversarial', 'carbon', 'completion']
    """
    return {build.__name__: build for build in (*_GENERATED, *_RECORDED)}


def named(name: str) -> Builder:
    """The builder of the problem of this name.

    Parameters
    ----------
    name : str
        The name of a built-in problem.

    Returns
    -------
    Builder
        What makes it, a function of the number of rounds and the seed.

    Raises
    ------
    InvalidInput
        If there is no such problem; the error has the nearest name.

    Examples
    --------
    >>> tw.problems.named("routing")(rounds=96, seed=1).name
    'routing'
    """
    known, name = every(), as_text(name, "The name of a problem")
    if name in known:
        return known[name]
    near = f"the built-in ones are {', '.join(known)}.{did_you_mean(name, known)}"
    raise InvalidInput(f"There is no problem called {name!r}; {near}")
