"""A client for one session of a service, with the calls of a session in process."""

from tidewolf.client.session import Client

__all__ = ["Client"]
