"""``Damp``: a policy that drives the cart."""

import numpy as np

from hudsim import Model

PUSH = 4.0  # m/s² at full force


class Damp(Model):
    """A damped spring towards the mark, planned some ticks ahead. Without memory: it may serve many episodes at once.

    chunk
        Actions a plan.
    """

    def __init__(self, *, chunk: int = 10):
        self.chunk = chunk

    def infer(self, batch):
        """From observations ``{feature: [N, ...]}`` to plans [N, chunk, 1]."""
        x, v, mark = batch["observation/state"].T.astype(float)
        actions = []
        for _ in range(self.chunk):
            actions.append(np.clip(4.0 * (mark - x) - 3.0 * v, -1.0, 1.0))
            v = v + PUSH * actions[-1] / 50.0
            x = x + v / 50.0
        return np.stack(actions, axis=1)[..., None].astype(np.float32)
