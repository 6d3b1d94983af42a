// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpuwhy {

// A sequence of launches whose origin is known, and the lookup of replays of its parts. Kernels are
// numbers that are equal where their names are.
class KnownLaunches {
 public:
  static constexpr std::size_t kMost = 1 << 20;  // launches beyond are left out

  // `is_start` is set where a capture begins; empty if the sequence is of kernels that ran.
  KnownLaunches(std::vector<std::uint32_t> kernels, std::vector<bool> is_start);

  // For each kernel of one replay its place in the sequence, kNone where none is certain. Replays
  // are given in the order of their launches: where equal parts repeat, the next one is taken.
  std::vector<std::uint32_t> align(std::span<const std::uint32_t> replay);

  // Whether replays were given up because comparing them took too long.
  bool is_exhausted() const { return steps_left_ <= 0; }

 private:
  using Places = std::vector<std::uint32_t>;
  using Seed = std::pair<std::uint64_t, std::uint32_t>;  // hash of a few kernels, their place

  // What is known of a sequence of kernels that was replayed before.
  struct Seen {
    std::size_t offset = 0;  // of its rarest seed
    bool is_inexact = false;
    Places places;  // where it is inexact
  };

  bool fits_at(std::span<const std::uint32_t> replay, std::size_t start);
  std::span<const Seed> seeds_at(std::span<const std::uint32_t> replay, std::size_t offset) const;
  std::size_t rarest_seed(std::span<const std::uint32_t> replay);
  void extend(std::span<const std::uint32_t> replay, std::int64_t i, std::int64_t j,
              std::int64_t direction, Places& places);
  Places best_of(std::span<const std::uint32_t> replay, std::size_t offset,
                 std::span<const Seed> seeds, std::size_t first);
  Places search(std::span<const std::uint32_t> replay);

  std::vector<std::uint32_t> kernels_;
  std::vector<bool> is_start_;
  std::vector<Seed> seeds_;           // of every place
  std::vector<Seed> short_captures_;  // as a whole
  std::size_t cursor_ = 0;            // after the part found last
  std::int64_t steps_left_;
  std::unordered_map<std::uint64_t, Seen> seen_;  // by the hash of the replay
};

}  // namespace gpuwhy
