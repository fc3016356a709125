"""Questions in rounds: what is done ahead is neither done twice nor used when it is void."""

from cutplane.exec.orders import Order
from cutplane.oracles.rounds import Rounds


class NotingCrew:
    """Answers every order with its name and how many came before it."""

    def __init__(self):
        self.log, self.rounds = [], []

    def round(self, orders):
        self.rounds.append([order.method for order in orders])
        self.log += [order for order in orders if order.lasting]
        return [[[(order.method, len(self.rounds), k)] for k, order in enumerate(orders)]]


THEN = [Order("blend", (1, 2), lasting=True), Order("offset"), Order("gradients", (3,))]


def test_what_comes_next_is_in_the_same_round():
    crew = NotingCrew()
    rounds = Rounds(crew)
    rounds.post("scores", 7)
    assert rounds.ask("value", 1, then=THEN) == [("value", 1, 1)]
    rounds.post("blend", 1, 2)
    assert rounds.ask("offset") == [("offset", 1, 3)]
    assert rounds.ask("gradients", 3) == [("gradients", 1, 4)]
    assert crew.rounds == [["scores", "value", "blend", "offset", "gradients"]]
    assert [order.method for order in crew.log] == ["scores", "blend"]
    rounds.ask("gradients", 3)
    assert crew.rounds[1:] == [["gradients"]]


def test_another_order_makes_what_was_done_void():
    crew = NotingCrew()
    rounds = Rounds(crew)
    rounds.ask("value", 1, then=THEN)
    rounds.post("blend", 1, 5)
    assert rounds.ask("offset") == [("offset", 2, 1)]
    rounds.ask("value", 1, then=THEN)
    rounds.post("blend", 1, 2)
    assert rounds.ask("value", 1) == [("value", 4, 0)]
    rounds.ask("offset")
    assert crew.rounds[1:] == [
        ["blend", "offset"],
        ["value", "blend", "offset", "gradients"],
        ["value"],
        ["offset"],
    ]


def test_what_was_done_is_forgotten_at_a_new_beginning():
    crew = NotingCrew()
    rounds = Rounds(crew)
    rounds.ask("value", 1, then=THEN)
    rounds.begin()
    rounds.post("blend", 1, 2)
    rounds.ask("offset")
    assert crew.rounds[1:] == [["blend", "offset"]]
