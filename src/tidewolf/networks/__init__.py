"""Networks as traffic engineers see them: tunnels between pairs of nodes, and how demands are split
over them.
"""

from __future__ import annotations

from tidewolf.networks.tunnels import Tunnel, Tunnels

__all__ = ["Tunnel", "Tunnels"]
