"""The rules, which know nothing of the host: this is what the tests test."""

import json


def begin() -> dict:
    return {"visitors": 0}


def answer(state: dict, text: str) -> str | None:
    """The answer to a packet; nothing where there is none."""
    if text != "hello":
        return None
    state["visitors"] += 1
    return f"you are visitor {state['visitors']}"


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
