"""pysomeip as a program of the interop matrix: UDP, without TP, E2E and multicast events,
which it does not have."""
import asyncio
import socket

from someip import config, header, sd
from someip.service import MalformedMessageError, SimpleEventgroup, SimpleService

import lines

WANTED = config.Service(lines.SERVICE, lines.INSTANCE, lines.MAJOR)


class Service(SimpleService):
    service_id, version_major, version_minor = lines.SERVICE, lines.MAJOR, lines.MINOR

    def __init__(self, instance):
        super().__init__(instance)
        self.register_method(lines.ECHO, lambda message, _: message.payload)
        self.register_method(lines.REFUSE, self.refuse)
        self.register_method(lines.TELL, self.tell)

    def refuse(self, _message, _addr):
        raise MalformedMessageError

    def tell(self, message, _addr):
        lines.say("told", lines.text(message.payload))


class Client(sd.SOMEIPDatagramProtocol, sd.ClientServiceListener):
    """Follows the service, calls it and takes its events."""

    def __init__(self):
        super().__init__()
        self.server = None
        self.session = 0

    def service_offered(self, service, source):
        for option in service.options_1 + service.options_2:
            if option.l4proto == header.L4Protocols.UDP:
                self.server = (str(option.address), option.port)
        lines.say("up")

    def service_stopped(self, service, source):
        self.server = None
        lines.say("down")

    def message_received(self, message, _addr, multicast):
        if message.message_type == header.SOMEIPMessageType.NOTIFICATION:
            lines.say("event", f"{message.method_id:x}", "-", lines.text(message.payload))
        else:
            lines.say("answer", f"{message.return_code:x}", lines.text(message.payload))

    def request(self, method, payload, kind):
        if self.server is None:
            lines.say("failed", "not offered")
            return
        self.session = self.session % 0xFFFF + 1
        request = header.SOMEIPHeader(
            lines.SERVICE, method, lines.CLIENT_ID, self.session, lines.MAJOR, kind, payload=payload)
        self.send(request.build(), self.server)


async def run(flags):
    family = socket.AF_INET6 if ":" in flags.unicast else socket.AF_INET
    _, _, discovery = await sd.ServiceDiscoveryProtocol.create_endpoints(
        family, flags.unicast, flags.sd_multicast, flags.device, lines.SD_PORT)
    discovery.timings.INITIAL_DELAY_MAX = 0.01
    loop = asyncio.get_running_loop()
    service = client = None
    if flags.role == "serve":
        _, service = await Service.create_unicast_endpoint(lines.INSTANCE, local_addr=(flags.unicast, lines.PORT))
        for group in flags.groups:
            events = SimpleEventgroup(service, group)
            if group in lines.FIELDS:
                events.values[lines.EVENTS[group]] = lines.FIRST
            service.register_eventgroup(events)
        service.start_announce(discovery.announcer)
    else:
        transport, client = await Client.create_unicast_endpoint(local_addr=(flags.unicast, 0))
        discovery.discovery.watch_service(WANTED, client)
        for group in flags.groups:
            discovery.discovery.find_subscribe_eventgroup(config.Eventgroup(
                lines.SERVICE, lines.INSTANCE, lines.MAJOR, group,
                transport.get_extra_info("sockname"), header.L4Protocols.UDP))
    discovery.start()
    lines.say("ready")
    async for command, _, number, payload in lines.commands():
        if command == "notify":
            group = next(g for g, e in lines.EVENTS.items() if e == number)
            service.eventgroups[group].values[number] = payload
            service.eventgroups[group].notify_once([number])
        else:
            kind = header.SOMEIPMessageType.REQUEST
            if command == "send":
                kind = header.SOMEIPMessageType.REQUEST_NO_RETURN
            client.request(number, payload, kind)
    discovery.stop()
    await asyncio.sleep(0.1)  # what ends is sent by tasks of the library, which tell nobody


asyncio.run(run(lines.flags()))
