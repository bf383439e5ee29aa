"""The climate ECU of the sample vehicle on pysomeip: the interface Climate, instances left and
right, as vehicles/cabin/interfaces/cabin/climate/v1/climate.proto describes and deploys it.

pysomeip has UDP only, so there is no SetVents, and as server its application has one error
code: whatever Boost refuses is 0x09."""
import asyncio
import struct

from someip.service import MalformedMessageError, SimpleEventgroup, SimpleService

import pysomeip_cabin as cabin

AIR_QUALITY, TARGET = 0x8001, 0x8002
AUTO = 1
OFF = 0


def unpack(layout, payload):
    try:
        return struct.unpack(layout, payload)
    except struct.error as err:
        raise MalformedMessageError from err


class Zone(SimpleService):
    """One instance."""
    service_id, version_major, version_minor = 0x4001, 1, 2

    def __init__(self, instance, name, sensors):
        super().__init__(instance)
        self.name, self.sensors = name, sensors
        self.mode, self.target, self.co2 = AUTO, 21.0, 800
        self.air = SimpleEventgroup(self, 1, interval=0.5)
        self.targets = SimpleEventgroup(self, 2)
        for number, method in {
            0x0001: self.describe, 0x0003: self.set_mode, 0x0004: self.boost, 0x0005: self.purge,
            0x0010: self.get_target, 0x0011: self.set_target,
        }.items():
            self.register_method(number, lambda message, _, method=method: method(message.payload))
        for group in (self.air, self.targets):
            self.register_eventgroup(group)
        self.sense()
        self.targets.values[TARGET] = self.get_target(b"")

    def sense(self):
        self.air.values[AIR_QUALITY] = struct.pack(">Hf", self.co2, 12.5) + cabin.text(self.name) + cabin.counted(
            struct.pack(">HH", self.co2, self.co2 + 1))

    def describe(self, _):
        sensors = b"".join(cabin.text(name) + struct.pack(">f?", celsius, True) for name, celsius in self.sensors)
        return cabin.text(self.name) + bytes([self.mode]) + cabin.counted(sensors) + struct.pack(">H", 258)

    def set_mode(self, payload):
        before, self.mode = self.mode, *unpack(">B", payload[:1])
        return bytes([before])

    def boost(self, payload):
        seconds, = unpack(">H", payload)
        if self.mode == OFF or not 0 < seconds <= 600:
            raise MalformedMessageError
        return struct.pack(">H", min(seconds, 120))

    def purge(self, payload):
        self.co2 = 400 + unpack(">B", payload)[0]
        self.sense()
        self.air.notify_once([AIR_QUALITY])

    def get_target(self, _):
        return struct.pack(">f", self.target)

    def set_target(self, payload):
        self.target = min(max(unpack(">f", payload)[0], 16.0), 28.0)
        self.targets.values[TARGET] = self.get_target(b"")
        self.targets.notify_once([TARGET])
        return self.get_target(b"")


async def run():
    discovery = await cabin.discovery()
    for port, zone in (
        (30509, (1, "left", [("footwell", 19.5), ("roof", 21.25)])),
        (30510, (2, "right", [("footwell", 18.5)])),
    ):
        _, service = await Zone.create_unicast_endpoint(*zone, local_addr=(cabin.ADDRESS, port))
        service.start_announce(discovery.announcer)
    discovery.start()
    print("climate ECU on pysomeip is up", flush=True)
    await cabin.until_told()
    await cabin.close(discovery)


asyncio.run(run())
