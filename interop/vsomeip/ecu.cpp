// The climate ECU of the sample vehicle on vsomeip: the interface Climate, instances left and
// right, as vehicles/cabin/interfaces/cabin/climate/v1/climate.proto describes and deploys it.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "stack.hpp"
#include "wire.hpp"

namespace {

constexpr uint16_t kService = 0x4001;
constexpr uint8_t kMajor = 1;
constexpr uint32_t kMinor = 2;

enum : uint16_t {
    kDescribe = 0x0001,
    kSetVents = 0x0002,
    kSetMode = 0x0003,
    kBoost = 0x0004,
    kPurge = 0x0005,
    kGetTarget = 0x0010,
    kSetTarget = 0x0011,
    kAirQuality = 0x8001,
    kTarget = 0x8002,
};

enum : uint8_t {
    kNotOk = 0x01,
    kUnknownMethod = 0x03,
    kMalformed = 0x09,
    kWrongType = 0x0A,
    kBlowerBlocked = 0x21,
    kNotInThisMode = 0x22,
};

enum : uint8_t { kModeOff = 0, kModeAuto = 1 };

// Change says what a call changed that subscribers are to learn.
enum class Change { kNone, kTarget, kAirQuality };

// Failure is an error that a method answers with.
struct Failure {
    uint8_t code;
};

// Zone is one instance.
class Zone {
public:
    struct Sensor {
        std::string name;
        float celsius;
    };

    Zone(vsomeip::application &app, uint16_t instance, std::string name, std::vector<Sensor> sensors)
        : app_(app), instance_(instance), name_(std::move(name)), sensors_(std::move(sensors)) {}

    void offer() {
        // Events first: a subscriber that is there at once then misses none.
        app_.offer_event(kService, instance_, kAirQuality, {1}, vsomeip::event_type_e::ET_EVENT,
                         std::chrono::milliseconds::zero(), false, true, nullptr,
                         vsomeip::reliability_type_e::RT_UNRELIABLE);
        app_.offer_event(kService, instance_, kTarget, {2}, vsomeip::event_type_e::ET_FIELD,
                         std::chrono::milliseconds::zero(), false, true, nullptr,
                         vsomeip::reliability_type_e::RT_UNRELIABLE);
        app_.register_message_handler(kService, instance_, vsomeip::ANY_METHOD,
                                      [this](const std::shared_ptr<vsomeip::message> &m) { handle(m); });
        notify_target();
        app_.offer_service(kService, instance_, kMajor, kMinor);
    }

    void notify_air_quality() {
        peer::Writer out;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            out.number(co2_, 2);
            out.real32(12.5F);
            out.text(name_);
            out.counted(4, [&] {
                out.number(co2_, 2);
                out.number(co2_ + 1U, 2);
            });
        }
        app_.notify(kService, instance_, kAirQuality, peer::payload_of(out.bytes()), true);
    }

private:
    // handle checks in the order of the protocol: method, message type, payload.
    void handle(const std::shared_ptr<vsomeip::message> &m) {
        const bool answered = m->get_message_type() == vsomeip::message_type_e::MT_REQUEST;
        if (!answered && m->get_message_type() != vsomeip::message_type_e::MT_REQUEST_NO_RETURN)
            return;
        try {
            if (!known(m->get_method()))
                throw Failure{kUnknownMethod};
            if (answered == (m->get_method() == kPurge))
                throw Failure{kWrongType};
            const auto payload = m->get_payload();
            peer::Reader in(payload->get_data(), payload->get_length());
            Change change = Change::kNone;
            const auto out = call(m->get_method(), in, change);
            if (answered)
                peer::respond(app_, m, out);
            if (change == Change::kTarget)
                notify_target();
            if (change == Change::kAirQuality)
                notify_air_quality();
        } catch (const Failure &f) {
            if (answered)
                peer::fail(app_, m, f.code);
        } catch (const peer::Malformed &) {
            if (answered)
                peer::fail(app_, m, kMalformed);
        }
    }

    static bool known(uint16_t method) {
        return (method >= kDescribe && method <= kPurge) || method == kGetTarget || method == kSetTarget;
    }

