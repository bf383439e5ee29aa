"""A client of the sample vehicle on grpcio, the second implementation of gRPC: it knows the
egress listener of its HPC and the .proto files, or asks for them by reflection.

    grpcio_client.py HOST:PORT PROTO_DIRECTORY...

It prints a line for each step and ends with status 0 if all was as it should be. A line
"do WHAT PROGRAM" asks whoever started it to stop, start, kill, freeze or thaw a program of the
vehicle and to answer with a line when that is done."""
import sys

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status

TARGET = sys.argv[1]
sys.path += sys.argv[2:]  # where the .proto files are found, which become modules here
climate, climates = grpc.protos_and_services("cabin/climate/v1/climate.proto")
trip, trips = grpc.protos_and_services("cabin/trip/v1/trip.proto")
errors = grpc.protos("carisma/v1/error.proto")

CLIMATE = "cabin.climate.v1.climate"
PATIENCE = 30  # seconds for anything that must come
# Both mean that a watch is to be opened again, see docs/mapping.md.
RECONNECT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL)


def order(what, program):
    print("do", what, program, flush=True)
    if not sys.stdin.readline():
        sys.exit("nobody does it")


def same(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def channel(authority=None):
    options = [("grpc.default_authority", authority)] if authority else []
    # Reconnects are the client's own affair; these are quick.
    options += [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500)]
    return grpc.insecure_channel(TARGET, options=options)


def detail(error):
    """Returns the carisma.v1.ErrorDetail of an error, empty if it has none."""
    found = errors.ErrorDetail()
    status = rpc_status.from_call(error)
    for packed in status.details if status else ():
        packed.Unpack(found)
    return found


def fails(codes, call, request, **options):
    """Makes a call that must fail, with one code or one of several, and returns the detail of
    the error."""
    try:
        got = call(request, timeout=options.pop("timeout", PATIENCE), **options)
    except grpc.RpcError as error:
        if error.code() not in (codes if isinstance(codes, tuple) else (codes,)):
            raise
        return detail(error)
    raise AssertionError(f"got {got!r}, want {codes}")


def until_served(call, request):
    """Returns the first answer; before it there may be UNAVAILABLE, with the reason."""
    while True:
        try:
            return call(request, timeout=PATIENCE)
        except grpc.RpcError as error:
            if error.code() not in RECONNECT:
                raise


def calls(left):
    same(left.Describe(climate.ClimateDescribeRequest()).zone, "left")
    # Structs in arrays, over TCP.
    vents = [climate.Vent(position=1, opening=80), climate.Vent(position=2, opening=101), climate.Vent(position=3)]
    same(list(left.SetVents(climate.ClimateSetVentsRequest(vents=vents)).moved), [1, 3])
    mode = climate.ClimateSetModeRequest(mode=climate.MODE_HEAT, reason="winter")
    same(left.SetMode(mode).previous, climate.MODE_AUTO)
    same(left.Purge(climate.ClimatePurgeRequest(strength=50)), climate.ClimatePurgeResponse())
    # Many at once, on one connection.
    many = [left.Boost.future(climate.ClimateBoostRequest(seconds=s), timeout=PATIENCE) for s in range(1, 101)]
    same([call.result().granted for call in many], list(range(1, 101)))


def failures(left, native):
    found = fails(grpc.StatusCode.UNKNOWN, left.Boost, climate.ClimateBoostRequest(seconds=601))
    same((found.application_error, found.return_code, found.exception), ("BLOWER_BLOCKED", 0x21, True))
    found = fails(grpc.StatusCode.UNKNOWN, left.Boost, climate.ClimateBoostRequest())
    same((found.application_error, found.return_code), ("", 0x01))
    request = climate.ClimateSetVentsRequest(vents=[climate.Vent(position=1), climate.Vent(position=300)])
    same(fails(grpc.StatusCode.INVALID_ARGUMENT, left.SetVents, request).field_path, "vents[1].position")
    fails(grpc.StatusCode.NOT_FOUND, native.Leg, trip.TripComputerLegRequest(name="nowhere"))


