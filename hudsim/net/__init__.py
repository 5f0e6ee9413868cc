"""Sockets only: a WebSocket server routed by path, a client with typed errors, bearer tokens, JSON-RPC."""

from hudsim.net.address import Address
from hudsim.net.client import connect
from hudsim.net.link import Link
from hudsim.net.rpc import RpcClient, serve_rpc
from hudsim.net.server import Server, Text

__all__ = ["Address", "Link", "RpcClient", "Server", "Text", "connect", "serve_rpc"]
