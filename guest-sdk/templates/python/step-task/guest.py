"""What the host calls: `start` once, and then `step` in what each frame leaves over, until it says that it has finished."""

import logic
import wit_world
from componentize_py_types import Err
from wit_world import exports
from wit_world.imports.stepping import StepResult_Finished, StepResult_InProgress

work = None


class WitWorld(wit_world.WitWorld):
    def start(self, arguments):
        global work
        try:
            work = logic.Primes(int(arguments))
        except ValueError:
            raise Err("the argument must be a number")

    def step(self, timeslice_ns):
        if not work.advance():
            return StepResult_InProgress()
        return StepResult_Finished(str(work.count).encode())


class Lifecycle(exports.Lifecycle):
    """A task ends with its host, and on the code that it was started with: there is nothing to carry."""

    def save(self) -> bytes:
        return b""

    def restore(self, data: bytes) -> None:
        pass
