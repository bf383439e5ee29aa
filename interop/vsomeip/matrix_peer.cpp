// vsomeip as a program of the interop matrix; interop/matrix/doc.go has the flags and the lines
// that it speaks. TCP addresses of the other side and group are known from service discovery.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <sstream>

#include "stack.hpp"

namespace {

constexpr uint16_t kService = 0x6100, kInstance = 1, kPort = 30700;
constexpr uint8_t kMajor = 1;
constexpr uint16_t kRefuse = 0x0002, kTell = 0x0003, kEchoLarge = 0x0004;
constexpr uint8_t kRefuseCode = 0x21;

// Event is an event of the service, alone in its eventgroup.
struct Event {
    uint16_t id, group;
    bool tcp, field, multicast, tp;
    size_t header;   // bytes of its E2E header, which vsomeip has the application make room for
    const char *e2e; // members of its protection
};

const std::vector<Event> kEvents = {
    {0x8001, 1, false, false, false, false, 0, ""},
    {0x8002, 2, false, true, false, false, 0, ""},
    {0x8003, 3, true, false, false, false, 0, ""},
    {0x8004, 4, true, true, false, false, 0, ""},
    {0x8005, 5, false, false, true, false, 0, ""},
    {0x8006, 6, false, false, false, true, 0, ""},
    // A length of 16 bits: the checksum then takes in all that follows it.
    {0x8011, 7, false, false, false, false, 2,
     R"("profile": "P01", "crc_offset": "0", "counter_offset": "8", "data_id_nibble_offset": "12",
        "data_id_mode": "3", "data_length": "16", "data_id": "0xA73")"},
    {0x8014, 8, false, false, false, false, 12, R"("profile": "P04", "crc_offset": "64", "data_id": "0x2D")"},
    {0x8017, 9, false, false, false, false, 20, R"("profile": "P07", "crc_offset": "64", "data_id": "0x0A0B0C0D")"},
};

std::string hex(unsigned value) {
    std::ostringstream s;
    s << std::hex << value;
    return s.str();
}

std::string hex(const vsomeip::byte_t *data, size_t size) {
    if (size == 0)
        return "-";
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < size; ++i) {
        text += digits[data[i] >> 4];
        text += digits[data[i] & 15];
    }
    return text;
}

std::vector<uint8_t> bytes(const std::string &text) {
    std::vector<uint8_t> out;
    for (size_t i = 0; text != "-" && i + 1 < text.size(); i += 2)
        out.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    return out;
}

std::vector<Event> events_of(const std::string &groups) {
    std::vector<Event> events;
    std::istringstream in(groups);
    for (std::string group; std::getline(in, group, ',');)
        for (const auto &e : kEvents)
            if (e.group == std::stoul(group))
                events.push_back(e);
    return events;
}

std::string quoted_hex(unsigned value) { return "\"0x" + hex(value) + "\""; }

// details are the members of the service that say how its messages travel.
std::string details(const std::vector<Event> &events, const std::string &multicast) {
    const std::string method = "{\"method\": " + quoted_hex(kEchoLarge) + "}";
    std::string tp = method, list, groups;
    for (const auto &e : events) {
        if (e.tp)
            tp += ", {\"method\": " + quoted_hex(e.id) + "}";
        list += (list.empty() ? "" : ", ") + ("{\"event\": " + quoted_hex(e.id)) + ", \"is_field\": \"" +
                (e.field ? "true" : "false") + "\", \"is_reliable\": \"" + (e.tcp ? "true" : "false") + "\"}";
        groups += (groups.empty() ? "" : ", ") + ("{\"eventgroup\": " + quoted_hex(e.group)) + ", \"events\": [" +
                  quoted_hex(e.id) + "], " +
                  (e.multicast ? "\"multicast\": {\"address\": \"" + multicast + "\", \"port\": \"32344\"}, \"threshold\": \"1\"}"
                               : std::string("\"threshold\": \"0\"}"));
    }
    return ", \"someip-tp\": {\"service-to-client\": [" + tp + "], \"client-to-service\": [" + method + "]}" +
           ", \"events\": [" + list + "], \"eventgroups\": [" + groups + "]";
}

std::string protection(const std::vector<Event> &events, bool serve) {
    std::string list;
    for (const auto &e : events)
        if (e.header > 0)
            list += (list.empty() ? "" : ", ") + ("{\"service_id\": " + quoted_hex(kService)) + ", \"event_id\": " +
                    quoted_hex(e.id) + ", \"variant\": \"" + (serve ? "protector" : "checker") + "\", " + e.e2e + "}";
    return list.empty() ? "" : "  \"e2e\": {\"e2e_enabled\": \"true\", \"protected\": [" + list + "]},\n";
}

vsomeip::reliability_type_e reliability(const Event &e) {
    return e.tcp ? vsomeip::reliability_type_e::RT_RELIABLE : vsomeip::reliability_type_e::RT_UNRELIABLE;
}

vsomeip::event_type_e type(const Event &e) {
    return e.field ? vsomeip::event_type_e::ET_FIELD : vsomeip::event_type_e::ET_EVENT;
}

class Program {
public:
    Program(const peer::Flags &flags, bool serve)
        : serve_(serve), events_(events_of(flags.text("groups", nullptr, ""))),
          stack_("matrix", flags, offered(flags), more(flags)), app_(stack_.app()) {
        if (serve)
            offer();
        else
            use();
        stack_.start();
        say("ready");
    }

