"""A client of the gate in nothing but Python's standard library: frames over TCP, plain or by TLS.

Usage: raw_tcp.py HOST:PORT [CA_FILE]

Each step that goes well is a line on standard output. Where the test has something to look at or to do meanwhile, the
script waits for a line on standard input.
"""

import socket
import ssl
import struct
import sys

PATIENCE_S = 20
CLIENTS = 5
PINGS = 50


def connect(address, ca_file):
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    if ca_file is None:
        return connection
    return ssl.create_default_context(cafile=ca_file).wrap_socket(connection, server_hostname=host)


def frame(payload):
    return struct.pack(">H", len(payload)) + payload


def read_exactly(connection, length):
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        if not more:
            raise EOFError(f"the gate ended the connection after {len(data)} of {length} bytes")
        data += more
    return data


def receive(connection):
    (length,) = struct.unpack(">H", read_exactly(connection, 2))
    return read_exactly(connection, length)


def expect(found, wanted):
    if found != wanted:
        sys.exit(f"expected {wanted[:80]!r}, got {found[:80]!r}")


def step(name):
    print(name, flush=True)


def wait_for_the_test():
    sys.stdin.readline()


def main(address, ca_file=None):
    clients = [connect(address, ca_file) for _ in range(CLIENTS)]
    for number in range(PINGS):
        for at, client in enumerate(clients):
            client.sendall(frame(b"ping %d/%d" % (at, number)))
        for at, client in enumerate(clients):
            expect(receive(client), b"pong %d/%d" % (at, number))
    step("echoes")

    first = clients[0]
    first.sendall(frame(b"ping one") + frame(b"ping two") + frame(b"ping three"))
    for word in (b"one", b"two", b"three"):
        expect(receive(first), b"pong " + word)
    for byte in frame(b"ping slowly"):
        first.sendall(bytes([byte]))
    expect(receive(first), b"pong slowly")
    long = b"x" * 16000
    first.sendall(frame(b"ping " + long))
    expect(receive(first), b"pong " + long)
    step("any pieces")

    greedy = clients.pop()
    greedy.sendall(struct.pack(">H", 65535))
    try:
        expect(greedy.recv(1), b"")
    except ConnectionResetError:
        pass
    step("too long")

    step("open")
    wait_for_the_test()
    for client in clients:
        expect(client.recv(1), b"")
        client.close()
    step("stopped")


if __name__ == "__main__":
    main(*sys.argv[1:])
