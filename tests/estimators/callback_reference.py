"""A callback for scikit-learn's hooks that writes down what it sees."""

from __future__ import annotations


class Recorder:
    """Writes down every hook; stops at one iteration if asked to."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.events: list[tuple] = []
        self.stop_at = stop_at
        self.iterations = 0
        self.scores: list[float] = []

    def setup(self, estimator, context):
        self.events.append(("setup", self.path(context)))

    def teardown(self, estimator, context):
        self.events.append(("teardown", self.path(context)))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(("begin", self.path(context)))
        self.data = X, y

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(("end", self.path(context)))
        if context.max_subtasks != 0:
            return False
        self.iterations += 1
        assert fitted_estimator is not estimator
        self.scores.append(fitted_estimator.score(X, y))
        return self.iterations == self.stop_at

    @staticmethod
    def path(context) -> tuple[tuple[str, int], ...]:
        """Name and number of every task from the root down."""
        own = ((context.task_name, context.task_id),)
        return own if context.parent is None else (*Recorder.path(context.parent), *own)

    def tasks(self, depth: int) -> list[tuple]:
        """The tasks at a depth of the tree, in the order in which they ended."""
        return [path for event, path in self.events if event == "end" and len(path) == depth]


def assert_nested(events: list[tuple]) -> None:
    """Check that every task begins after its parent and ends before it, once."""
    assert events[0][0] == "setup"
    assert events[-1][0] == "teardown"
    stack, seen = [], set()
    for event, path in events[1:-1]:
        if event == "begin":
            assert path not in seen
            seen.add(path)
            assert path[:-1] == (stack[-1] if stack else ())
            stack.append(path)
        else:
            assert event == "end"
            assert stack.pop() == path
    assert not stack
