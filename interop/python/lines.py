"""What the Python programs of the interop matrix share: the service, the flags and the
lines that they speak (interop/matrix/doc.go has them)."""
import argparse
import asyncio
import sys

SERVICE, INSTANCE, MAJOR, MINOR, PORT, SD_PORT = 0x6100, 1, 1, 0, 30700, 30490
ECHO, REFUSE, TELL, ECHO_LARGE = 0x0001, 0x0002, 0x0003, 0x0004
# The events by eventgroup, and the value of a field when its server starts.
EVENTS = {1: 0x8001, 2: 0x8002, 3: 0x8003, 4: 0x8004}
FIELDS = {2, 4}
FIRST = b"first"
CLIENT_ID = 0x3100


def flags():
    parser = argparse.ArgumentParser()
    for name in ("role", "unicast", "peer", "device", "sd-multicast", "multicast", "groups", "transport"):
        parser.add_argument("--" + name, default="")
    parser.add_argument("--prefix-len", type=int)
    given = parser.parse_args()
    given.groups = [int(g) for g in given.groups.split(",") if g]
    return given


def say(*words):
    print(*words, flush=True)


def text(payload):
    return bytes(payload).hex() or "-"


def parse(line):
    """Returns command, transport (empty for notify), number and payload of a line."""
    words = line.split()
    payload = b"" if words[-1] == "-" else bytes.fromhex(words[-1])
    transport = words[1] if len(words) == 4 else ""
    return words[0], transport, int(words[-2], 16), payload


async def commands():
    """Yields the commands until the input ends."""
    reader = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield parse(line.decode())
