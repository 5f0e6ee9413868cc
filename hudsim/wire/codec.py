"""Messages to bytes and back: msgpack, with arrays as openpi's msgpack-numpy writes them.

An array is the map ``{b"__ndarray__": True, b"data": bytes, b"dtype": "<f4", b"shape": [...]}``, its data in C
order; a numpy scalar is ``{b"__npgeneric__": True, b"data": value, b"dtype": "<f4"}``.

The format is openpi's, the code is not, for what arrives here is not trusted: nothing becomes an array but
booleans and numbers whose bytes are all there, and no memory is taken for what a header merely claims (50 KB of
such claims take 80 MB in msgpack's own unpacker). It costs little to have it in Python: an array is copied once
on its way out, straight into the frame, and not at all on its way in; msgpack's packer copies it three times and
its unpacker once. What is flat and plain, as `meta` is, goes by that packer and unpacker.
"""

from __future__ import annotations

from hudsim.wire.decoder import decode
from hudsim.wire.encoder import encode, encode_pieces
from hudsim.wire.format import DEFAULT, Limits

__all__ = ["DEFAULT", "Limits", "decode", "encode", "encode_pieces"]
