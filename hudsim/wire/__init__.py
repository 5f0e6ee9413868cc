"""Bytes and messages, without sockets or clocks: the codec and the session."""
