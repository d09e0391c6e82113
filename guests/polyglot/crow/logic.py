"""What a crow decides: it flies to the nearest crop or player and circles there; where there is none it goes its way."""

import json

PLAYER, CROP = 1, 4
AROUND = [(2, 0), (1, 1), (0, 2), (-1, 1), (-2, 0), (-1, -1), (0, -2), (1, -1)]


def begin() -> dict:
    return {"thoughts": 0}


def decide(state: dict, crow: int, x: int, y: int, seen: list) -> tuple[int, int]:
    """Where a crow at (x, y) goes. `seen` are kinds and places, nearest first."""
    dx, dy = AROUND[(state["thoughts"] + crow) % len(AROUND)]
    for kind, there_x, there_y in seen:
        if kind in (PLAYER, CROP):
            return there_x + dx, there_y + dy
    return x + dx, y + dy


def encode(state: dict) -> bytes:
    """The version says how to read what is saved."""
    return json.dumps({"version": 1, **state}).encode()


def decode(data: bytes) -> dict:
    state = json.loads(data)
    version = state.pop("version")
    if version != 1:
        raise ValueError(f"there is no way to read version {version} of the state")
    return state
