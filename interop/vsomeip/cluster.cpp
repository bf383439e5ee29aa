// The instrument cluster of the sample vehicle on vsomeip: a SOME/IP client of TripComputer
// (vehicles/cabin/interfaces/cabin/trip/v1/trip.proto). It calls each method once, listens to
// the event and prints a line for each step, as vehicles/cabin/README.md says; it ends with
// status 0 if all was as it should be.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <stdexcept>

#include "stack.hpp"
#include "wire.hpp"

namespace {

constexpr uint16_t kService = 0x5001, kInstance = 0x0001;
constexpr uint8_t kMajor = 1;
constexpr uint16_t kLeg = 0x0001, kAverage = 0x0002, kConsumption = 0x8001, kEventgroup = 1;
constexpr std::chrono::seconds kPatience(10);

using Bytes = std::vector<uint8_t>;

Bytes bytes_of(const vsomeip::message &m) {
    const auto payload = m.get_payload();
    return Bytes(payload->get_data(), payload->get_data() + payload->get_length());
}

std::string hex(unsigned value, int digits) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%0*X", digits, value);
    return text;
}

void require(bool held, const std::string &what) {
    if (!held)
        throw std::runtime_error(what);
}

// Answer is a return code with the payload that came with it.
struct Answer {
    uint8_t code;
    Bytes payload;
};

// Inbox is what vsomeip's threads hand to the one that plays the steps.
class Inbox {
public:
    void set_available(bool available) {
        change([&] { available_ = available; });
    }
    void answered(uint16_t session, Answer answer) {
        change([&] { answers_[session] = std::move(answer); });
    }
    void event(Bytes payload) {
        change([&] { events_.push_back(std::move(payload)); });
    }
    void wait_available() {
        auto lock = wait("the service was not found", [&] { return available_; });
    }
    Answer wait_answer(uint16_t session) {
        auto lock = wait("no answer", [&] { return answers_.count(session) > 0; });
        return answers_[session];
    }
    Bytes wait_event() {
        auto lock = wait("no event", [&] { return !events_.empty(); });
        Bytes first = std::move(events_.front());
        events_.pop_front();
        return first;
    }

private:
    template <typename Change> void change(Change what) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            what();
        }
        changed_.notify_all();
    }
    template <typename Condition> std::unique_lock<std::mutex> wait(const char *otherwise, Condition condition) {
        std::unique_lock<std::mutex> lock(mutex_);
        require(changed_.wait_for(lock, kPatience, condition), std::string(otherwise) + " within 10 s");
        return lock;
    }

    std::mutex mutex_; // guards what follows
    std::condition_variable changed_;
    bool available_ = false;
    std::map<uint16_t, Answer> answers_;
    std::deque<Bytes> events_;
};

class Cluster {
public:
    Cluster(vsomeip::application &app, Inbox &inbox) : app_(app), inbox_(inbox) {
        app_.register_availability_handler(
            kService, kInstance,
            [&inbox](vsomeip::service_t, vsomeip::instance_t, bool available) { inbox.set_available(available); },
            kMajor, vsomeip::ANY_MINOR);
        app_.register_message_handler(kService, kInstance, vsomeip::ANY_METHOD,
                                      [&inbox](const std::shared_ptr<vsomeip::message> &m) {
                                          if (m->get_method() == kConsumption)
                                              inbox.event(bytes_of(*m));
                                          else
                                              inbox.answered(m->get_session(),
                                                             {static_cast<uint8_t>(m->get_return_code()), bytes_of(*m)});
                                      });
        app_.request_service(kService, kInstance, kMajor, vsomeip::ANY_MINOR);
    }

