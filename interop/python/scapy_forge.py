"""scapy against our stack: forges datagrams, odd and broken ones too, and dissects what comes
back. Takes the flags of the interop matrix and then lines:

    data NAME      sends the datagrams of that name from a data socket to our service
    sd NAME        the same from the socket of service discovery
    client PORT    from here on data goes to that port of ours
    dissect FILE   dissects the UDP messages of ours in a recording: prints dissected COUNT

What comes back is printed as

    got SERVICE METHOD TYPE CODE PAYLOAD        a message
    got sd TYPE GROUP TTL [PORT]                an entry of a message of service discovery,
                                                with the port of its first endpoint
"""
import selectors
import socket

from scapy.contrib.automotive import someip as s
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw
from scapy.utils import rdpcap

import lines

SESSION = {"sd": 0}
s.SOMEIP.payload_cls_by_srv_id[0xFFFF] = s.SD


def message(payload=b"", service=lines.SERVICE, method=lines.ECHO, **fields):
    header = {"srv_id": service, "sub_id": method, "client_id": lines.CLIENT_ID, "session_id": 1,
              "iface_ver": lines.MAJOR, "msg_type": s.SOMEIP.TYPE_REQUEST, **fields}
    return bytes(s.SOMEIP(**header) / Raw(payload))


def event(payload, number=lines.EVENTS[1]):
    return message(payload, method=number, client_id=0, msg_type=s.SOMEIP.TYPE_NOTIFICATION)


def discovery(entries, options, cut=None, **fields):
    SESSION["sd"] += 1
    body = bytes(s.SD(flags=0xC0, entry_array=entries, option_array=options, **fields))[:cut]
    return bytes(s.SOMEIP(srv_id=0xFFFF, sub_id=0x8100, client_id=0, session_id=SESSION["sd"], iface_ver=1,
                          msg_type=s.SOMEIP.TYPE_NOTIFICATION) / Raw(body))


def subscribe(first=0, count=1, group=1, ttl=5, **fields):
    return s.SDEntry_EventGroup(type=6, index_1=first, n_opt_1=count, srv_id=lines.SERVICE,
                                inst_id=lines.INSTANCE, major_ver=lines.MAJOR, ttl=ttl, eventgroup_id=group, **fields)


def service(kind, **fields):
    return s.SDEntry_Service(type=kind, srv_id=lines.SERVICE, inst_id=lines.INSTANCE, major_ver=lines.MAJOR,
                             ttl=3, minor_ver=0xFFFFFFFF if kind == 0 else 0, **fields)


def forges(own, port):
    """Returns the datagrams by name."""
    endpoint = s.SDOption_IP4_EndPoint(addr=own, l4_proto=0x11, port=port)
    unknown_option = Raw(bytes.fromhex("0005770001020304"))
    unknown_entry = Raw(bytes.fromhex("0a000000") + bytes(12))
    config = s.SDOption_Config(cfg_str=s.SDOption_Config.make_string([("a", "b")]))
    balance = s.SDOption_LoadBalance(priority=1, weight=2)

    def segments(session):
        whole = s.SOMEIP(srv_id=lines.SERVICE, sub_id=lines.ECHO_LARGE, client_id=lines.CLIENT_ID, session_id=session,
                         iface_ver=lines.MAJOR, msg_type=s.SOMEIP.TYPE_TP_REQUEST, data=[Raw(bytes(5000))])
        return [bytes(p) for p in whole.fragment(1392)]

    short = bytes(endpoint)
    short = b"\x00\x08" + short[2:]
    return {
        "one": lambda: [message(b"one")],
        "two in a datagram, unaligned": lambda: [message(b"123") + message(b"four")],
        "three in a datagram": lambda: [message(b"1") + message(b"22") + message(b"333")],
        "junk behind": lambda: [message(b"good") + b"\xa5" * 32],
        "length 0": lambda: [message(len=0)],
        "length 7": lambda: [message(len=7)],
        "length beyond the datagram": lambda: [message(b"x", len=4000)],
        "length huge": lambda: [message(len=0xFFFFFFF8)],
        "cut header": lambda: [message()[:11]],
        "empty datagram": lambda: [b""],
        "wrong protocol version": lambda: [message(proto_ver=2)],
        "wrong interface version": lambda: [message(iface_ver=9)],
        "wrong interface version, unknown method": lambda: [message(iface_ver=9, method=0x99)],
        "unknown service": lambda: [message(service=0x6999)],
        "unknown method": lambda: [message(method=0x99)],
        "acknowledged request": lambda: [message(msg_type=0x40)],
        "unknown type": lambda: [message(msg_type=0x77)],
        "response that nobody waits for": lambda: [message(msg_type=0x80)],
        "segments": lambda: segments(1),
        "segments in reverse": lambda: segments(2)[::-1],
        "segments, shuffled": lambda: [segments(3)[i] for i in (2, 0, 3, 1)],
        "segments, doubled": lambda: [x for x in segments(4) for _ in range(2)],
        "segment of a method without TP": lambda: [message(bytes(4), msg_type=0x20)],
        "subscribe": lambda: [discovery([subscribe()], [endpoint])],
        "subscribe, unknown option": lambda: [discovery([subscribe(count=2)], [unknown_option, endpoint])],
        "subscribe, unknown entry": lambda: [discovery([unknown_entry, subscribe()], [endpoint])],
        "subscribe, options of a stranger": lambda: [discovery([subscribe(first=2)], [config, balance, endpoint])],
        "subscribe, unknown group": lambda: [discovery([subscribe(group=0x999)], [endpoint])],
        "subscribe, wrong major": lambda: [discovery([s.SDEntry_EventGroup(
            type=6, n_opt_1=1, srv_id=lines.SERVICE, inst_id=lines.INSTANCE, major_ver=9, ttl=5,
            eventgroup_id=1)], [endpoint])],
        "subscribe without endpoint": lambda: [discovery([subscribe(count=0)], [])],
        "subscribe, index out of range": lambda: [discovery([subscribe(first=7)], [endpoint])],
        "subscribe, option of length 8": lambda: [discovery([subscribe()], [Raw(short)])],
        "stop subscribe": lambda: [discovery([subscribe(ttl=0)], [endpoint])],
        "find": lambda: [discovery([service(0)], [])],
        "find and subscribe in a datagram": lambda: [
            discovery([service(0)], []) + discovery([subscribe()], [endpoint])],
        "entries that are no multiple of 16": lambda: [discovery([service(0)], [], len_entry_array=15)],
        "entries beyond the message": lambda: [discovery([service(0)], [], len_entry_array=0xFFFFFFF0)],
        "options beyond the message": lambda: [discovery([service(0)], [], len_option_array=0xFFFF)],
        "cut entry": lambda: [discovery([service(0)], [], cut=20)],
        "discovery of another version": lambda: [bytes(s.SOMEIP(
            srv_id=0xFFFF, sub_id=0x8100, session_id=1, iface_ver=2, msg_type=2) / Raw(bytes(12)))],
        "offer": lambda: [discovery([service(1, index_1=0, n_opt_1=1)], [endpoint])],
        "offer, unknown entry and options": lambda: [discovery(
            [unknown_entry, service(1, index_1=0, n_opt_1=3, index_2=3, n_opt_2=1)],
            [unknown_option, config, balance, endpoint])],
        "ack": lambda: [discovery([s.SDEntry_EventGroup(
            type=7, srv_id=lines.SERVICE, inst_id=lines.INSTANCE, major_ver=lines.MAJOR, ttl=5, eventgroup_id=1)], [])],
        "two events, unaligned": lambda: [event(b"123") + event(b"four")],
        "event of nobody": lambda: [event(b"stray", 0x8777)],
    }


