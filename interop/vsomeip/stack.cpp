#include "stack.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace peer {

namespace {

// vsomeip names its local sockets by /tmp/ and the name of its "network".
const std::string kTmp = "/tmp/";

std::string hex(unsigned value) {
    std::ostringstream s;
    s << "\"0x" << std::hex << value << '"';
    return s.str();
}

// client_id makes a client id of the last byte of the address: it must be unique among all
// that talk to one server, which routes its answers by it (and one that is its own, to itself).
unsigned client_id(const std::string &address) {
    in_addr parsed;
    in6_addr parsed6;
    if (inet_pton(AF_INET, address.c_str(), &parsed) == 1)
        return 0x0100U | (ntohl(parsed.s_addr) & 0xFF);
    if (inet_pton(AF_INET6, address.c_str(), &parsed6) == 1)
        return 0x0100U | parsed6.s6_addr[15];
    throw std::runtime_error("no IP address: " + address);
}

// subnet is the member that tells vsomeip the subnet of an address.
std::string subnet(const std::string &address, const std::string &prefix_len) {
    const int length = std::stoi(prefix_len);
    if (address.find(':') != std::string::npos)
        return "\"prefix\": \"" + std::to_string(length) + '"';
    if (length < 1 || length > 32)
        throw std::runtime_error("no prefix length: " + prefix_len);
    in_addr mask;
    mask.s_addr = htonl(~uint32_t{0} << (32 - length));
    char text[INET_ADDRSTRLEN];
    return std::string("\"netmask\": \"") + inet_ntop(AF_INET, &mask, text, sizeof text) + '"';
}

std::string configuration(const std::string &name, const std::string &network, const Flags &flags,
                          const std::vector<Offered> &offered, const More &more) {
    const std::string unicast = flags.text("unicast", "CARISMA_ADDRESS", "");
    if (unicast.empty())
        throw std::runtime_error("no address: give --unicast or CARISMA_ADDRESS");
    std::ostringstream s;
    s << "{\n"
      << "  \"unicast\": \"" << unicast << "\",\n"
      << "  " << subnet(unicast, flags.text("prefix-len", "CARISMA_PREFIX_LEN", "24")) << ",\n"
      << "  \"network\": \"" << network << "\",\n"
      << "  \"logging\": {\"level\": \"" << flags.text("log", "CARISMA_VSOMEIP_LOG", "warning")
      << "\", \"console\": \"true\", \"file\": {\"enable\": \"false\"}, \"dlt\": \"false\"},\n"
      << "  \"applications\": [{\"name\": \"" << name << "\", \"id\": " << hex(client_id(unicast)) << "}],\n"
      << "  \"routing\": \"" << name << "\",\n"
      << more.members << "  \"services\": [" << more.services;
    const char *comma = "";
    for (const auto &o : offered) {
        s << comma << "\n    {\"service\": " << hex(o.service) << ", \"instance\": " << hex(o.instance);
        if (o.udp)
            s << ", \"unreliable\": \"" << o.udp << '"';
        if (o.tcp)
            s << ", \"reliable\": {\"port\": \"" << o.tcp << "\", \"enable-magic-cookies\": \"false\"}";
        s << o.more << '}';
        comma = ",";
    }
    // Without holding back messages (nPDU) a round trip takes what the stack takes.
    s << "],\n"
      << "  \"npdu-default-timings\": {\"debounce-time-request\": \"0\", \"debounce-time-response\": \"0\",\n"
      << "    \"max-retention-time-request\": \"0\", \"max-retention-time-response\": \"0\"},\n"
      << "  \"service-discovery\": {\"enable\": \"true\", \"protocol\": \"udp\",\n"
      << "    \"multicast\": \"" << flags.text("sd-multicast", "CARISMA_SD_GROUP", "224.244.224.245") << "\",\n"
      << "    \"port\": \"" << flags.text("sd-port", "CARISMA_SD_PORT", "30490") << "\",\n"
      << "    \"initial_delay_min\": \"" << flags.text("sd-delay-min", "CARISMA_SD_DELAY", "0") << "\",\n"
      << "    \"initial_delay_max\": \"" << flags.text("sd-delay-max", "CARISMA_SD_DELAY", "10") << "\",\n"
      << "    \"repetitions_base_delay\": \"10\",\n"
      << "    \"repetitions_max\": \"3\", \"ttl\": \"3\", \"cyclic_offer_delay\": \"1000\",\n"
      << "    \"request_response_delay\": \"0\", \"offer_debounce_time\": \"10\", \"find_debounce_time\": \"10\"}\n"
      << "}\n";
    return s.str();
}

sigset_t end_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

} // namespace

