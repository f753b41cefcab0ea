// Plain POSIX. Sockets are never inherited by what a process starts, and never raise SIGPIPE.
#include "runtime/Socket.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace llmc {

constexpr size_t kHeaderBytes = 5;            // u32 length, u8 kind
constexpr uint32_t kMaxFrameBytes = 64 << 20; // of a frame we send; more is no frame of ours
constexpr int kSendWaitMs = 2000;

Fd::~Fd() {
  if (fd >= 0)
    ::close(fd);
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo *)>;

static Result<AddressList> resolve(const std::string &host, uint16_t port, bool passive) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo *list = nullptr;
  if (int code = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &list))
    return Error{fmt::format("{}: {}", host, ::gai_strerror(code))};
  return AddressList(list, &::freeaddrinfo);
}

static int waitFor(int fd, short events, int timeoutMs) {
  pollfd entry = {fd, events, 0};
  int ready = 0;
  do
    ready = ::poll(&entry, 1, timeoutMs);
  while (ready < 0 && errno == EINTR);
  return ready;
}

/// 0, or errno.
static int tryListen(const addrinfo &address, Fd &made) {
  Fd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int on = 1;
  if (!fd)
    return errno;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 || ::listen(fd.get(), 1024) != 0)
    return errno;
  made = std::move(fd);
  return 0;
}

Result<Fd> listenAt(const std::string &host, uint16_t port) {
  int failure = 0;
  for (const std::string &name : {host, std::string()}) {
    Result<AddressList> list = resolve(name, port, name.empty());
    LLMC_RETURN_IF_ERROR(list);
    for (const addrinfo *address = list->get(); address; address = address->ai_next) {
      Fd made;
      failure = tryListen(*address, made);
      if (failure == 0)
        return made;
      if (failure == EADDRINUSE)
        return Error{fmt::format("port {} is taken by another process", port)};
    }
    if (failure != EADDRNOTAVAIL) // the host's name may be an address that another machine translates to ours
      break;
  }
  return Error{fmt::format("cannot listen at {}:{}: {}", host, port, std::strerror(failure))};
}

Result<Fd> connectTo(const std::string &host, uint16_t port, Deadline deadline) {
  Result<AddressList> list = resolve(host, port, false);
  LLMC_RETURN_IF_ERROR(list);
  int failure = ETIMEDOUT;
  for (const addrinfo *address = list->get(); address; address = address->ai_next) {
    Fd fd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd)
      return Error{fmt::format("cannot open a socket: {}", std::strerror(errno))};
    failure = ::connect(fd.get(), address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (failure == EINPROGRESS) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      failure = ETIMEDOUT;
      socklen_t size = sizeof(failure);
      if (waitFor(fd.get(), POLLOUT, static_cast<int>(std::max<int64_t>(left.count(), 0))) > 0)
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    }
    if (failure == 0) {
      int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return fd;
    }
  }
  return Error{fmt::format("{}:{}: {}", host, port, std::strerror(failure))};
}

Fd acceptFrom(const Fd &listener) {
  Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  int on = 1;
  if (fd)
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

static std::pair<std::string, uint16_t> nameOf(const sockaddr *address, socklen_t size) {
  char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "0";
  ::getnameinfo(address, size, host, sizeof(host), service, sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, static_cast<uint16_t>(std::strtoul(service, nullptr, 10))};
}

static std::pair<std::string, uint16_t> localName(const Fd &socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr *>(&address), &size);
  return nameOf(reinterpret_cast<sockaddr *>(&address), size);
}

uint16_t localPort(const Fd &socket) { return localName(socket).second; }
std::string localAddress(const Fd &socket) { return localName(socket).first; }

std::string ownAddress() {
  ifaddrs *list = nullptr;
  std::string found = "127.0.0.1";
  if (::getifaddrs(&list) != 0)
    return found;
  for (const ifaddrs *one = list; one; one = one->ifa_next)
    if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && !(one->ifa_flags & IFF_LOOPBACK)) {
      found = nameOf(one->ifa_addr, sizeof(sockaddr_in)).first;
      break;
    }
  ::freeifaddrs(list);
  return found;
}

Status sendFrame(const Fd &socket, uint8_t kind, std::string_view payload) {
  assert(payload.size() <= kMaxFrameBytes);
  uint32_t length = static_cast<uint32_t>(payload.size());
  std::string bytes(kHeaderBytes, '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes[4] = static_cast<char>(kind);
  bytes += payload;
  for (size_t sent = 0; sent < bytes.size();) {
    ssize_t count = ::send(socket.get(), &bytes[sent], bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0)
      sent += static_cast<size_t>(count);
    else if (errno == EAGAIN && waitFor(socket.get(), POLLOUT, kSendWaitMs) <= 0)
      return Error{"it takes no messages"};
    else if (errno != EAGAIN && errno != EINTR)
      return Error{std::strerror(errno)};
  }
  return {};
}

Status FrameReader::read(const Fd &socket, std::vector<Frame> &frames) {
  char chunk[16384];
  bool isEnd = false;
  for (;;) {
    ssize_t count = ::recv(socket.get(), chunk, sizeof(chunk), MSG_DONTWAIT);
    if (count > 0) {
      buffer.append(chunk, static_cast<size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR)
      continue;
    isEnd = count == 0 || errno != EAGAIN;
    break;
  }
  size_t taken = 0;
  while (buffer.size() - taken >= kHeaderBytes) {
    uint32_t length = 0;
    std::memcpy(&length, &buffer[taken], sizeof(length));
    if (length > kMaxFrameBytes)
      return Error{"it speaks another protocol"};
    if (buffer.size() - taken - kHeaderBytes < length)
      break;
    frames.push_back({static_cast<uint8_t>(buffer[taken + 4]), buffer.substr(taken + kHeaderBytes, length)});
    taken += kHeaderBytes + length;
  }
  buffer.erase(0, taken);
  return isEnd ? Status(Error{"its connection closed"}) : Status();
}

Packer &Packer::put(int64_t value) {
  packed.append(reinterpret_cast<const char *>(&value), sizeof(value));
  return *this;
}

Packer &Packer::put(std::string_view text) {
  put(static_cast<int64_t>(text.size()));
  packed += text;
  return *this;
}

std::string_view Unpacker::take(uint64_t size) {
  if (!good || size > rest.size()) {
    good = false;
    return {};
  }
  std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(size);
  return taken;
}

int64_t Unpacker::number() {
  int64_t value = 0;
  std::string_view bytes = take(sizeof(value));
  if (good)
    std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

std::string Unpacker::text() { return std::string(take(static_cast<uint64_t>(number()))); }

} // namespace llmc
