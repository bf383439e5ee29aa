"""opensomeip as a program of the interop matrix, by its native classes: the wrappers in Python
lose the addresses that service discovery finds. IPv4; UDP, or with --transport tcp TCP, as an offer
of the binding has one endpoint; no events, as the binding tells a
server of no subscriber, and a client subscribes with the port of service discovery."""
import datetime
import sys

from opensomeip import _opensomeip as native

import lines


class Listener(native.ITransportListener):
    """Hands messages over as they come."""

    def __init__(self, receive):
        super().__init__()
        self.receive = receive

    def on_message_received(self, message, sender):
        self.receive(message, sender)

    def on_connection_lost(self, endpoint):
        pass

    def on_connection_established(self, endpoint):
        pass

    def on_error(self, error):
        pass


def message(method, kind, payload, client=lines.CLIENT_ID, session=1, code=native.ReturnCode.E_OK):
    m = native.Message(native.MessageId(lines.SERVICE, method), native.RequestId(client, session), kind, code)
    m.interface_version = lines.MAJOR
    m.payload = payload
    return m


def udp_config():
    config = native.UdpTransportConfig()
    config.max_message_size = 1 << 20  # beyond 1400 bytes it segments
    return config


def sd_config(flags, port):
    config = native.sd.SdConfig()
    config.multicast_address, config.multicast_port = flags.sd_multicast, lines.SD_PORT
    config.unicast_address, config.unicast_port = flags.unicast, port
    config.ttl = datetime.timedelta(seconds=3)
    config.initial_delay = datetime.timedelta(milliseconds=10)
    config.repetition_base = datetime.timedelta(milliseconds=20)
    config.cyclic_offer = datetime.timedelta(seconds=1)
    return config


def instance(flags):
    found = native.sd.ServiceInstance(lines.SERVICE, lines.INSTANCE, lines.MAJOR, lines.MINOR)
    found.protocol = 6 if flags.transport == "tcp" else 17
    return found


def transport_of(flags, port, listener):
    local = native.Endpoint(flags.unicast, port)
    if flags.transport != "tcp":
        transport = native.UdpTransport(local, udp_config())
    else:
        config = native.TcpTransportConfig()
        config.magic_cookie_enabled = True
        transport = native.TcpTransport(config)
        transport.initialize(local)
        if port:
            transport.enable_server_mode()
    transport.set_listener(listener)
    transport.start()
    return transport


class Server:
    def __init__(self, flags):
        self.listener = Listener(self.answer)
        self.transport = transport_of(flags, lines.PORT, self.listener)
        self.sd = native.sd.SdServer(sd_config(flags, lines.SD_PORT))
        self.sd.initialize()
        self.sd.offer_service(instance(flags), f"{flags.unicast}:{lines.PORT}", "", flags.groups)

    def answer(self, m, sender):
        method = m.message_id.method_id
        if m.message_type == native.MessageType.REQUEST_NO_RETURN:
            lines.say("told", lines.text(m.payload))
            return
        answer = message(method, native.MessageType.RESPONSE, m.payload, m.request_id.client_id, m.request_id.session_id)
        if method not in (lines.ECHO, lines.ECHO_LARGE):
            answer = message(method, native.MessageType.ERROR, b"", m.request_id.client_id, m.request_id.session_id,
                             native.ReturnCode.E_NOT_OK)
        self.transport.send_message(answer, sender)

    def stop(self):
        self.sd.stop_offer_service(lines.SERVICE, lines.INSTANCE)
        self.sd.shutdown()
        self.transport.stop()


class Client:
    def __init__(self, flags):
        self.server, self.session = None, 0
        self.listener = Listener(self.receive)
        self.transport = transport_of(flags, 0, self.listener)
        self.sd = native.sd.SdClient(sd_config(flags, lines.SD_PORT))
        self.sd.initialize()
        self.sd.subscribe_service(lines.SERVICE, self.up, self.down)

    def up(self, found):
        tcp = isinstance(self.transport, native.TcpTransport)
        kind = native.TransportProtocol.TCP if tcp else native.TransportProtocol.UDP
        known, self.server = self.server, native.Endpoint(found.ip_address, found.port, kind)
        if known is None:
            lines.say("up")

    def down(self, _found):
        self.server = None
        lines.say("down")

    def receive(self, m, _sender):
        lines.say("answer", f"{int(m.return_code):x}", lines.text(m.payload))

    def request(self, method, payload, kind):
        if self.server is None:
            lines.say("failed", "not offered")
            return
        if isinstance(self.transport, native.TcpTransport) and not self.transport.is_connected():
            self.transport.connect(self.server)
        self.session = self.session % 0xFFFF + 1
        self.transport.send_message(message(method, kind, payload, session=self.session), self.server)

    def stop(self):
        self.sd.shutdown()
        self.transport.stop()


def main():
    flags = lines.flags()
    program = Server(flags) if flags.role == "serve" else Client(flags)
    lines.say("ready")
    for line in sys.stdin:
        command, _, number, payload = lines.parse(line)
        kind = native.MessageType.REQUEST_NO_RETURN if command == "send" else native.MessageType.REQUEST
        program.request(number, payload, kind)
    program.stop()


main()
