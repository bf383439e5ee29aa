// A vsomeip application with a configuration of its own, made from the environment in which
// a vehicle starts its programs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include <vsomeip/vsomeip.hpp>

namespace peer {

// Flags are the arguments --name value; where one is not given, the environment variable
// that belongs to it counts, then the default.
class Flags {
public:
    Flags(int argc, char **argv);
    std::string text(const std::string &name, const char *variable, const std::string &otherwise) const;
    long number(const std::string &name, long otherwise) const;

private:
    std::map<std::string, std::string> given_;
};

// Offered is a service instance that the program offers; port 0 means none.
struct Offered {
    uint16_t service, instance;
    uint8_t major;
    uint32_t minor;
    uint16_t udp, tcp;
    std::string more{}; // further members of its configuration: ", \"name\": ..."
};

// More is configuration beyond what is offered, in vsomeip's words, as JSON.
struct More {
    std::string services{}; // of a program that offers none: those it uses
    std::string members{};  // further members: "\"name\": ...,"
};

// Directory is a directory for the local sockets and the configuration of one application. It
// goes with the process, however the process ends.
class Directory {
public:
    Directory();
    ~Directory();
    Directory(const Directory &) = delete;
    Directory &operator=(const Directory &) = delete;

    const std::string &path() const { return path_; }
    // network is the name that makes vsomeip put its sockets there.
    std::string network() const;

private:
    std::string path_;
    int alive_;     // open as long as the process lives
    pid_t remover_; // removes the directory when that ends
};

// Stack is one vsomeip application on one host of one network.
//
// Flags (and environment): --unicast (CARISMA_ADDRESS), --prefix-len (CARISMA_PREFIX_LEN),
// --sd-multicast (CARISMA_SD_GROUP), --sd-port (CARISMA_SD_PORT), --log (CARISMA_VSOMEIP_LOG),
// the level of vsomeip's own log, which goes to the standard error.
// A program that offers something takes SIGTERM and SIGINT in wait, to withdraw it; others end
// by them as any program. Make it before any other thread.
class Stack {
public:
    // The configuration is written here, so this comes before anything else of vsomeip.
    Stack(const std::string &name, const Flags &flags, std::vector<Offered> offered = {},
          const More &more = {});

    ~Stack() { stop(); }
    Stack(const Stack &) = delete;
    Stack &operator=(const Stack &) = delete;

    vsomeip::application &app() { return *app_; }
    // start runs the application in threads of its own.
    void start();
    // wait returns when a signal asked for the end.
    static void wait();
    // stop withdraws what is offered, so that peers see StopOffer, and ends the application;
    // no handler runs once it has returned.
    void stop();

private:
    Directory directory_;
    std::vector<Offered> offered_;
    std::shared_ptr<vsomeip::application> app_;
    std::thread running_;
};

// payload_of makes a payload of bytes.
std::shared_ptr<vsomeip::payload> payload_of(const std::vector<uint8_t> &bytes);

// respond answers a request with a payload.
void respond(vsomeip::application &app, const std::shared_ptr<vsomeip::message> &request,
             const std::vector<uint8_t> &bytes);
// fail answers a request with an error, which has no payload.
void fail(vsomeip::application &app, const std::shared_ptr<vsomeip::message> &request, uint8_t code);

} // namespace peer
