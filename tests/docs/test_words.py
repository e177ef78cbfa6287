"""What users and developers read uses the field's words: no names, and few phrases, of a private
vocabulary.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = re.compile(
    r"^(told|settled|settle|coming|standing|asked|said|noted|wanted|glance|rung|ladder|cable|roads|"
    r"companion|ledger|stretch|excess|rivals?|twin|promise|awake|asleep|sleeps?|thaw|informed|"
    r"decided|arrived|forgotten|outward|presence|shelf|desk)$"
)
"""Words that are in no name of a module, class or function."""
PHRASES = re.compile(
    r"\b(told of|is told|nobody|somebody|whoever|goes on|to the letter|keeps its word|is said|"
    r"are said|says so|an? (?:learner|set|session) (?:who|whom)|at (?:his|her) word|rivals?|"
    r"keeps every limit|ledgers?|naive twins?|companions?|asleep)\b",
    re.IGNORECASE,
)
MOST = 50


def sources():
    return [(path, ast.parse(path.read_text())) for path in (ROOT / "src").rglob("*.py")]


def test_no_name_is_of_a_private_vocabulary():
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for path, tree in sources():
        names = [path.stem, *(node.name for node in ast.walk(tree) if isinstance(node, named))]
        for name in names:
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
            assert not any(map(NAMES.match, words)), f"{path}: {name}"


def test_few_phrases_are():
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.j2")]
    found = [(path, phrase) for path in texts for phrase in PHRASES.findall(path.read_text())]
    for path, tree in sources():
        strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
        text = "\n".join(each for each in strings if isinstance(each, str) and " " in each)
        found += [(path, phrase) for phrase in PHRASES.findall(text)]
    assert len(found) < MOST, found
