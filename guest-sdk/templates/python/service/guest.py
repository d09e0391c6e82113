"""What the host calls: one message after another. At a swap `restore` is called in place of `init`."""

import logic
import wit_world
from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import log

state = logic.begin()


class WitWorld(wit_world.WitWorld):
    def init(self, config, arguments):
        """`config` is this guest's table of the configuration as JSON, `arguments` what it was launched with."""
        log.write(log.Level.INFO, "the counter begins")

    def handle(self, message):
        try:
            return logic.answer(state, message.payload.decode()).encode()
        except ValueError as error:
            raise Err(str(error))


class Lifecycle(exports.Lifecycle):
    def save(self) -> bytes:
        return logic.encode(state)

    def restore(self, data: bytes) -> None:
        global state
        try:
            state = logic.decode(data)
        except ValueError as error:
            raise Err(str(error))
