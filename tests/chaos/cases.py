"""The registry of chaos cases: each has a sentence and a function that takes a Cluster."""

import dataclasses
from collections.abc import Callable

from harness import Failed


@dataclasses.dataclass
class Case:
    sentence: str
    play: Callable
    needs: tuple[str, ...] = ()  # "torch", "namespaces", "iptables", "freeze", "slow disk", "etcd"


ALL: list[Case] = []


def case(sentence: str, *needs: str):
    assert ";" not in sentence, "CMake would take it for two"

    def register(play):
        ALL.append(Case(sentence, play, needs))
        return play
    return register


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Failed(what)
