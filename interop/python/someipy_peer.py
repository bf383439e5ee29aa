# SPDX-License-Identifier: Apache-2.0
"""someipy as a program of the interop matrix, by its public interface: a daemon of its own
that does the work, IPv4 only, without TP, E2E, fields, fire and forget and multicast events,
which it does not have."""
import asyncio
import json
import logging
import os
import sys
import tempfile

import someipy
import someipy.someipy_logging
from someipy import Event, EventGroup, Method, MethodResult, ReturnCode, ServiceBuilder, TransportLayerProtocol

import lines

TRANSPORTS = {"udp": TransportLayerProtocol.UDP, "tcp": TransportLayerProtocol.TCP}
TCP_GROUPS = {3, 4}
# The library wants fixed ports; those of a program that was killed stay taken for a while.
CLIENT_PORT = 40000 + os.getpid() % 10000
CLIENT_PORTS = {"udp": CLIENT_PORT, "tcp": CLIENT_PORT + 1}


def transport_of(group):
    return "tcp" if group in TCP_GROUPS else "udp"


def refuse(_payload, _addr):
    result = MethodResult()
    result.return_code = ReturnCode.E_NOT_OK
    return result


def echo(payload, _addr):
    result = MethodResult()
    result.payload = payload
    return result


def service_of(groups, methods):
    builder = ServiceBuilder().with_service_id(lines.SERVICE).with_major_version(lines.MAJOR)
    for number, transport, handler in methods:
        builder.with_method(Method(number, TRANSPORTS[transport], handler))
    for group in groups:
        event = Event(lines.EVENTS[group], TRANSPORTS[transport_of(group)])
        builder.with_eventgroup(EventGroup(group, [event]))
    return builder.build()


async def connect(directory, flags):
    """Starts a daemon and returns its process and a connection to it."""
    config = {
        "socket_path": os.path.join(directory, "socket"), "sd_address": flags.sd_multicast,
        "sd_port": lines.SD_PORT, "interface": flags.unicast, "log_level": "ERROR",
        "log_path": os.path.join(directory, "log"),
    }
    file = os.path.join(directory, "config.json")
    with open(file, "w", encoding="utf-8") as out:
        json.dump(config, out)
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "someipy.someipyd", "--config", file, stdin=asyncio.subprocess.DEVNULL)
    while not os.path.exists(config["socket_path"]):
        await asyncio.sleep(0.01)
    return daemon, await someipy.connect_to_someipy_daemon(config)


async def serve(connection, flags):
    # A method serves both transports; what it is declared with opens the port. The daemon
    # fails on subscriptions to a service that has methods.
    methods = [] if flags.groups else [(lines.ECHO, "udp", echo), (lines.REFUSE, "tcp", refuse)]
    service = service_of(flags.groups, methods)
    instance = someipy.ServerServiceInstance(
        connection, service, lines.INSTANCE, flags.unicast, lines.PORT, ttl=3, cyclic_offer_delay_ms=1000)
    await instance.start_offer()
    lines.say("ready")
    async for _, _, number, payload in lines.commands():
        group = next(g for g, e in lines.EVENTS.items() if e == number)
        instance.send_event(group, number, payload)
    await instance.stop_offer()


async def follow(client):
    up = False
    while True:
        found = await client.is_available()
        if found != up:
            up = found
            lines.say("up" if up else "down")
        await asyncio.sleep(0.05)


async def use(connection, flags):
    clients = {}
    for transport, port in CLIENT_PORTS.items():
        groups = [g for g in flags.groups if transport_of(g) == transport]
        service = service_of(groups, [(m, transport, None) for m in (lines.ECHO, lines.REFUSE)])
        client = someipy.ClientServiceInstance(
            connection, service, lines.INSTANCE, flags.unicast, port, lines.CLIENT_ID + port - CLIENT_PORT)
        client.register_callback(lambda event, payload: lines.say("event", f"{event:x}", "-", lines.text(payload)))
        for group in service.eventgroups.values():
            client.subscribe_eventgroup(group, 5)
        clients[transport] = client
    following = asyncio.create_task(follow(clients["udp"]))
    lines.say("ready")
    async for _, transport, number, payload in lines.commands():
        try:
            result = await clients[transport].call_method(number, payload)
            lines.say("answer", f"{result.return_code.value:x}", lines.text(result.payload))
        except (RuntimeError, asyncio.TimeoutError) as error:
            lines.say("failed", type(error).__name__, error)
    following.cancel()
    for client in clients.values():
        for group in client.service.eventgroups.values():
            client.unsubscribe_eventgroup(group)


async def run(flags):
    with tempfile.TemporaryDirectory() as directory:
        daemon, connection = await connect(directory, flags)
        await (serve if flags.role == "serve" else use)(connection, flags)
        await asyncio.sleep(0.1)  # the daemon sends what ends, and tells nobody when
        daemon.terminate()
        await daemon.wait()


someipy.someipy_logging.set_someipy_log_level(logging.ERROR)
asyncio.run(run(lines.flags()))