def names(left, native):
    plain = climates.ClimateStub(channel())
    right = (("carisma-instance", "right"),)
    request = climate.ClimateDescribeRequest()
    same(plain.Describe(request, metadata=right).zone, "right")
    same(climates.ClimateStub(channel(f"right.{CLIMATE}")).Describe(request).zone, "right")
    fails(grpc.StatusCode.INVALID_ARGUMENT, left.Describe, request, metadata=right)
    # Of an interface with one instance the path is enough.
    same(native.Leg(trip.TripComputerLegRequest(name="commute")).kilometres, 42.5)


def deadlines(left):
    request = climate.ClimateDescribeRequest()
    order("freeze", "climate-ecu")
    # A client that is late with its own clock may see how the far end gave up.
    late = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED) + RECONNECT
    fails(late, left.Describe, request, timeout=0.3)
    order("thaw", "climate-ecu")
    same(until_served(left.Describe, request).zone, "left")
    fails(late, lambda *a, **k: list(left.WatchAirQuality(*a, **k)), climate.ClimateWatchAirQualityRequest(), timeout=1.5)
    stream = left.WatchAirQuality(climate.ClimateWatchAirQualityRequest(), timeout=PATIENCE)
    same(next(stream).source, "left")
    stream.cancel()
    fails(grpc.StatusCode.CANCELLED, lambda *a, **k: next(stream), None)


def watch(left, ends):
    """Yields the items of a field for ever; how streams ended is appended to ends."""
    while True:
        try:
            yield from left.WatchTargetTemperature(climate.ClimateWatchTargetTemperatureRequest(), timeout=2 * PATIENCE)
        except grpc.RpcError as error:
            if error.code() not in RECONNECT:
                raise
            ends.append((error.code(), detail(error).reason))


def streams(left):
    def target(celsius):
        return climate.ClimateSetTargetTemperatureRequest(celsius=celsius)

    def now(celsius, initial):
        item = next(items)
        same((item.celsius, item.meta.initial), (celsius, initial))

    ends = []
    items = watch(left, ends)
    same(until_served(left.SetTargetTemperature, target(22)).celsius, 22)
    now(22, True)
    for celsius in (23, 24):
        same(left.SetTargetTemperature(target(celsius)).celsius, celsius)
        now(celsius, False)
    # Stopped and started again: the current value once, then changes.
    order("stop", "climate-ecu")
    order("start", "climate-ecu")
    now(21, True)
    same(ends[0], (grpc.StatusCode.UNAVAILABLE, "stopped by its server"))
    same(left.SetTargetTemperature(target(25)).celsius, 25)
    now(25, False)
    # The gateway behind both proxies is killed.
    ends.clear()
    order("kill", "rear/gateway")
    order("start", "rear/gateway")
    now(25, True)
    if not ends:
        raise AssertionError("the stream did not end with its gateway")
    same(left.SetTargetTemperature(target(26)).celsius, 26)
    now(26, False)


def reflection():
    with channel() as there:
        database = ProtoReflectionDescriptorDatabase(there)
        same(sorted(s for s in database.get_services() if s.startswith("cabin.")),
             ["cabin.climate.v1.Climate", "cabin.trip.v1.TripComputer"])
        pool = descriptor_pool.DescriptorPool(database)

        def call(service, method, request, **metadata):
            m = pool.FindServiceByName(service).FindMethodByName(method)
            asked, answer = (message_factory.GetMessageClass(d) for d in (m.input_type, m.output_type))
            invoke = there.unary_unary(
                f"/{service}/{method}", request_serializer=asked.SerializeToString, response_deserializer=answer.FromString)
            return invoke(asked(**request), timeout=PATIENCE, metadata=[(k.replace("_", "-"), v) for k, v in metadata.items()])

        same(call("cabin.climate.v1.Climate", "Describe", {}, carisma_instance="right").zone, "right")
        same(call("cabin.trip.v1.TripComputer", "Average", {"speeds": [20, 40, 60]}).mean, 40)
        same(call("grpc.health.v1.Health", "Check", {"service": f"left.{CLIMATE}"}).status, 1)


def main():
    left = climates.ClimateStub(channel(f"left.{CLIMATE}"))
    native = trips.TripComputerStub(channel())
    for step, *stubs in (
        (calls, left), (failures, left, native), (names, left, native), (reflection,), (deadlines, left), (streams, left),
    ):
        step(*stubs)
        print("ok", step.__name__, flush=True)


main()
