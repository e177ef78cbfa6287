"""Networks of traffic engineering: demands between nodes, the links or tunnels that carry them, and
how demands are split over them.
"""

from tidewolf.networks.network import Cut, Demand, Network, PathShare, Tunnel
from tidewolf.networks.network_files import NetworkStream, from_files
from tidewolf.networks.tunnels import Tunnels

__all__ = [
    "Cut", "Demand", "Network", "NetworkStream", "PathShare", "Tunnel", "Tunnels", "from_files",
]  # fmt: skip