Directory::Directory() : path_(kTmp + "carisma-vsomeip-XXXXXX") {
    if (!mkdtemp(path_.data()))
        throw std::runtime_error("no temporary directory in " + kTmp);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error("no pipe");
    remover_ = fork();
    if (remover_ < 0)
        throw std::runtime_error("no process");
    if (remover_ == 0) {
        setsid(); // what ends the group of the program does not end this
        for (int fd : {0, 1, 2, ends[1]})
            close(fd);
        char byte;
        while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
        }
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
        _exit(0);
    }
    close(ends[0]);
    alive_ = ends[1];
}

Directory::~Directory() {
    close(alive_);
    waitpid(remover_, nullptr, 0);
}

std::string Directory::network() const { return path_.substr(kTmp.size()) + "/local"; }

Flags::Flags(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word.rfind("--", 0) != 0 || i + 1 == argc)
            throw std::runtime_error("expected --name value, not '" + word + "'");
        given_[word.substr(2)] = argv[++i];
    }
}

std::string Flags::text(const std::string &name, const char *variable, const std::string &otherwise) const {
    const auto found = given_.find(name);
    if (found != given_.end())
        return found->second;
    const char *value = variable ? std::getenv(variable) : nullptr;
    return value && *value ? value : otherwise;
}

long Flags::number(const std::string &name, long otherwise) const {
    const auto found = given_.find(name);
    return found == given_.end() ? otherwise : std::stol(found->second, nullptr, 0);
}

Stack::Stack(const std::string &name, const Flags &flags, std::vector<Offered> offered, const More &more)
    : offered_(std::move(offered)) {
    if (!offered_.empty()) {
        // Blocked here, the signals stay blocked in every thread that follows; wait takes them.
        const sigset_t set = end_signals();
        pthread_sigmask(SIG_BLOCK, &set, nullptr);
    }

    const std::string file = directory_.path() + "/vsomeip.json";
    std::ofstream(file) << configuration(name, directory_.network(), flags, offered_, more);
    setenv("VSOMEIP_CONFIGURATION", file.c_str(), 1);

    // vsomeip logs to std::cout; the programs report by printf, on a standard output of their own.
    std::cout.rdbuf(std::cerr.rdbuf());
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    app_ = vsomeip::runtime::get()->create_application(name);
    if (!app_ || !app_->init())
        throw std::runtime_error("vsomeip does not start");
    // 3.4.10 leaves this state uninitialised, and its service discovery may then never begin.
    app_->set_routing_state(vsomeip::routing_state_e::RS_RUNNING);
}

void Stack::start() {
    running_ = std::thread([this] { app_->start(); });
}

void Stack::wait() {
    const sigset_t set = end_signals();
    int signal = 0;
    sigwait(&set, &signal);
}

void Stack::stop() {
    if (!running_.joinable())
        return;
    for (const auto &o : offered_)
        app_->stop_offer_service(o.service, o.instance, o.major, o.minor);
    // The StopOffer leaves from a thread of vsomeip, and nothing tells when it has.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    app_->stop();
    running_.join();
}

std::shared_ptr<vsomeip::payload> payload_of(const std::vector<uint8_t> &bytes) {
    return vsomeip::runtime::get()->create_payload(bytes);
}

void respond(vsomeip::application &app, const std::shared_ptr<vsomeip::message> &request,
             const std::vector<uint8_t> &bytes) {
    auto response = vsomeip::runtime::get()->create_response(request);
    response->set_payload(payload_of(bytes));
    app.send(response);
}

void fail(vsomeip::application &app, const std::shared_ptr<vsomeip::message> &request, uint8_t code) {
    auto response = vsomeip::runtime::get()->create_response(request);
    response->set_message_type(vsomeip::message_type_e::MT_ERROR);
    response->set_return_code(static_cast<vsomeip::return_code_e>(code));
    app.send(response);
}

} // namespace peer
