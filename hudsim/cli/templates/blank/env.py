"""my-project: sums, as tasks that are graded."""

from hudsim import Environment, Taskset
from hudsim.graders import numeric_match

env = Environment("my-project")


@env.template(id="add")
async def add(a: int, b: int):
    """The first yield is the prompt, and sends back what the agent answered; the second is the reward, 0 to 1."""
    answer = yield f"What is {a} + {b}? Answer with a number."
    yield numeric_match(answer, a + b)


@add.reference
def right(a: int, b: int) -> str:
    """What the agent `oracle` answers."""
    return str(a + b)


def sum_of(a: int, b: int):
    """A task, by a name that says what it is."""
    task = add(a=a, b=b)
    task.slug = f"{a}-and-{b}"
    return task


tasks = Taskset("my-project", [sum_of(2, 3), sum_of(17, 25), sum_of(-4, 4)])
