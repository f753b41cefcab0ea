// Gloo throws; nothing of that leaves this file. A pair that gets a message of another size ends the process, so all
// ranks tell each other what they mean before a byte of data moves. A context is dead after any failure.
#include "backend/comm/GlooTransport.h"

#include "backend/comm/Sum.h"

#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>
#include <mutex>

namespace llmc {

namespace {

using gloo::transport::UnboundBuffer;
constexpr uint64_t kChunkBytes = 4 << 20;

/// Gloo writes to connections that may be closed; the signal would end the process. Kept from this thread while it
/// lives.
class NoSigpipe {
public:
  NoSigpipe() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
  }
  ~NoSigpipe() {
    // One that came in the meantime is taken, or it would come now.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    timespec now = {0, 0};
    if (!sigismember(&before, SIGPIPE))
      sigtimedwait(&pipe, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  NoSigpipe(const NoSigpipe &) = delete;
  NoSigpipe &operator=(const NoSigpipe &) = delete;

private:
  sigset_t before = {};
};

class GlooTransport : public Transport {
public:
  explicit GlooTransport(Rendezvous &ranks) : ranks(ranks), rank(ranks.rank()), size(ranks.worldSize()) {
    calls.resize(static_cast<size_t>(size));
    hasCome.resize(static_cast<size_t>(size));
    sources.resize(static_cast<size_t>(size));
    // The slices of one chunk that the others send us: as many as there are ranks, each at most this long.
    sliceBytes = kChunkBytes / static_cast<uint64_t>(size) + 64 * sizeof(float);
    slices.resize(sliceBytes * static_cast<size_t>(size));
  }

  /// Every rank listens once for each other rank, tells it where, and connects.
  Status open() {
    return guard([&]() -> Status {
      NoSigpipe noSigpipe; // Gloo's thread inherits it
      gloo::transport::tcp::attr where(ranks.address().c_str());
      device = gloo::transport::tcp::CreateDevice(where);
      context = device->createContext(rank, size);
      context->setTimeout(ranks.patience());
      Packer mine; // where I listen for rank 0, rank 1, ...
      for (int other = 0; other < size; ++other) {
        std::vector<char> address;
        if (other != rank)
          address = context->createPair(other)->address().bytes();
        mine.put(std::string_view(address.data(), address.size()));
      }
      Result<std::vector<std::string>> told = ranks.exchange(mine.bytes(), "connecting");
      LLMC_RETURN_IF_ERROR(told);
      // Each connect() waits for the other side's: in one order on all ranks, or they would wait in a circle.
      for (int other = 0; other < size; ++other) {
        if (other == rank)
          continue;
        Unpacker theirs((*told)[static_cast<size_t>(other)]);
        for (int before = 0; before < rank; ++before)
          (void)theirs.text();
        std::string address = theirs.text();
        context->getPair(other)->connect(std::vector<char>(address.begin(), address.end()));
      }
      for (CollectiveCall &call : calls)
        theirCalls.push_back(context->createUnboundBuffer(&call, sizeof(call)));
      myCall = std::move(theirCalls[static_cast<size_t>(rank)]);
      slicesBuffer = context->createUnboundBuffer(slices.data(), slices.size());
      return {};
    });
  }

  std::string describe() const override { return "Gloo 0.5 over TCP"; }

  Result<std::span<const CollectiveCall>> meet(const CollectiveCall &mine) override {
    hasCome.assign(hasCome.size(), false);
    hasCome[static_cast<size_t>(rank)] = true;
    calls[static_cast<size_t>(rank)] = mine;
    uint64_t tag = nextTag++;
    LLMC_RETURN_IF_ERROR(guard([&]() -> Status {
      for (int other : others()) {
        theirCalls[static_cast<size_t>(other)]->recv(other, tag);
        myCall->send(other, tag);
      }
      for (int other : others()) {
        LLMC_RETURN_IF_ERROR(received(*theirCalls[static_cast<size_t>(other)]));
        hasCome[static_cast<size_t>(other)] = true;
      }
      return sent(*myCall, size - 1);
    }));
    return std::span<const CollectiveCall>(calls);
  }

  std::vector<int> absent() const override {
    std::vector<int> found;
    for (int other = 0; other < size; ++other)
      if (!hasCome[static_cast<size_t>(other)])
        found.push_back(other);
    return found;
  }

  Status allReduce(std::span<std::byte> buffer, ElementType type) override {
    return guard([&]() -> Status {
      Loan whole(*this, buffer);
      for (uint64_t begin = 0; begin < buffer.size(); begin += kChunkBytes)
        LLMC_RETURN_IF_ERROR(
            reduceChunk(*whole, begin, buffer.subspan(begin, std::min(kChunkBytes, buffer.size() - begin)), type));
      return {};
    });
  }

  Status broadcast(std::span<std::byte> buffer, int root) override {
    return guard([&]() -> Status {
      Loan whole(*this, buffer);
      uint64_t tag = nextTag++;
      if (rank != root) {
        whole->recv(root, tag);
        return received(*whole);
      }
      for (int other : others())
        whole->send(other, tag);
      return sent(*whole, size - 1);
    });
  }

  Status allGather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return guard([&]() -> Status {
      std::memcpy(&all[mine.size() * static_cast<size_t>(rank)], mine.data(), mine.size());
      Loan whole(*this, all);
      uint64_t tag = nextTag++;
      for (int other : others()) {
        whole->recv(other, tag, static_cast<size_t>(other) * mine.size(), mine.size());
        whole->send(other, tag, static_cast<size_t>(rank) * mine.size(), mine.size());
      }
      LLMC_RETURN_IF_ERROR(receivedAll(*whole));
      return sent(*whole, size - 1);
    });
  }

  void interrupt() override {
    std::lock_guard lock(mutex);
    isInterrupted = true;
    auto abort = [](UnboundBuffer *buffer) {
      if (buffer) {
        buffer->abortWaitRecv();
        buffer->abortWaitSend();
      }
    };
    for (auto &buffer : theirCalls)
      abort(buffer.get());
    for (UnboundBuffer *buffer : {myCall.get(), slicesBuffer.get(), lent})
      abort(buffer);
  }

private:
  /// An UnboundBuffer on a caller's memory, that interrupt() sees while it lives.
  class Loan {
  public:
    Loan(GlooTransport &owner, std::span<std::byte> memory)
        : owner(owner), buffer(owner.context->createUnboundBuffer(memory.data(), memory.size())) {
      std::lock_guard lock(owner.mutex);
      owner.lent = buffer.get();
    }
    ~Loan() {
      std::lock_guard lock(owner.mutex);
      owner.lent = nullptr;
    }
    Loan(const Loan &) = delete;
    Loan &operator=(const Loan &) = delete;
    UnboundBuffer *operator->() { return buffer.get(); }
    UnboundBuffer &operator*() { return *buffer; }

  private:
    GlooTransport &owner;
    std::unique_ptr<UnboundBuffer> buffer;
  };

  /// The other ranks, the next one first, so that not all begin with the same.
  std::vector<int> others() const {
    std::vector<int> list;
    for (int i = 1; i < size; ++i)
      list.push_back((rank + i) % size);
    return list;
  }

  template <typename Work> Status guard(Work work) {
    NoSigpipe noSigpipe;
    Status status;
    try {
      status = work();
    } catch (const std::exception &error) {
      status = Error{error.what()};
    }
    if (!status)
      close();
    return status;
  }

  /// After it Gloo's thread touches no memory of a caller's any more.
  void close() {
    if (std::exchange(isClosed, true) || !context)
      return;
    for (int other : others())
      if (!hasCome[static_cast<size_t>(other)])
        hasCome[static_cast<size_t>(other)] = hasComeUnseen(other);
    for (int other : others())
      if (auto &pair = context->getPair(other))
        pair->close();
  }

  /// After a failure: a call that came while we waited for another's.
  bool hasComeUnseen(int other) {
    constexpr std::chrono::milliseconds kGlance{1};
    UnboundBuffer &buffer = *theirCalls[static_cast<size_t>(other)];
    bool hasCome = false;
    // The first wait may only take the interruption away.
    (void)guard([&]() -> Status {
      hasCome = buffer.waitRecv(kGlance) || buffer.waitRecv(kGlance);
      return {};
    }).ok(); // an error says the same as false
    return hasCome;
  }

  Status wait(UnboundBuffer &buffer, bool isReceive) {
    {
      std::lock_guard lock(mutex);
      if (isInterrupted)
        return Error{"interrupted"};
    }
    bool done = isReceive ? buffer.waitRecv(ranks.patience()) : buffer.waitSend(ranks.patience());
    return done ? Status() : Status(Error{"interrupted"});
  }
  Status received(UnboundBuffer &buffer) { return wait(buffer, true); }
  Status receivedAll(UnboundBuffer &buffer) {
    for (int i = 0; i < size - 1; ++i)
      LLMC_RETURN_IF_ERROR(received(buffer));
    return {};
  }
  Status sent(UnboundBuffer &buffer, int messages) {
    for (int i = 0; i < messages; ++i)
      LLMC_RETURN_IF_ERROR(wait(buffer, false));
    return {};
  }

  /// `chunk` begins at byte `begin` of the lent buffer.
  Status reduceChunk(UnboundBuffer &whole, uint64_t begin, std::span<std::byte> chunk, ElementType type) {
    uint64_t elements = elementBytes(type), count = chunk.size() / elements, tag = nextTag;
    nextTag += 2;
    Slice mine = sliceOf(count, rank, size);
    for (int other : others()) {
      Slice theirs = sliceOf(count, other, size);
      if (mine.size() > 0)
        slicesBuffer->recv(other, tag, static_cast<size_t>(other) * sliceBytes, mine.size() * elements);
      if (theirs.size() > 0)
        whole.send(other, tag, begin + theirs.begin * elements, theirs.size() * elements);
    }
    if (mine.size() > 0) {
      LLMC_RETURN_IF_ERROR(receivedAll(*slicesBuffer));
      for (int other = 0; other < size; ++other)
        sources[static_cast<size_t>(other)] = other == rank ? chunk.data() + mine.begin * elements
                                                            : slices.data() + static_cast<size_t>(other) * sliceBytes;
      sumInto(chunk.data() + mine.begin * elements, sources, mine.size(), type);
    }
    int first = 0, second = 0; // messages on their way
    for (int other : others())
      first += sliceOf(count, other, size).size() > 0;
    LLMC_RETURN_IF_ERROR(sent(whole, first)); // what they hold now may be overwritten
    first = 0;
    for (int other : others()) {
      Slice theirs = sliceOf(count, other, size);
      if (theirs.size() > 0) {
        whole.recv(other, tag + 1, begin + theirs.begin * elements, theirs.size() * elements);
        ++first;
      }
      if (mine.size() > 0) {
        whole.send(other, tag + 1, begin + mine.begin * elements, mine.size() * elements);
        ++second;
      }
    }
    for (int i = 0; i < first; ++i)
      LLMC_RETURN_IF_ERROR(received(whole));
    return sent(whole, second);
  }

  Rendezvous &ranks;
  int rank, size;
  uint64_t nextTag = 1;
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::transport::Context> context;
  std::vector<CollectiveCall> calls; ///< by rank
  std::vector<bool> hasCome;
  uint64_t sliceBytes = 0;
  std::vector<std::byte> slices; ///< received parts of my slice, by rank
  std::vector<const std::byte *> sources;
  std::vector<std::unique_ptr<UnboundBuffer>> theirCalls; ///< on calls; none for my own
  std::unique_ptr<UnboundBuffer> myCall, slicesBuffer;
  std::mutex mutex;
  UnboundBuffer *lent = nullptr;
  bool isInterrupted = false;
  bool isClosed = false;
};

} // namespace

Result<std::unique_ptr<Transport>> makeGlooTransport(Rendezvous &ranks) {
  auto transport = std::make_unique<GlooTransport>(ranks);
  LLMC_RETURN_IF_ERROR(transport->open());
  return std::unique_ptr<Transport>(std::move(transport));
}

} // namespace llmc
