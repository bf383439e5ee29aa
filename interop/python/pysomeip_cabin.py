"""What the pysomeip programs of the sample vehicle share: where they are on the network,
which the runner of the vehicle says in the environment, and payload bytes, written by hand
from the deployment so that a mistake of the gateway cannot hide behind the same one here."""
import asyncio
import os
import signal
import socket
import struct

from someip import sd

ADDRESS = os.environ["CARISMA_ADDRESS"]
BOM = b"\xef\xbb\xbf"


async def discovery():
    """Opens service discovery on the network; it starts when its start is called."""
    _, _, protocol = await sd.ServiceDiscoveryProtocol.create_endpoints(
        socket.AF_INET, ADDRESS, os.environ["CARISMA_SD_GROUP"], os.environ.get("CARISMA_INTERFACE"),
        int(os.environ["CARISMA_SD_PORT"]))
    protocol.timings.INITIAL_DELAY_MAX = 0.01
    return protocol


async def close(protocol):
    """Ends service discovery: offers and subscriptions are taken back."""
    protocol.stop()
    await asyncio.sleep(0.1)  # what ends is sent by tasks of the library, which tell nobody


async def until_told():
    """Returns when the program is asked to end."""
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await told.wait()


def text(value):
    """A string: length field, byte order mark, UTF-8, terminator."""
    content = BOM + value.encode() + b"\0"
    return struct.pack(">I", len(content)) + content


def counted(content):
    """An array, whose length field counts bytes."""
    return struct.pack(">I", len(content)) + content


def take_text(data):
    """Returns a string and what follows it."""
    length, = struct.unpack_from(">I", data)
    content, rest = data[4:4 + length], data[4 + length:]
    if len(content) != length or not content.startswith(BOM) or not content.endswith(b"\0"):
        raise ValueError(f"no string: {data.hex()}")
    return content[len(BOM):-1].decode(), rest
