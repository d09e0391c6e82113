"""Crows of Meadow, in Python: what the host calls."""

import logic
import wit_world
from componentize_py_types import Err
from wit_world import exports
from wit_world.imports.thinking import Action, Intent

state = logic.begin()


class WitWorld(wit_world.WitWorld):
    def init(self, config, occasion):
        pass

    def think(self, now, npcs, seen):
        state["thoughts"] += 1
        intents = []
        for npc in npcs:
            sightings = seen[npc.seen_first : npc.seen_first + npc.seen_count]
            places = [(sighting.kind, sighting.x, sighting.y) for sighting in sightings]
            x, y = logic.decide(state, npc.id, npc.x, npc.y, places)
            intents.append(Intent(npc.id, Action.MOVE, max(x, 0), max(y, 0), 0, 0))
        return intents


class Lifecycle(exports.Lifecycle):
    def save(self) -> bytes:
        return logic.encode(state)

    def restore(self, data: bytes) -> None:
        global state
        try:
            state = logic.decode(data)
        except ValueError as error:
            raise Err(str(error))
