"""`Simplex`, `tw.run(...)` and `Session.open` on any page of the site become links to what is said
of them in the reference.

A name is linked where it can mean one public thing only: by its whole path, by the path under `tw`,
or bare, if it is no common word (a class, or a function with an underscore) and belongs to one
thing alone. A thing that several public paths lead to is documented under the shortest and has
anchors under all of them.
"""

import inspect
import re
from collections import defaultdict
from functools import cache
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

from tools.public import aliases, methods, parts, public

_CALL = re.compile(r"(?:tw\.|tidewolf\.)?[A-Za-z_]\w*(?:\.\w+)*(?:\(.*\))?", flags=re.DOTALL)


@cache
def targets() -> dict[str, str]:
    """The path in the reference that each way of writing a name leads to."""
    found: dict[str, str] = {}
    bare: dict[str, set[str]] = defaultdict(set)
    for path, thing in (*public(), *parts()):
        found[path] = path
        bare[path.rpartition(".")[2]].add(path)
        if inspect.isclass(thing):
            for name, _ in methods(thing):
                found[f"{path}.{name}"] = f"{path}.{name}"
                bare[f"{thing.__name__}.{name}"].add(f"{path}.{name}")
    for alias, path in aliases().items():
        for known in [known for known in found if known == path or known.startswith(f"{path}.")]:
            found[alias + known.removeprefix(path)] = known
    found |= {f"tw.{path.removeprefix('tidewolf.')}": to for path, to in found.items()}
    found |= {
        name: next(iter(paths))
        for name, paths in bare.items()
        if len(paths) == 1 and (name[0].isupper() or "_" in name)
    }
    return found


def target(text: str) -> str | None:
    """Where a piece of code leads, if it is a public name or a call of one."""
    if not _CALL.fullmatch(text):
        return None
    return targets().get(text.partition("(")[0])


class LinkNames(SphinxTransform):
    """Code that is a public name refers to it, but on the page of that name, in titles, and where
    there is a link already.
    """

    default_priority = 600

    def apply(self, **given: Any) -> None:
        for code in list(self.document.findall(nodes.literal)):
            path = target(code.astext())
            if path and not self.env.docname.endswith(path) and not _within(code, *_NO_LINK):
                link = addnodes.pending_xref(
                    "", refdomain="py", reftype="obj", reftarget=path, refexplicit=True
                )
                link["refdoc"] = self.env.docname
                code.replace_self(link)
                link += code


_NO_LINK = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)


def _within(node: nodes.Node, *kinds: type[nodes.Element]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def add_anchors(app: Any, document: nodes.document) -> None:
    """Sphinx's event `doctree-read`: a thing's other public paths are anchors beside its first."""
    others: dict[str, list[str]] = defaultdict(list)
    for alias, path in aliases().items():
        others[path].append(alias)
    domain = app.env.get_domain("py")
    for signature in document.findall(addnodes.desc_signature):
        kind = signature.parent.get("objtype")
        for path in list(signature["ids"]):
            for alias in others.get(path, ()):
                signature["ids"].append(alias)
                domain.note_object(alias, kind, alias, aliased=True, location=signature)


def setup(app: Any) -> dict[str, Any]:
    app.add_transform(LinkNames)
    app.connect("doctree-read", add_anchors)
    return {"parallel_read_safe": True}