    std::vector<uint8_t> call(uint16_t method, peer::Reader &in, Change &change) {
        std::lock_guard<std::mutex> lock(mutex_);
        peer::Writer out;
        switch (method) {
        case kDescribe:
            describe(out);
            break;
        case kSetVents:
            set_vents(in, out);
            break;
        case kSetMode: {
            const auto mode = static_cast<uint8_t>(in.number(1));
            in.text(2, 64);
            out.number(std::exchange(mode_, mode), 1);
            break;
        }
        case kBoost:
            out.number(boost(static_cast<uint16_t>(in.number(2))), 2);
            break;
        case kPurge:
            co2_ = static_cast<uint16_t>(400 + in.number(1));
            change = Change::kAirQuality;
            break;
        case kGetTarget:
            out.real32(target_);
            break;
        case kSetTarget:
            target_ = std::clamp(in.real32(), 16.0F, 28.0F);
            out.real32(target_);
            change = Change::kTarget;
            break;
        default:
            throw Failure{kUnknownMethod};
        }
        return out.bytes();
    }

    void describe(peer::Writer &out) const {
        out.text(name_);
        out.number(mode_, 1);
        out.counted(4, [&] {
            for (const auto &sensor : sensors_) {
                out.text(sensor.name);
                out.real32(sensor.celsius);
                out.flag(true); // healthy
            }
        });
        out.number(258, 2);
    }

    static void set_vents(peer::Reader &in, peer::Writer &out) {
        peer::Reader vents = in.counted(2);
        int count = 0;
        out.counted(1, [&] {
            while (!vents.empty()) {
                if (++count > 16)
                    throw peer::Malformed("too many vents");
                peer::Reader vent = vents.counted(2);
                const auto position = vent.number(1);
                const auto opening = vent.number(1);
                vent.number(2); // the direction moves nothing here
                if (opening <= 100)
                    out.number(position, 1);
            }
        });
    }

    uint16_t boost(uint16_t seconds) const {
        if (mode_ == kModeOff)
            throw Failure{kNotInThisMode};
        if (seconds == 0)
            throw Failure{kNotOk};
        if (seconds > 600)
            throw Failure{kBlowerBlocked};
        return std::min<uint16_t>(seconds, 120);
    }

    void notify_target() {
        peer::Writer out;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            out.real32(target_);
        }
        // Forced: a set to the value it already has is notified too.
        app_.notify(kService, instance_, kTarget, peer::payload_of(out.bytes()), true);
    }

    vsomeip::application &app_;
    const uint16_t instance_;
    const std::string name_;
    const std::vector<Sensor> sensors_;

    std::mutex mutex_; // guards what follows
    uint8_t mode_ = kModeAuto;
    float target_ = 21.0F;
    uint16_t co2_ = 800;
};

// Ticker calls something every 500 ms until it is destroyed.
class Ticker {
public:
    template <typename Tick> explicit Ticker(Tick tick) {
        thread_ = std::thread([this, tick] {
            auto next = std::chrono::steady_clock::now();
            std::unique_lock<std::mutex> lock(mutex_);
            while (!ended_.wait_until(lock, next += std::chrono::milliseconds(500), [this] { return end_; }))
                tick();
        });
    }
    ~Ticker() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            end_ = true;
        }
        ended_.notify_all();
        thread_.join();
    }

private:
    std::mutex mutex_;
    std::condition_variable ended_;
    bool end_ = false;
    std::thread thread_;
};

} // namespace

int main(int argc, char **argv) try {
    const peer::Flags flags(argc, argv);
    const auto left_port = static_cast<uint16_t>(flags.number("left-port", 30509));
    const auto right_port = static_cast<uint16_t>(flags.number("right-port", 30510));
    peer::Stack stack("climate-ecu", flags,
                      {{kService, 1, kMajor, kMinor, left_port, left_port},
                       {kService, 2, kMajor, kMinor, right_port, right_port}});

    Zone left(stack.app(), 1, "left", {{"footwell", 19.5F}, {"roof", 21.25F}});
    Zone right(stack.app(), 2, "right", {{"footwell", 18.5F}});
    left.offer();
    right.offer();
    stack.start();
    std::printf("climate ECU on vsomeip is up\n");

    {
        Ticker ticker([&] {
            left.notify_air_quality();
            right.notify_air_quality();
        });
        peer::Stack::wait();
    }
    stack.stop();
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "ecu: %s\n", e.what());
    return 1;
}
