// Measures calls of a SOME/IP service with 8 bytes of payload and prints one line of JSON.
//
// --service, --instance, --major, --method: what is called (0x6001, 1, 1, 1)
// --calls, --warmup: how many calls are measured (10000) after how many (1000)
// --in-flight: 1 measures the time of each call, sent from one thread that waits for the
//   answer as a blocking proxy does; more sends the next request from the handler of an
//   answer and measures the rate.
// --burst: instead, the number of events that bench_service floods on request; measured is the
//   rate between the first and the last that arrive, until none comes for half a second.
// --find: seconds to wait for the service (20)
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "stack.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double micros(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

struct Bench {
    std::mutex mutex;
    std::condition_variable changed;
    bool available = false;
    Clock::time_point first, last; // of the events
    long events = 0;
    long answered = 0, failed = 0, sent = 0;
};

// until waits for a condition on the state; a peer that stays silent ends the program.
template <typename Condition>
void until(Bench &b, std::unique_lock<std::mutex> &lock, std::chrono::seconds limit, const char *what,
           Condition condition) {
    if (!b.changed.wait_for(lock, limit, condition))
        throw std::runtime_error(what);
}

// burst asks for a flood of events and reports what arrived.
void burst(Bench &b, std::unique_lock<std::mutex> &lock, const std::function<void()> &request, long expected) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(500)); // for the subscription
    request();
    lock.lock();
    until(b, lock, std::chrono::seconds(10), "no event came", [&] { return b.events > 0; });
    for (long seen = -1; b.events < expected && seen != b.events;) {
        seen = b.events;
        b.changed.wait_for(lock, std::chrono::milliseconds(500), [&] { return b.events == expected; });
    }
    std::printf("{\"expected\":%ld,\"events\":%ld,\"events_per_s\":%.0f}\n", expected, b.events,
                static_cast<double>(b.events - 1) / (micros(b.last - b.first) / 1e6));
}

} // namespace

int main(int argc, char **argv) try {
    const peer::Flags flags(argc, argv);
    const auto service = static_cast<uint16_t>(flags.number("service", 0x6001));
    const auto instance = static_cast<uint16_t>(flags.number("instance", 1));
    const auto major = static_cast<uint8_t>(flags.number("major", 1));
    const auto method = static_cast<uint16_t>(flags.number("method", 1));
    const long calls = flags.number("calls", 10000), warmup = flags.number("warmup", 1000);
    const long in_flight = flags.number("in-flight", 1);
    const long flood = flags.number("burst", 0);
    constexpr uint16_t kBurst = 0x0002, kEvent = 0x8001;
    const std::chrono::seconds limit(flags.number("find", 20));
    if (calls < 1 || warmup < 0 || in_flight < 1)
        throw std::runtime_error("--calls and --in-flight are at least 1, --warmup at least 0");

    const long total = warmup + calls;
    Clock::time_point begin, end;
    Bench b; // used by handlers, so it outlives the stack
    peer::Stack stack("bench-client", flags);
    vsomeip::application &app = stack.app();
    const auto payload = peer::payload_of({1, 2, 3, 4, 5, 6, 7, 8});
    const auto call = [&](uint16_t id) {
        auto request = vsomeip::runtime::get()->create_request();
        request->set_service(service);
        request->set_instance(instance);
        request->set_method(id);
        request->set_interface_version(major);
        request->set_payload(payload);
        app.send(request);
    };
    const auto send = [&] { call(method); };
    app.register_availability_handler(
        service, instance,
        [&](vsomeip::service_t, vsomeip::instance_t, bool available) {
            std::lock_guard<std::mutex> lock(b.mutex);
            b.available = available;
            b.changed.notify_all();
        },
        major, vsomeip::ANY_MINOR);
    app.register_message_handler(
        service, instance, method, [&](const std::shared_ptr<vsomeip::message> &m) {
            bool next = false;
            {
                std::lock_guard<std::mutex> lock(b.mutex);
                ++b.answered;
                if (m->get_return_code() != vsomeip::return_code_e::E_OK)
                    ++b.failed;
                if (b.answered == warmup)
                    begin = Clock::now();
                if (b.answered == total)
                    end = Clock::now();
                if (in_flight > 1 && b.sent < total) {
                    ++b.sent;
                    next = true;
                }
            }
            if (next)
                send();
            b.changed.notify_all();
        });
    if (flood > 0) {
        app.register_message_handler(service, instance, kEvent, [&](const std::shared_ptr<vsomeip::message> &) {
            std::lock_guard<std::mutex> lock(b.mutex);
            b.last = Clock::now();
            if (b.events++ == 0)
                b.first = b.last;
            if (b.events == flood)
                b.changed.notify_all();
        });
        app.request_event(service, instance, kEvent, {1}, vsomeip::event_type_e::ET_EVENT,
                          vsomeip::reliability_type_e::RT_UNRELIABLE);
        app.subscribe(service, instance, 1, major, kEvent);
    }
    app.request_service(service, instance, major, vsomeip::ANY_MINOR);
    stack.start();

    std::unique_lock<std::mutex> lock(b.mutex);
    until(b, lock, limit, "the service did not appear", [&] { return b.available; });

    if (flood > 0) {
        burst(b, lock, [&] { call(kBurst); }, flood);
        lock.unlock();
        stack.stop();
        return 0;
    }
    std::vector<double> times;
    if (in_flight == 1) {
        times.reserve(static_cast<size_t>(calls));
        for (long i = 0; i < total; ++i) {
            lock.unlock();
            const auto sent = Clock::now();
            send();
            lock.lock();
            until(b, lock, std::chrono::seconds(5), "a call was not answered", [&] { return b.answered > i; });
            if (i >= warmup)
                times.push_back(micros(Clock::now() - sent));
        }
    } else {
        begin = Clock::now(); // of use where there is no warm-up
        b.sent = std::min(in_flight, total);
        const long first = b.sent;
        lock.unlock();
        for (long i = 0; i < first; ++i)
            send();
        lock.lock();
        until(b, lock, std::chrono::seconds(120), "calls were not answered", [&] { return b.answered == total; });
    }
    const double rate = static_cast<double>(calls) / (micros(end - begin) / 1e6);
    const long failed = b.failed;
    lock.unlock();

    if (in_flight == 1) {
        std::sort(times.begin(), times.end());
        const auto at = [&](double q) { return times[static_cast<size_t>(q * static_cast<double>(times.size() - 1))]; };
        std::printf("{\"calls\":%ld,\"in_flight\":1,\"failed\":%ld,\"p50_us\":%.1f,\"p99_us\":%.1f,"
                    "\"min_us\":%.1f,\"max_us\":%.1f}\n",
                    calls, failed, at(0.5), at(0.99), times.front(), times.back());
    } else {
        std::printf("{\"calls\":%ld,\"in_flight\":%ld,\"failed\":%ld,\"calls_per_s\":%.0f}\n", calls, in_flight, failed,
                    rate);
    }
    stack.stop();
    return failed == 0 ? 0 : 1;
} catch (const std::exception &e) {
    std::fprintf(stderr, "bench_client: %s\n", e.what());
    return 1;
}
