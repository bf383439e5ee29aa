// Answers every request with its own payload, and on request floods an event, to measure
// vsomeip against.
//
// --service, --instance, --major: what is offered (0x6001, 1, 1); --port: UDP and TCP (30600);
// --burst: number of notifications of event 0x8001 (eventgroup 1) that a request of method
// 0x0002 sets off, each with a 4-byte number and zeros up to --size bytes (8). The field
// 0x8002 (eventgroup 2) has a value of 8 bytes.
#include <cstdio>

#include "stack.hpp"
#include "wire.hpp"

int main(int argc, char **argv) try {
    const peer::Flags flags(argc, argv);
    const auto service = static_cast<uint16_t>(flags.number("service", 0x6001));
    const auto instance = static_cast<uint16_t>(flags.number("instance", 1));
    const auto major = static_cast<uint8_t>(flags.number("major", 1));
    const auto port = static_cast<uint16_t>(flags.number("port", 30600));
    const auto burst = static_cast<uint32_t>(flags.number("burst", 30000));
    const auto size = static_cast<size_t>(flags.number("size", 8));
    constexpr uint16_t kBurst = 0x0002, kEvent = 0x8001, kField = 0x8002;

    peer::Stack stack("bench-service", flags, {{service, instance, major, 0, port, port}});
    vsomeip::application &app = stack.app();
    app.offer_event(service, instance, kEvent, {1}, vsomeip::event_type_e::ET_EVENT,
                    std::chrono::milliseconds::zero(), false, true, nullptr,
                    vsomeip::reliability_type_e::RT_UNRELIABLE);
    app.offer_event(service, instance, kField, {2}, vsomeip::event_type_e::ET_FIELD,
                    std::chrono::milliseconds::zero(), false, true, nullptr,
                    vsomeip::reliability_type_e::RT_UNRELIABLE);
    app.notify(service, instance, kField, peer::payload_of(std::vector<uint8_t>(8)), true);
    app.register_message_handler(
        service, instance, vsomeip::ANY_METHOD, [&](const std::shared_ptr<vsomeip::message> &m) {
            if (m->get_message_type() != vsomeip::message_type_e::MT_REQUEST)
                return;
            auto response = vsomeip::runtime::get()->create_response(m);
            response->set_payload(m->get_payload());
            app.send(response);
            if (m->get_method() != kBurst)
                return;
            for (uint32_t i = 0; i < burst; ++i) {
                peer::Writer out;
                out.number(i, 4);
                std::vector<uint8_t> bytes = out.bytes();
                bytes.resize(size);
                app.notify(service, instance, kEvent, peer::payload_of(bytes), true);
            }
        });
    app.offer_service(service, instance, major, 0);
    stack.start();
    std::printf("bench service is up\n");
    peer::Stack::wait();
    stack.stop();
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "bench_service: %s\n", e.what());
    return 1;
}
