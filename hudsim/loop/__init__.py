"""Time: clocks, the ticker, the sim thread, histograms, workers, and how a process runs an event loop."""

from hudsim.loop.clock import Clock, MonotonicClock, clock_id
from hudsim.loop.histogram import Histogram
from hudsim.loop.pulse import Pulse
from hudsim.loop.run import run
from hudsim.loop.simthread import SimThread
from hudsim.loop.ticker import Tick, Ticker
from hudsim.loop.vigil import Vigil
from hudsim.loop.worker import Worker

__all__ = [
    "Clock",
    "Histogram",
    "MonotonicClock",
    "Pulse",
    "SimThread",
    "Tick",
    "Ticker",
    "Vigil",
    "Worker",
    "clock_id",
    "run",
]
