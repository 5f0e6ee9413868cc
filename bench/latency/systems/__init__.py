"""One system a file, and :mod:`~hudsim.bench.latency.systems.play`, which times any of them.

A system's file is loaded by its path, under an interpreter of its own, so those of the peers import nothing of
hudsim. It gives ``opened(payload, serve)``, an asynchronous context in which one call of what it yields is one round
trip; ``PACKAGES``, whose versions are told; and, if it is not to be asyncio's, ``new_event_loop``.

``payload`` is as :meth:`hudsim.bench.latency.payload.Payload.write` makes it. ``serve(words)`` runs the system's file
as a program, which is its own server, prints its port and ends with its stdin; it returns the port.
"""
