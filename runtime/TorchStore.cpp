// Every message is a byte (which request) and its arguments: integers little-endian, strings a u64 length and bytes.
#include "runtime/TorchStore.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

namespace llmc {

namespace {

constexpr char kValidate = 0, kSet = 1, kGet = 3, kWait = 6; // requests
constexpr uint32_t kValidateMagic = 0x3C85F7CE;
constexpr char kStopWaiting = 0; // the answer to kWait
constexpr uint64_t kMaxValueBytes = 4096;

template <typename Integer> std::string packInteger(Integer value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof(value));
}

std::string packText(const std::string &text) { return packInteger<uint64_t>(text.size()) + text; }

std::string keyOf(const std::string &job) { return "llmc/hub/" + job; }

class Connection {
public:
  static Result<Connection> open(const std::string &host, uint16_t port, Deadline deadline) {
    Result<Fd> socket = connectTo(host, port, deadline);
    LLMC_RETURN_IF_ERROR(socket);
    Connection connection(std::move(*socket), deadline);
    LLMC_RETURN_IF_ERROR(connection.send(kValidate + packInteger(kValidateMagic)));
    return connection;
  }

  Status send(const std::string &bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      ssize_t count = ::send(socket.get(), &bytes[sent], bytes.size() - sent, MSG_NOSIGNAL);
      if (count >= 0)
        sent += static_cast<size_t>(count);
      else if (errno == EAGAIN)
        LLMC_RETURN_IF_ERROR(await(POLLOUT));
      else if (errno != EINTR)
        return Error{std::strerror(errno)};
    }
    return {};
  }

  Result<std::string> receive(size_t size) {
    std::string bytes(size, '\0');
    for (size_t got = 0; got < size;) {
      ssize_t count = ::recv(socket.get(), &bytes[got], size - got, 0);
      if (count > 0)
        got += static_cast<size_t>(count);
      else if (count == 0)
        return Error{"the agent's store closed the connection"};
      else if (errno == EAGAIN)
        LLMC_RETURN_IF_ERROR(await(POLLIN));
      else if (errno != EINTR)
        return Error{std::strerror(errno)};
    }
    return bytes;
  }

  Result<std::string> get(const std::string &key) {
    LLMC_RETURN_IF_ERROR(send(kGet + packText(key)));
    Result<std::string> header = receive(sizeof(uint64_t));
    LLMC_RETURN_IF_ERROR(header);
    uint64_t size = 0;
    std::memcpy(&size, header->data(), sizeof(size));
    if (size > kMaxValueBytes)
      return Error{"what answers is no store of torchrun"};
    return receive(size);
  }

private:
  Connection(Fd socket, Deadline deadline) : socket(std::move(socket)), deadline(deadline) {}

  Status await(short events) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry = {socket.get(), events, 0};
    if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) == 0)
      return Error{"no answer from the agent's store"};
    return {};
  }

  Fd socket;
  Deadline deadline;
};

Error storeError(const std::string &host, uint16_t port, const Error &error) {
  return {
      fmt::format("torchrun's store at {}:{}: {} (--rendezvous HOST:PORT goes without it)", host, port, error.message)};
}

Status publish(const std::string &host, uint16_t port, const HubAddress &address, Deadline deadline) {
  Result<Connection> store = Connection::open(host, port, deadline);
  LLMC_RETURN_IF_ERROR(store);
  LLMC_RETURN_IF_ERROR(store->send(kSet + packText(keyOf(address.job)) + packText(formatHubAddress(address))));
  return store->get(keyOf(address.job)).status(); // answers only where it has been set
}

Result<HubAddress> find(const std::string &host, uint16_t port, const std::string &job, Deadline deadline) {
  Result<Connection> store = Connection::open(host, port, deadline);
  LLMC_RETURN_IF_ERROR(store);
  LLMC_RETURN_IF_ERROR(store->send(kWait + packInteger<uint64_t>(1) + packText(keyOf(job))));
  Result<std::string> answer = store->receive(1);
  if (!answer)
    return Error{"rank 0 has not left its address: " + answer.error().message};
  if (answer->front() != kStopWaiting)
    return Error{"what answers is no store of torchrun"};
  Result<std::string> text = store->get(keyOf(job));
  LLMC_RETURN_IF_ERROR(text);
  return parseHubAddress(*text);
}

} // namespace

Status publishInTorchStore(const std::string &host, uint16_t port, const HubAddress &address, Deadline deadline) {
  Status status = publish(host, port, address, deadline);
  return status ? status : Status(storeError(host, port, status.error()));
}

Result<HubAddress> findInTorchStore(const std::string &host, uint16_t port, const std::string &job, Deadline deadline) {
  Result<HubAddress> found = find(host, port, job, deadline);
  return found ? found : Result<HubAddress>(storeError(host, port, found.error()));
}

} // namespace llmc
