"""A client for one session of a service, with the calls of a session in process.

session.py     `Client`, with the play and observe of a session
transport.py        requests, sent again where that helps, and errors as the library's own
"""

from tidewolf.client.session import Client

__all__ = ["Client"]