    void play() {
        inbox_.wait_available();
        std::printf("found %s.%s\n", hex(kService, 4).c_str(), hex(kInstance, 4).c_str());
        leg("commute", "commute", 0);
        leg("nowhere", "nowhere", 0x01);
        leg("", "(empty)", 0x09);
        average({20, 40, 60}, "20 40 60", 0);
        average({}, "(none)", 0x09);
        average({500}, "500", 0x09);
        consumption();
    }

private:
    // call sends a request and waits for its answer.
    Answer call(uint16_t method, bool reliable, const Bytes &payload) {
        auto request = vsomeip::runtime::get()->create_request(reliable);
        request->set_service(kService);
        request->set_instance(kInstance);
        request->set_method(method);
        request->set_interface_version(kMajor); // the default stands for any, and servers refuse it
        request->set_payload(peer::payload_of(payload));
        app_.send(request);
        return inbox_.wait_answer(request->get_session());
    }

    // refused prints an error and says whether the answer was one; it must be the expected.
    static bool refused(const std::string &step, const Answer &answer, uint8_t expected) {
        require(answer.code == expected,
                step + ": return code " + hex(answer.code, 2) + ", expected " + hex(expected, 2));
        if (answer.code != 0)
            std::printf("%s: return code %s\n", step.c_str(), hex(answer.code, 2).c_str());
        return answer.code != 0;
    }

    void leg(const std::string &name, const std::string &shown, uint8_t expected) {
        peer::Writer out;
        out.text(name);
        const Answer answer = call(kLeg, false, out.bytes());
        if (refused("leg " + shown, answer, expected))
            return;
        peer::Reader in(answer.payload.data(), answer.payload.size());
        const double kilometres = in.real64();
        peer::Reader waypoints = in.counted(4);
        std::string by;
        while (!waypoints.empty())
            by += (by.empty() ? "" : ", ") + waypoints.text();
        require(kilometres == 42.5 && by == "Home, Bridge, Office", "leg " + shown + ": another leg: " + by);
        std::printf("leg %s: %g km by %s\n", shown.c_str(), kilometres, by.c_str());
    }

    void average(const std::vector<uint16_t> &speeds, const std::string &shown, uint8_t expected) {
        peer::Writer out;
        out.counted(4, [&] {
            for (const uint16_t speed : speeds)
                out.number(speed, 2);
        });
        const Answer answer = call(kAverage, true, out.bytes());
        if (refused("average " + shown, answer, expected))
            return;
        peer::Reader in(answer.payload.data(), answer.payload.size());
        const float mean = in.real32();
        const auto speed_class = in.number(1);
        static const char *const names[] = {"CITY", "ROAD", "HIGHWAY"};
        require(mean == 40.0F && speed_class == 1, "average " + shown + ": another answer");
        std::printf("average %s: %g %s\n", shown.c_str(), static_cast<double>(mean), names[speed_class]);
    }

    void consumption() {
        app_.request_event(kService, kInstance, kConsumption, {kEventgroup}, vsomeip::event_type_e::ET_EVENT,
                           vsomeip::reliability_type_e::RT_UNRELIABLE);
        app_.subscribe(kService, kInstance, kEventgroup, kMajor);
        float litres = 0;
        uint64_t before = 0;
        for (int i = 0; i < 3; ++i) {
            const Bytes event = inbox_.wait_event();
            peer::Reader in(event.data(), event.size());
            litres = in.real32();
            const uint64_t range = in.number(2);
            require(litres == 6.5F && range >= 500 && range <= 600, "consumption: another value");
            require(i == 0 || range == (before == 500 ? 600 : before - 1), "consumption: the range does not fall by one");
            before = range;
        }
        app_.unsubscribe(kService, kInstance, kEventgroup);
        std::printf("consumption: 3 events, %g l/100 km, range falling\n", static_cast<double>(litres));
    }

    vsomeip::application &app_;
    Inbox &inbox_;
};

} // namespace

int main(int argc, char **argv) try {
    const peer::Flags flags(argc, argv);
    Inbox inbox; // used by handlers, so it outlives the stack
    peer::Stack stack("cluster", flags);
    Cluster cluster(stack.app(), inbox);
    stack.start();
    cluster.play();
    stack.stop();
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "cluster: %s\n", e.what());
    return 1;
}
