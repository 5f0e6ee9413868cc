"""Sockets only: a WebSocket server routed by path, a client with typed errors, bearer tokens, JSON-RPC, tunnels."""

from hudsim.net.address import Address
from hudsim.net.client import connect
from hudsim.net.dial import dial
from hudsim.net.host import host_id
from hudsim.net.link import UNREACHABLE, Link
from hudsim.net.rpc import RpcClient, serve_rpc
from hudsim.net.server import Handler, Server, Text
from hudsim.net.splice import QUEUE, cut, splice

__all__ = [
    "QUEUE",
    "UNREACHABLE",
    "Address",
    "Handler",
    "Link",
    "RpcClient",
    "Server",
    "Text",
    "connect",
    "cut",
    "dial",
    "host_id",
    "serve_rpc",
    "splice",
]
