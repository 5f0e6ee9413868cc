"""``Cart``: a cart on a rail, to be brought to a stop at a mark."""

import numpy as np

from hudsim import Observation, RobotBridge

RATE_HZ = 50.0
PUSH = 4.0  # m/s² at full force
STILL = 0.1  # m/s
NEAR = 0.05  # m


class Cart(RobotBridge):
    """Plain blocking functions, always called on one thread. Every array's first axis is the world: here there is one.

    max_ticks
        When an episode is cut off.
    """

    contract = {
        "schema": "hudsim/1",
        "robot_type": "cart",
        "control_rate": RATE_HZ,
        "features": {
            "observation/state": {
                "role": "observation",
                "dtype": "float32",
                "shape": [3],
                "names": ["x", "v", "mark"],
                "unit": ["m", "m/s", "m"],
            },
            "action": {
                "role": "action",
                "type": "force",
                "dtype": "float32",
                "shape": [1],
                "names": ["force"],
                "limits": {"min": [-1.0], "max": [1.0]},
                "out_of_range": "clip",
                "hold": ["zero"],
            },
        },
    }

    def __init__(self, max_ticks: int = 300):
        self.max_ticks = max_ticks

    def reset(self, seed: int = 0, distance: float = 1.0) -> str:
        """Start an episode. The first observation is a function of the arguments alone; returns the prompt."""
        rng = np.random.default_rng(seed)
        self.mark = float(rng.uniform(-0.5, 0.5))
        self.x = self.mark + distance * float(rng.choice([-1.0, 1.0]))
        self.v = 0.0
        self.tick = 0
        self.start = self.nearest = abs(self.x - self.mark)
        return f"bring the cart to a stop within {NEAR * 100:g} cm of the mark"

    def step(self, action) -> None:
        """One tick. ``action`` [1, 1] has been checked and clipped."""
        self.v += PUSH * float(action[0, 0]) / RATE_HZ
        self.x += self.v / RATE_HZ
        self.tick += 1
        self.nearest = min(self.nearest, abs(self.x - self.mark))

    def get_observation(self) -> Observation:
        """What there is to be seen now, and whether that is the end."""
        state = np.array([[self.x, self.v, self.mark]], np.float32)
        there = abs(self.x - self.mark) < NEAR and abs(self.v) < STILL
        return Observation(
            {"observation/state": state},
            terminated=np.array([there]),
            truncated=np.array([self.tick >= self.max_ticks]),
            reward=np.array([-abs(self.x - self.mark)]),
            success=np.array([there]),
        )

    def result(self) -> dict[str, float]:
        """For the grade: the share of the way that was done at best."""
        return {"reached": 1.0 if self.nearest < NEAR else 1.0 - min(self.nearest / self.start, 1.0)}
