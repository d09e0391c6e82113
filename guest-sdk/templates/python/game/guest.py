"""What the host calls. A handler that raises is undone as a whole; `raise Err("...")` refuses on purpose and keeps the
guest."""

import logic
import wit_world
from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import gate, log

state = logic.begin()


class WitWorld(wit_world.WitWorld):
    def init(self, config, occasion):
        """`config` is this guest's table of the configuration as JSON."""
        log.write(log.Level.INFO, f"the visitor book is open ({occasion.name.lower()})")

    def on_packet(self, connection, packet):
        # A client may send anything: what is no text must not fail the game.
        line = logic.answer(state, packet.decode(errors="replace"))
        if line is None:
            return
        try:
            gate.send(connection, line.encode())
        except Err as error:
            # The client is gone already, as a rule. The error as it is would be none of this handler's, and fail the game.
            raise Err(f"the answer could not be sent: {error.value}")

    def on_connect(self, connection, address):
        pass

    def on_disconnect(self, connection):
        pass

    def on_timer(self, id, name, payload, missed):
        pass

    def on_event(self, event):
        pass

    def on_message(self, message):
        return b""

    def on_reply(self, session, answer):
        pass

    def on_task(self, id, outcome):
        pass

    def on_intent(self, intent):
        pass


class Lifecycle(exports.Lifecycle):
    def save(self) -> bytes:
        return logic.encode(state)

    def restore(self, data: bytes) -> None:
        global state
        try:
            state = logic.decode(data)
        except ValueError as error:
            raise Err(str(error))
