"""A client of the gate with the package `websockets`: binary messages over WebSocket, plain or by TLS.

Usage: websocket.py HOST:PORT [CA_FILE]

Each step that goes well is a line on standard output. Where the test has something to look at or to do meanwhile, the
script waits for a line on standard input.
"""

import asyncio
import ssl
import sys

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

PATIENCE_S = 20
CLIENTS = 5
PINGS = 50


def expect(found, wanted):
    if found != wanted:
        sys.exit(f"expected {str(wanted)[:80]}, got {str(found)[:80]}")


def step(name):
    print(name, flush=True)


async def wait_for_the_test():
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def close_code(client):
    """Waits for the gate to close, and answers what it said."""
    try:
        while True:
            await client.recv()
    except ConnectionClosed as closed:
        return closed.rcvd and (closed.rcvd.code, closed.rcvd.reason)


async def talk(address, ca_file=None):
    if ca_file is None:
        url, context = f"ws://{address}/", None
    else:
        url, context = f"wss://{address}/", ssl.create_default_context(cafile=ca_file)

    async def enter():
        return await connect(url, ssl=context, proxy=None)

    clients = [await enter() for _ in range(CLIENTS)]
    for number in range(PINGS):
        for at, client in enumerate(clients):
            await client.send(b"ping %d/%d" % (at, number))
        for at, client in enumerate(clients):
            expect(await client.recv(), b"pong %d/%d" % (at, number))
    step("echoes")

    first = clients[0]
    await first.send([b"ping in ", b"three ", b"parts"])
    expect(await first.recv(), b"pong in three parts")
    long = b"x" * 16000
    await first.send(b"ping " + long)
    expect(await first.recv(), b"pong " + long)
    await (await first.ping())
    step("any pieces")

    greedy = clients.pop()
    await greedy.send(b"x" * 1_000_000)
    expect((await close_code(greedy))[0], 1009)
    step("too long")

    wordy = clients.pop()
    await wordy.send("ping as text")
    expect(await close_code(wordy), (1003, "text is not taken here: send binary messages"))
    step("text")

    polite = clients.pop()
    await polite.close()
    expect(polite.close_code, 1000)
    step("good-bye")

    step("open")
    await wait_for_the_test()
    for client in clients:
        expect(await close_code(client), (1001, "the host stops"))
    step("stopped")


async def main():
    await asyncio.wait_for(talk(*sys.argv[1:]), 3 * PATIENCE_S)


if __name__ == "__main__":
    asyncio.run(main())
