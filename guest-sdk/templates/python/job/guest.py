"""What the host calls. It may take as long as it needs: the host suspends it and goes on with it as there is time."""

import logic
import wit_world
from componentize_py_types import Err
from wit_world import exports


class WitWorld(wit_world.WitWorld):
    def run(self, arguments):
        try:
            return str(logic.count_primes(int(arguments))).encode()
        except ValueError:
            raise Err("the argument must be a number")


class Lifecycle(exports.Lifecycle):
    """A task ends with its host, and on the code that it was started with: there is nothing to carry."""

    def save(self) -> bytes:
        return b""

    def restore(self, data: bytes) -> None:
        pass
