"""Names as people write them: problems by their titles, others with a capital letter."""

from __future__ import annotations

_TITLES = {
    "abilene": "Abilene",
    "geant": "GEANT",
    "meta": "Meta",
    "pairs": "GEANT, every pair",
    "sdp": "SDP",
    "uunet": "UUNET",
    "zoo": "Topology Zoo",
}


def title_of(name: str) -> str:
    """What a problem or an experiment is called at the head of a page."""
    return _TITLES.get(name, name[:1].upper() + name[1:])
