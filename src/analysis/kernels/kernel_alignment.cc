// SPDX-License-Identifier: Apache-2.0
//
// Alignment of a replayed CUDA graph with the launches that were captured.
//
// A graph replays its kernels in the order in which they were captured, so the names of the two
// sequences agree, apart from a few kernels that one side has and the other lacks. The longest
// common subsequence, the obvious way, costs the product of both lengths. Here a replay is first
// compared with what follows the part found last, where the pieces of a piecewise graph stand.
// Otherwise the rarest group of kSeed kernels in the replay is looked up in an index, and each of
// its places is extended in both directions, stepping over up to kMostSkip kernels where names
// differ.
//
// Equal names do not prove it: elementwise kernels are everywhere. So an alignment counts only if
// nine in ten kernels of the replay agree, and a short graph must be the whole of a capture.
//
// What it gets wrong: layers with equal kernels differ by their order alone. A graph whose
// branches run on several streams may start them in another order than they were captured; those
// kernels stay without a place.
#include "analysis/kernels/kernel_alignment.h"

#include <algorithm>
#include <numeric>

#include "trace/trace.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kSeed = 4;
constexpr std::size_t kShort = 8;       // a graph of fewer kernels must be the whole of a capture
constexpr std::int64_t kMostSkip = 32;  // kernels skipped at once, on both sides together
constexpr std::size_t kMostTries = 32;  // places of the rarest seed that are compared
constexpr std::int64_t kLookupSteps = 64;         // the cost of a seed in the index, in comparisons
constexpr std::int64_t kMostSteps = 500'000'000;  // comparisons for one sequence: seconds

std::uint64_t hash_of(std::span<const std::uint32_t> kernels) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint32_t kernel : kernels) {
    hash = (hash ^ kernel) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}

std::vector<std::uint32_t> places_from(std::size_t start, std::size_t size) {
  std::vector<std::uint32_t> places(size);
  std::iota(places.begin(), places.end(), static_cast<std::uint32_t>(start));
  return places;
}

}  // namespace

KnownLaunches::KnownLaunches(std::vector<std::uint32_t> kernels, std::vector<bool> is_start)
    : kernels_(std::move(kernels)), is_start_(std::move(is_start)), steps_left_(kMostSteps) {
  kernels_.resize(std::min(kernels_.size(), kMost));
  for (std::size_t i = 0; i + kSeed <= kernels_.size(); ++i) {
    seeds_.emplace_back(hash_of(std::span(kernels_).subspan(i, kSeed)),
                        static_cast<std::uint32_t>(i));
  }
  std::ranges::sort(seeds_);
  is_start_.resize(is_start_.empty() ? 0 : kernels_.size());
  for (std::size_t start = 0; start < is_start_.size();) {
    std::size_t end = start + 1;
    while (end < is_start_.size() && !is_start_[end]) {
      ++end;
    }
    if (end - start < kShort) {
      short_captures_.emplace_back(hash_of(std::span(kernels_).subspan(start, end - start)),
                                   static_cast<std::uint32_t>(start));
    }
    start = end;
  }
  std::ranges::sort(short_captures_);
}

// Whether the replay stands here, kernel by kernel.
bool KnownLaunches::fits_at(std::span<const std::uint32_t> replay, std::size_t start) {
  if (start + replay.size() > kernels_.size()) {
    return false;
  }
  if (replay.size() < kShort) {
    const std::size_t end = start + replay.size();
    if (is_start_.empty() || !is_start_[start] || (end < kernels_.size() && !is_start_[end])) {
      return false;
    }
  }
  const auto [differs, at] = std::mismatch(replay.begin(), replay.end(),
                                           kernels_.begin() + static_cast<std::int64_t>(start));
  steps_left_ -= differs - replay.begin() + 1;
  return differs == replay.end();
}

// The places of a seed of the replay, or of a short replay as a whole.
std::span<const KnownLaunches::Seed> KnownLaunches::seeds_at(std::span<const std::uint32_t> replay,
                                                             std::size_t offset) const {
  const bool is_short = replay.size() < kShort;
  const std::vector<Seed>& seeds = is_short ? short_captures_ : seeds_;
  const std::uint64_t hash = hash_of(is_short ? replay : replay.subspan(offset, kSeed));
  const auto first = std::lower_bound(seeds.begin(), seeds.end(), Seed(hash, 0));
  return {first, std::upper_bound(first, seeds.end(), Seed(hash, kNone))};
}

// Where the seed begins in the replay that has the fewest places in the sequence; the length of the
// replay if none has any.
std::size_t KnownLaunches::rarest_seed(std::span<const std::uint32_t> replay) {
  std::size_t rarest = replay.size();
  std::size_t fewest = SIZE_MAX;
  for (std::size_t i = 0; i + kSeed <= replay.size() && fewest > 1 && steps_left_ > 0; ++i) {
    const std::size_t num_places = seeds_at(replay, i).size();
    steps_left_ -= kLookupSteps;
    if (num_places > 0 && num_places < fewest) {
      fewest = num_places;
      rarest = i;
    }
  }
  return rarest;
}

