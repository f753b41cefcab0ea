// What can go wrong while running, as values: Status for "done or why not", Result<T> for "a T or why not".
// Errors are passed up; context (file, rank, step) is added once where it is known; only main prints and exits.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace llmc {

/// Why something failed, in words for the person at the terminal: lower case, no full stop.
struct Error {
  std::string message;
};

/// Done, or an Error.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failure(std::move(error)) {}

  bool ok() const { return !failure; }
  explicit operator bool() const { return ok(); }
  /// The error. Only when !ok().
  const Error &error() const {
    assert(failure);
    return *failure;
  }

private:
  std::optional<Error> failure;
};

/// A T, or the Error that kept it from being made.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state.index() == 0; }
  explicit operator bool() const { return ok(); }
  T &operator*() { return std::get<0>(state); }
  const T &operator*() const { return std::get<0>(state); }
  T *operator->() { return &std::get<0>(state); }
  const T *operator->() const { return &std::get<0>(state); }
  /// The error. Only when !ok().
  const Error &error() const { return std::get<1>(state); }
  Status status() const { return ok() ? Status() : Status(error()); }

private:
  std::variant<T, Error> state;
};

/// Puts "where: " before an error's message.
inline Error inContext(const std::string &where, const Error &error) { return {where + ": " + error.message}; }

} // namespace llmc

/// Returns the error of a Status or Result from the enclosing function.
#define LLMC_RETURN_IF_ERROR(expression)                                                                               \
  do {                                                                                                                 \
    if (auto &&llmcStatus = (expression); !llmcStatus.ok())                                                            \
      return llmcStatus.error();                                                                                       \
  } while (false)