    // run takes commands until the input ends.
    void run() {
        for (std::string line; std::getline(std::cin, line);) {
            std::istringstream words(line);
            std::string command, transport, id, payload;
            words >> command;
            if (command != "notify")
                words >> transport;
            words >> id >> payload;
            const auto number = static_cast<uint16_t>(std::stoul(id, nullptr, 16));
            if (command == "notify")
                notify(number, bytes(payload));
            else
                send(number, transport == "tcp", command == "call", bytes(payload));
        }
        if (!serve_) // a client that goes takes its subscriptions back
            for (const auto &e : events_)
                app_.unsubscribe(kService, kInstance, e.group);
        stack_.stop();
    }

private:
    std::vector<peer::Offered> offered(const peer::Flags &flags) const {
        if (!serve_)
            return {};
        return {{kService, kInstance, kMajor, 0, kPort, kPort, details(events_, flags.text("multicast", nullptr, ""))}};
    }

    // more tells a client how its requests travel, which it looks up by the server's address.
    peer::More more(const peer::Flags &flags) const {
        peer::More m{"", protection(events_, serve_)};
        if (!serve_)
            m.services = "{\"service\": " + quoted_hex(kService) + ", \"instance\": " + quoted_hex(kInstance) +
                         ", \"unicast\": \"" + flags.text("peer", nullptr, "") + "\", \"unreliable\": \"" +
                         std::to_string(kPort) + "\", \"reliable\": {\"port\": \"" + std::to_string(kPort) +
                         "\", \"enable-magic-cookies\": \"false\"}" + details(events_, flags.text("multicast", nullptr, "")) + "}";
        return m;
    }

    void offer() {
        for (const auto &e : events_) {
            app_.offer_event(kService, kInstance, e.id, {e.group}, type(e), std::chrono::milliseconds::zero(), false,
                             true, nullptr, reliability(e));
            if (e.field)
                notify(e.id, {'f', 'i', 'r', 's', 't'});
        }
        app_.register_message_handler(kService, kInstance, vsomeip::ANY_METHOD,
                                      [this](const std::shared_ptr<vsomeip::message> &m) { answer(m); });
        app_.offer_service(kService, kInstance, kMajor, 0);
    }

    void answer(const std::shared_ptr<vsomeip::message> &m) {
        const auto in = m->get_payload();
        if (m->get_method() == kTell) {
            say("told " + hex(in->get_data(), in->get_length()));
        } else if (m->get_method() == kRefuse) {
            peer::fail(app_, m, kRefuseCode);
        } else {
            auto response = vsomeip::runtime::get()->create_response(m);
            response->set_payload(in);
            app_.send(response);
        }
    }

    void use() {
        app_.register_availability_handler(
            kService, kInstance,
            [this](vsomeip::service_t, vsomeip::instance_t, bool up) {
                if (up != up_.exchange(up))
                    say(up ? "up" : "down");
            },
            kMajor, vsomeip::ANY_MINOR);
        app_.register_message_handler(kService, kInstance, vsomeip::ANY_METHOD,
                                      [this](const std::shared_ptr<vsomeip::message> &m) { receive(m); });
        app_.request_service(kService, kInstance, kMajor, vsomeip::ANY_MINOR);
        for (const auto &e : events_) {
            app_.request_event(kService, kInstance, e.id, {e.group}, type(e), reliability(e));
            app_.subscribe(kService, kInstance, e.group, kMajor, e.id);
        }
    }

    void receive(const std::shared_ptr<vsomeip::message> &m) {
        const auto in = m->get_payload();
        const vsomeip::byte_t *data = in->get_data();
        size_t size = in->get_length();
        if (m->get_message_type() != vsomeip::message_type_e::MT_NOTIFICATION) {
            say("answer " + hex(static_cast<unsigned>(m->get_return_code())) + ' ' + hex(data, size));
            return;
        }
        std::string check = "-";
        for (const auto &e : events_)
            if (e.id == m->get_method() && e.header > 0) {
                check = m->is_valid_crc() ? "ok" : "bad";
                const size_t header = std::min(e.header, size);
                data += header;
                size -= header;
            }
        say("event " + hex(m->get_method()) + ' ' + check + ' ' + hex(data, size));
    }

    void notify(uint16_t id, const std::vector<uint8_t> &payload) {
        std::vector<uint8_t> all;
        for (const auto &e : events_)
            if (e.id == id)
                all.resize(e.header);
        all.insert(all.end(), payload.begin(), payload.end());
        app_.notify(kService, kInstance, id, peer::payload_of(all), true);
    }

    void send(uint16_t method, bool tcp, bool answered, const std::vector<uint8_t> &payload) {
        auto request = vsomeip::runtime::get()->create_request(tcp);
        request->set_service(kService);
        request->set_instance(kInstance);
        request->set_method(method);
        request->set_interface_version(kMajor);
        if (!answered)
            request->set_message_type(vsomeip::message_type_e::MT_REQUEST_NO_RETURN);
        request->set_payload(peer::payload_of(payload));
        app_.send(request);
    }

    // say prints a line; handlers run in several threads.
    void say(const std::string &line) {
        std::lock_guard<std::mutex> lock(printing_);
        std::printf("%s\n", line.c_str());
    }

    const bool serve_;
    const std::vector<Event> events_;
    std::mutex printing_;
    std::atomic<bool> up_{false};
    peer::Stack stack_;
    vsomeip::application &app_;
};

} // namespace

int main(int argc, char **argv) try {
    const peer::Flags flags(argc, argv);
    Program(flags, flags.text("role", nullptr, "serve") == "serve").run();
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "matrix_peer: %s\n", e.what());
    return 1;
}