def messages(datagram):
    while len(datagram) >= 16:
        size = 8 + int.from_bytes(datagram[4:8], "big")
        yield datagram[:size]
        datagram = datagram[size:]


def show(datagram):
    for part in messages(datagram):
        m = s.SOMEIP(part)
        if m.srv_id != 0xFFFF:
            payload = part[16:]
            lines.say("got", f"{m.srv_id:x}", f"{m.sub_id:x}", f"{m.msg_type:x}", f"{m.retcode:x}", lines.text(payload))
            continue
        sd = m.data[0]
        ports = [o.port for o in sd.option_array if hasattr(o, "port")]
        for e in sd.entry_array:
            port = ports[e.index_1:e.index_1 + 1] if e.n_opt_1 else []
            lines.say("got", "sd", e.type, getattr(e, "eventgroup_id", 0), e.ttl, *port)


def dissect(file, source):
    """Dissects every UDP message from a source and builds it anew: the bytes must be the same."""
    count = 0
    for packet in rdpcap(file):
        if not packet.haslayer(UDP) or packet[IP].src != source or packet[UDP].sport not in (lines.PORT, lines.SD_PORT):
            continue
        for part in messages(bytes(packet[UDP].payload)):
            m = s.SOMEIP(part)
            m.clear_cache()
            if bytes(m) != part:
                lines.say("differs", part.hex(), bytes(m).hex())
            count += 1
    lines.say("dissected", count)


def main():
    flags = lines.flags()
    sd = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sd.bind((flags.unicast, lines.SD_PORT))
    data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    data.bind((flags.unicast, lines.PORT))
    made = forges(flags.unicast, lines.PORT)
    to = {"data": (data, (flags.peer, lines.PORT)), "sd": (sd, (flags.peer, lines.SD_PORT))}
    selector = selectors.DefaultSelector()
    commands = open(0, "rb", buffering=0)  # a line that is read ahead is none that select sees
    for source in (sd, data, commands):
        selector.register(source, selectors.EVENT_READ)
    lines.say("ready")
    while True:
        for key, _ in selector.select():
            if key.fileobj is not commands:
                show(key.fileobj.recv(65535))
                continue
            line = commands.readline().decode()
            if not line:
                return
            command, argument = line.strip().split(" ", 1)
            if command == "client":
                to["data"] = (data, (flags.peer, int(argument)))
            elif command == "dissect":
                dissect(argument, flags.peer)
            else:
                socket_, address = to[command]
                for datagram in made[argument]():
                    socket_.sendto(datagram, address)


main()
