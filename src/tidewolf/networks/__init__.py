"""Networks as traffic engineers see them: what must go from where to where, over which links or
tunnels, and how demands are split over them.
"""

from __future__ import annotations

from tidewolf.networks.from_files import NetworkStream, from_files
from tidewolf.networks.network import Cut, Demand, Network, PathShare
from tidewolf.networks.tunnels import Tunnel, Tunnels

__all__ = [
    "Cut",
    "Demand",
    "Network",
    "NetworkStream",
    "PathShare",
    "Tunnel",
    "Tunnels",
    "from_files",
]
