"""What the host calls: many NPCs are thought in one call."""

import logic
import wit_world
from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import log
from wit_world.imports.thinking import Action, Intent, Traits

state = logic.begin()


class WitWorld(wit_world.WitWorld):
    def init(self, config, occasion):
        """`config` is this guest's table of the configuration as JSON."""
        log.write(log.Level.DEBUG, f"the thinker begins ({occasion.name.lower()})")

    def think(self, now, npcs, seen):
        state["thoughts"] += 1
        intents = []
        for npc in npcs:
            sightings = seen[npc.seen_first : npc.seen_first + npc.seen_count]
            players = [(sighting.x, sighting.y) for sighting in sightings if Traits.PLAYER in sighting.traits]
            x, y = logic.decide(state, npc.x, npc.y, players)
            intents.append(Intent(npc.id, Action.MOVE, x, y, 0, 0))
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
