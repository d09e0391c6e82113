"""What an NPC decides, which knows nothing of the host: this is what the tests test."""

import json


def begin() -> dict:
    return {"thoughts": 0}


def decide(state: dict, x: int, y: int, players: list) -> tuple[int, int]:
    """Where an NPC at (x, y) goes. `players` are the places of those it sees, nearest first."""
    if players:
        other_x, other_y = players[0]
        return x + sign(x - other_x), y + sign(y - other_y)
    return x + (1 if state["thoughts"] % 2 == 0 else -1), y


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def encode(state: dict) -> bytes:
    """What this guest remembers, as bytes. The version says how to read them: raise it when the form changes, and keep
    reading the older ones."""
    return json.dumps({"version": 1, **state}).encode()


def decode(data: bytes) -> dict:
    state = json.loads(data)
    version = state.pop("version", None)
    if version != 1:
        raise ValueError(f"there is no way to read version {version} of the state")
    return state
