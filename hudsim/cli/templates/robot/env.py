"""my-project: the cart's tasks, and how they are graded."""

from pathlib import Path

from hudsim import Environment, RobotEndpoint, Taskset
from hudsim.graders import EvaluationResult, SubScore

from world import Cart

env = Environment("my-project", settings={"max_ticks": 300})  # hudsim eval . oracle --set max_ticks=100
cart = env.robot(lambda settings: RobotEndpoint(Cart, max_ticks=settings["max_ticks"]))  # in a process of its own


@env.template(id="stop")
async def stop(distance: float = 1.0, seed: int = 0):
    """Start an episode and hand over its prompt; the agent plays it; then grade what the world recorded."""
    episode = await cart.reset(seed=seed, distance=distance)
    yield episode["prompt"]
    yield grade(await cart.result())


def grade(record):
    """Half for the way to the mark, half for the stop there: a policy that gets near learns from it."""
    if record["is_error"]:
        return record  # the world broke: no verdict on the agent, and the run may be made again
    parts = [
        SubScore(name="reached", value=record["info"]["reached"], weight=0.5),
        SubScore(name="stopped", value=1.0 if record["success"] else 0.0, weight=0.5),
    ]
    reward = sum(part.value * part.weight for part in parts)
    info = {"end": record["end"], "ticks": record["ticks"]}
    return EvaluationResult(reward=reward, subscores=parts, info=info)


@stop.reference
def by_policy(distance: float = 1.0, seed: int = 0):
    """What the agent `oracle` does: play this policy."""
    return {"policy": f"{Path(__file__).with_name('policy.py')}:Damp"}


def stop_from(distance: float, seed: int):
    """A task, by a name that says what it is."""
    task = stop(distance=distance, seed=seed)
    task.slug = f"stop-{distance:g}m-{seed}"
    return task


tasks = Taskset("my-project", [stop_from(distance, seed) for distance in (0.5, 1.0) for seed in (0, 1)])
