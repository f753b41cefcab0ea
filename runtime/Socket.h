// TCP connections that carry frames (a kind, a payload), and the little that is needed to make them.
#pragma once

#include "runtime/Status.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

using Deadline = std::chrono::steady_clock::time_point;

/// An open file descriptor, closed with the object.
class Fd {
public:
  Fd() = default;
  explicit Fd(int fd) : fd(fd) {}
  Fd(Fd &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Fd &operator=(Fd &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Fd();
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

private:
  int fd = -1;
};

/// Listens at a port of this machine (0: any free one), on the address of `host` where that is ours, else on all.
/// "port 29500 is taken" where another process has it.
Result<Fd> listenAt(const std::string &host, uint16_t port);
/// One try to connect, that ends at the deadline at the latest.
Result<Fd> connectTo(const std::string &host, uint16_t port, Deadline deadline);
/// The next connection of a listening socket; no Fd where none waits.
Fd acceptFrom(const Fd &listener);
/// The port that a socket has on this side.
uint16_t localPort(const Fd &socket);
/// The address that a connection has on this side: "10.0.0.3".
std::string localAddress(const Fd &socket);
/// An address by which other machines reach this one; "127.0.0.1" where there is none.
std::string ownAddress();

struct Frame {
  uint8_t kind = 0;
  std::string payload;
};

/// Sends a frame whole. Fails where the peer is gone, or takes nothing for two seconds.
Status sendFrame(const Fd &socket, uint8_t kind, std::string_view payload);

/// Collects bytes of a connection to frames.
class FrameReader {
public:
  /// Appends the frames that have come whole; never waits. Fails where the connection ended or carries no frames.
  Status read(const Fd &socket, std::vector<Frame> &frames);

private:
  std::string buffer;
};

/// Values one after another in a payload.
class Packer {
public:
  Packer &put(int64_t value);
  Packer &put(std::string_view text);
  const std::string &bytes() const { return packed; }

private:
  std::string packed;
};

/// Reads what Packer wrote; once something does not fit, isGood() is false and all values are empty.
class Unpacker {
public:
  explicit Unpacker(std::string_view bytes) : rest(bytes) {}
  int64_t number();
  std::string text();
  bool isGood() const { return good; }

private:
  std::string_view take(uint64_t size);
  std::string_view rest;
  bool good = true;
};

} // namespace llmc