// Walks on from a pair of equal kernels. Where names differ it takes the shortest way round after
// which two kernels in a row agree, and ends if there is none.
void KnownLaunches::extend(std::span<const std::uint32_t> replay, std::int64_t i, std::int64_t j,
                           std::int64_t direction, Places& places) {
  const auto is_inside = [&](std::int64_t a, std::int64_t b) {
    return a >= 0 && b >= 0 && a < std::ssize(replay) && b < std::ssize(kernels_);
  };
  const auto is_equal = [&](std::int64_t a, std::int64_t b) {
    --steps_left_;
    return is_inside(a, b) &&
           replay[static_cast<std::size_t>(a)] == kernels_[static_cast<std::size_t>(b)];
  };
  const auto skip = [&] {
    for (std::int64_t skipped = 1; skipped <= kMostSkip; ++skipped) {
      for (std::int64_t of_replay = 0; of_replay <= skipped; ++of_replay) {
        const std::int64_t a = i + direction * of_replay;
        const std::int64_t b = j + direction * (skipped - of_replay);
        if (is_equal(a, b) &&
            (!is_inside(a + direction, b + direction) || is_equal(a + direction, b + direction))) {
          i = a;
          j = b;
          return true;
        }
      }
    }
    return false;
  };
  while (is_inside(i, j) && steps_left_ > 0) {
    if (is_equal(i, j)) {
      places[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(j);
      i += direction;
      j += direction;
    } else if (!skip()) {
      return;
    }
  }
}

// The part around one of the seeds that agrees most with the replay, nowhere if that is too little.
KnownLaunches::Places KnownLaunches::best_of(std::span<const std::uint32_t> replay,
                                             std::size_t offset, std::span<const Seed> seeds,
                                             std::size_t first) {
  const auto missing = [](const Places& of) { return std::count(of.begin(), of.end(), kNone); };
  const auto at = static_cast<std::int64_t>(offset);
  Places best(replay.size(), kNone);
  for (std::size_t i = 0; i < std::min(seeds.size(), kMostTries) && steps_left_ > 0; ++i) {
    const std::int64_t place = seeds[(first + i) % seeds.size()].second;
    Places places(replay.size(), kNone);
    extend(replay, at, place, 1, places);
    extend(replay, at - 1, place - 1, -1, places);
    if (missing(places) < missing(best)) {
      best = std::move(places);
    }
  }
  const bool is_enough = missing(best) * 10 <= std::ssize(best);
  return is_enough ? best : Places(replay.size(), kNone);
}

// The first part behind the cursor that agrees kernel by kernel; else the one that agrees most.
KnownLaunches::Places KnownLaunches::search(std::span<const std::uint32_t> replay) {
  const auto [entry, is_new] = seen_.try_emplace(hash_of(replay));
  Seen& seen = entry->second;
  if (is_new && replay.size() >= kShort) {
    seen.offset = rarest_seed(replay);
  }
  Places nowhere(replay.size(), kNone);
  // Another replay may have the same hash: its offset, or places, must not be used.
  if (seen.offset + (replay.size() < kShort ? 0 : kSeed) > replay.size()) {
    return nowhere;
  }
  const auto seeds = seeds_at(replay, seen.offset);
  if (seeds.empty()) {
    return nowhere;
  }
  const auto behind = static_cast<std::uint32_t>(cursor_ + seen.offset);
  const auto first = static_cast<std::size_t>(
      std::lower_bound(seeds.begin(), seeds.end(), Seed(seeds.front().first, behind)) -
      seeds.begin());
  for (std::size_t i = 0; i < std::min(seeds.size(), kMostTries); ++i) {
    const std::size_t place = seeds[(first + i) % seeds.size()].second;
    if (place >= seen.offset && fits_at(replay, place - seen.offset)) {
      return places_from(place - seen.offset, replay.size());
    }
  }
  if (replay.size() < kShort) {
    return nowhere;
  }
  if (!seen.is_inexact) {
    seen.is_inexact = true;
    seen.places = best_of(replay, seen.offset, seeds, first);
  }
  return seen.places.size() == replay.size() ? seen.places : nowhere;
}

std::vector<std::uint32_t> KnownLaunches::align(std::span<const std::uint32_t> replay) {
  const bool is_too_long = replay.size() / 10 * 9 > kernels_.size();
  if (replay.empty() || kernels_.empty() || is_too_long || steps_left_ <= 0) {
    return Places(replay.size(), kNone);
  }
  cursor_ = cursor_ >= kernels_.size() ? 0 : cursor_;
  Places places = fits_at(replay, cursor_) ? places_from(cursor_, replay.size()) : search(replay);
  const auto last = std::find_if(places.rbegin(), places.rend(),
                                 [](std::uint32_t place) { return place != kNone; });
  if (last != places.rend()) {
    cursor_ = *last + 1;
  }
  return places;
}

}  // namespace gpuwhy
