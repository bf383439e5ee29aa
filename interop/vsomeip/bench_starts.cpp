// Waits for a service as it comes and goes, to tell when it can be used. It prints a line for
// each, with the time in nanoseconds of the monotonic clock:
//
//   answered TIME    the first call since it came was answered
//   event TIME       its field 0x8002 (eventgroup 2) was notified
//   gone TIME        it is not available any more
//
// --service, --instance, --major, --method: what is waited for (0x6001, 4, 1, 1)
#include <cstdio>

#include <time.h>

#include "stack.hpp"

namespace {

void tell(const char *what) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    std::printf("%s %lld\n", what, now.tv_sec * 1000000000LL + now.tv_nsec);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) try {
    const peer::Flags flags(argc, argv);
    const auto service = static_cast<uint16_t>(flags.number("service", 0x6001));
    const auto instance = static_cast<uint16_t>(flags.number("instance", 4));
    const auto major = static_cast<uint8_t>(flags.number("major", 1));
    const auto method = static_cast<uint16_t>(flags.number("method", 1));
    constexpr uint16_t kField = 0x8002;

    peer::Stack stack("bench-starts", flags);
    vsomeip::application &app = stack.app();
    app.register_availability_handler(
        service, instance,
        [&](vsomeip::service_t, vsomeip::instance_t, bool available) {
            if (!available) {
                tell("gone");
                return;
            }
            auto request = vsomeip::runtime::get()->create_request();
            request->set_service(service);
            request->set_instance(instance);
            request->set_method(method);
            request->set_interface_version(major);
            request->set_payload(peer::payload_of({1, 2, 3, 4, 5, 6, 7, 8}));
            app.send(request);
        },
        major, vsomeip::ANY_MINOR);
    app.register_message_handler(service, instance, method, [&](const std::shared_ptr<vsomeip::message> &m) {
        if (m->get_return_code() == vsomeip::return_code_e::E_OK)
            tell("answered");
    });
    app.register_message_handler(service, instance, kField,
                                 [&](const std::shared_ptr<vsomeip::message> &) { tell("event"); });
    app.request_event(service, instance, kField, {2}, vsomeip::event_type_e::ET_FIELD,
                      vsomeip::reliability_type_e::RT_UNRELIABLE);
    app.subscribe(service, instance, 2, major, kField);
    app.request_service(service, instance, major, vsomeip::ANY_MINOR);
    stack.start();
    char byte;
    while (std::fread(&byte, 1, 1, stdin) == 1) { // its end is the end of the program
    }
    stack.stop();
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "bench_starts: %s\n", e.what());
    return 1;
}
