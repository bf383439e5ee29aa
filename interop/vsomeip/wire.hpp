// Payload bytes of the sample interfaces, written by hand from their deployment, so that a
// mistake of the gateway's compiler cannot hide behind the same mistake here.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace peer {

// Malformed: the bytes do not hold what the deployment says.
struct Malformed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Writer appends values, big endian.
class Writer {
public:
    void number(uint64_t value, int width) {
        for (int i = width - 1; i >= 0; --i)
            bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
    }
    void real32(float value) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        number(bits, 4);
    }
    void flag(bool value) { number(value ? 1 : 0, 1); }
    // text: length field, byte order mark, UTF-8, terminator.
    void text(const std::string &value, int width = 4) {
        number(value.size() + 4, width);
        for (uint8_t b : {0xEF, 0xBB, 0xBF})
            bytes_.push_back(b);
        bytes_.insert(bytes_.end(), value.begin(), value.end());
        bytes_.push_back(0);
    }
    // counted writes a length field over what body writes.
    template <typename Body> void counted(int width, Body body) {
        const size_t at = bytes_.size();
        number(0, width);
        body();
        const uint64_t length = bytes_.size() - at - static_cast<size_t>(width);
        for (int i = 0; i < width; ++i)
            bytes_[at + static_cast<size_t>(i)] = static_cast<uint8_t>(length >> (8 * (width - 1 - i)));
    }
    const std::vector<uint8_t> &bytes() const { return bytes_; }

private:
    std::vector<uint8_t> bytes_;
};

// Reader takes values from bytes that it does not own. Bytes after the last value are left
// alone: a newer interface may have added some.
class Reader {
public:
    Reader(const uint8_t *data, size_t size) : at_(data), end_(data + size) {}

    uint64_t number(int width) {
        uint64_t value = 0;
        for (const uint8_t *p = take(static_cast<size_t>(width)), *end = p + width; p != end; ++p)
            value = value << 8 | *p;
        return value;
    }
    float real32() {
        const auto bits = static_cast<uint32_t>(number(4));
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    double real64() {
        const uint64_t bits = number(8);
        double value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    std::string text(int width = 4, size_t max = SIZE_MAX) {
        const auto length = static_cast<size_t>(number(width));
        const uint8_t *p = take(length);
        if (length > max)
            throw Malformed("string too long");
        if (length < 4 || p[0] != 0xEF || p[1] != 0xBB || p[2] != 0xBF || p[length - 1] != 0)
            throw Malformed("string without byte order mark or terminator");
        return std::string(p + 3, p + length - 1);
    }
    // counted returns a reader of the bytes that a length field announces.
    Reader counted(int width) {
        const auto length = static_cast<size_t>(number(width));
        return Reader(take(length), length);
    }
    bool empty() const { return at_ == end_; }

private:
    const uint8_t *take(size_t n) {
        if (static_cast<size_t>(end_ - at_) < n)
            throw Malformed("too short");
        const uint8_t *p = at_;
        at_ += n;
        return p;
    }
    const uint8_t *at_;
    const uint8_t *end_;
};

} // namespace peer
