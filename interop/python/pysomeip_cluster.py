"""The instrument cluster of the sample vehicle on pysomeip: a SOME/IP client of TripComputer
(vehicles/cabin/interfaces/cabin/trip/v1/trip.proto). It plays each step that UDP can once and
prints a line for it, as vehicles/cabin/README.md says; it ends with status 0 if all was as it
should be."""
import asyncio
import struct
import sys

from someip import config, header, sd

import pysomeip_cabin as cabin

SERVICE, INSTANCE, MAJOR = 0x5001, 0x0001, 1
LEG, CONSUMPTION, EVENTGROUP = 0x0001, 0x8001, 1
CLIENT_ID = 0x3200
PATIENCE = 10


class Client(sd.SOMEIPDatagramProtocol, sd.ClientServiceListener):
    """Follows the service, calls it and takes its events."""

    def __init__(self):
        super().__init__()
        self.server = asyncio.get_running_loop().create_future()
        self.session = 0
        self.answers = {}  # futures by session
        self.events = asyncio.Queue()

    def service_offered(self, service, source):
        for option in service.options_1 + service.options_2:
            if not isinstance(option, header.IPv4EndpointOption):
                continue  # the configuration of a gateway's offer
            if option.l4proto == header.L4Protocols.UDP and not self.server.done():
                self.server.set_result((str(option.address), option.port))

    def service_stopped(self, service, source):
        pass

    def message_received(self, message, _addr, multicast):
        if message.message_type == header.SOMEIPMessageType.NOTIFICATION:
            self.events.put_nowait(message)
        else:
            self.answers.pop(message.session_id).set_result(message)

    async def call(self, method, payload):
        self.session += 1
        answer = self.answers[self.session] = asyncio.get_running_loop().create_future()
        request = header.SOMEIPHeader(
            SERVICE, method, CLIENT_ID, self.session, MAJOR, header.SOMEIPMessageType.REQUEST, payload=payload)
        self.send(request.build(), await self.server)
        return await asyncio.wait_for(answer, PATIENCE)


async def leg(client, name, expected):
    answer = await client.call(LEG, cabin.text(name))
    shown = name or "(empty)"
    if answer.return_code != expected:
        raise AssertionError(f"leg {shown}: return code {answer.return_code!r}, expected {expected:#04x}")
    if expected != header.SOMEIPReturnCode.E_OK:
        print(f"leg {shown}: return code 0x{answer.return_code:02X}")
        return
    kilometres, length = struct.unpack_from(">dI", answer.payload)
    rest, names = answer.payload[12:], []
    if len(rest) != length:
        raise AssertionError(f"leg {shown}: {len(rest)} bytes of waypoints, not {length}")
    while rest:
        waypoint, rest = cabin.take_text(rest)
        names.append(waypoint)
    print(f"leg {shown}: {kilometres:g} km by {', '.join(names)}")


async def consumption(client):
    before = None
    for _ in range(3):
        event = await asyncio.wait_for(client.events.get(), PATIENCE)
        litres, kilometres = struct.unpack(">fH", event.payload)
        if event.method_id != CONSUMPTION or before and kilometres != (600 if before == 500 else before - 1):
            raise AssertionError(f"consumption: event {event} after {before} km")
        before = kilometres
    print(f"consumption: 3 events, {litres:g} l/100 km, range falling")


async def run():
    discovery = await cabin.discovery()
    transport, client = await Client.create_unicast_endpoint(local_addr=(cabin.ADDRESS, 0))
    discovery.discovery.watch_service(config.Service(SERVICE, INSTANCE, MAJOR, 0), client)
    discovery.start()
    await asyncio.wait_for(asyncio.shield(client.server), PATIENCE)
    print(f"found 0x{SERVICE:04X}.0x{INSTANCE:04X}")
    await leg(client, "commute", 0x00)
    await leg(client, "nowhere", 0x01)
    await leg(client, "", 0x09)
    discovery.discovery.find_subscribe_eventgroup(config.Eventgroup(
        SERVICE, INSTANCE, MAJOR, EVENTGROUP, transport.get_extra_info("sockname"), header.L4Protocols.UDP))
    await consumption(client)
    await cabin.close(discovery)


try:
    asyncio.run(run())
except (AssertionError, TimeoutError, ValueError) as err:
    sys.exit(f"cluster: {err!r}")
