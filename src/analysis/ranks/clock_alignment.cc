// SPDX-License-Identifier: Apache-2.0
//
// A common clock for the files of one job.
//
// Files say what UTC time their zero is, as far as their tool wrote it down. On one host that is
// good to some microseconds, between hosts to milliseconds, and an all-reduce of a decode step
// takes ten microseconds. Collectives are the better clock: one ends on all its ranks at nearly the
// same time. So the n-th collective of one file is matched with the n-th of another; where the
// differences of their ends agree, their median is the difference of the clocks.
//
// Replicas that run the same load could agree by chance, so a match counts only with more signs.
// Either the ranks begin their collectives at various times and still end them together, which only
// ranks that wait for each other do. Or they mark the same steps, and UTC says nearly the same, or
// the file names or the user say that they belong together.
#include "analysis/ranks/clock_alignment.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "analysis/ranks/rank_names.h"
#include "analysis/stages/capture_summary.h"
#include "base/error.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kLeastMatched = 8;
constexpr std::size_t kMostMatched = 1024;  // enough for a median
constexpr int kMostMissing = 8;  // collectives that one file may have before the other begins
constexpr double kLeastAgreeing = 0.9;
// Ends of one collective on its ranks: those of two H100 differ by -9 to 27 us, whatever they send,
// those of a large job by up to 0.8 % of the duration.
constexpr std::int64_t kEndsApartNs = 30'000;
constexpr std::int64_t kEndsApartPart = 50;             // of the duration: 2 %
constexpr std::int64_t kSmallCorrectionNs = 1'000'000;  // UTC of one host, or of hosts with PTP
constexpr std::int64_t kMostApartNs = 1'000'000'000;    // UTC of hosts without any of that
// Starts that vary by so much more than the ends show that ranks wait for each other.
constexpr std::int64_t kStartsVaryTimes = 4;
constexpr std::int64_t kStartsVaryNs = 20'000;

struct Collective {
  std::int64_t end_ns = 0;
  std::int64_t start_ns = 0;
  std::size_t name = 0;  // hash of the text: numbers of texts differ between files
};

// Communication kernels by end: their order is the same on all ranks, whatever their streams.
std::vector<Collective> collectives_of(const Trace& trace, const Rules& rules) {
  const KernelFamilies families(trace, rules);
  const std::vector<bool> is_communication = communication_kernels(trace, families);
  std::vector<std::size_t> hashes(trace.strings.size());
  for (const StringId name : families.names()) {
    hashes[static_cast<std::size_t>(name)] = std::hash<std::string_view>()(trace.strings[name]);
  }
  std::vector<Collective> found;
  const Kernels& kernels = trace.kernels;
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    const auto name = static_cast<std::size_t>(kernels.name[row]);
    if (is_communication[name]) {
      found.push_back({kernels.end_ns[row], kernels.start_ns[row], hashes[name]});
    }
  }
  const auto order = [](const Collective& a, const Collective& b) {
    return std::tie(a.end_ns, a.start_ns, a.name) < std::tie(b.end_ns, b.start_ns, b.name);
  };
  if (!std::ranges::is_sorted(found, order)) {
    std::ranges::sort(found, order);
  }
  return found;
}

// The value that `part` of them do not exceed.
std::int64_t quantile(std::vector<std::int64_t>& values, double part) {
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

// How far nine of ten values are from the one in the middle.
std::int64_t spread_of(std::vector<std::int64_t> values) {
  const std::int64_t middle = quantile(values, 0.5);
  for (std::int64_t& value : values) {
    value = std::abs(value - middle);
  }
  return quantile(values, kLeastAgreeing);
}

struct Match {
  std::size_t num_matched = 0;
  std::size_t num_agreeing = 0;
  std::size_t num_together = 0;    // that overlap by UTC
  std::int64_t difference_ns = 0;  // add it to the times of `b`
  bool do_wait = false;            // starts vary, ends do not

  bool is_good() const {
    return num_matched >= kLeastMatched &&
           static_cast<double>(num_agreeing) >= kLeastAgreeing * static_cast<double>(num_matched);
  }
  bool confirms_utc() const {
    return static_cast<double>(num_together) >= kLeastAgreeing * static_cast<double>(num_matched);
  }
};

// What to add to times of one file to have them on the clock of another, by UTC; nullopt: unknown.
using UtcDifference = std::optional<std::int64_t>;

// Matches collectives one by one.
Match match_in_order(std::span<const Collective> a, std::span<const Collective> b,
                     const UtcDifference& utc_ns) {
  Match match;
  match.num_matched = std::min({a.size(), b.size(), kMostMatched});
  std::size_t num_alike = 0;
  for (std::size_t i = 0; i < match.num_matched; ++i) {
    num_alike += a[i].name == b[i].name ? 1 : 0;
  }
  match.num_agreeing = num_alike;
  if (!match.is_good()) {
    return match;
  }
  match.num_agreeing = 0;
  std::vector<std::int64_t> ends_ns;
  std::vector<std::int64_t> starts_ns;
  for (std::size_t i = 0; i < match.num_matched; ++i) {
    ends_ns.push_back(a[i].end_ns - b[i].end_ns);
    starts_ns.push_back(a[i].start_ns - b[i].start_ns);
  }
  std::vector<std::int64_t> sorted = ends_ns;
  match.difference_ns = quantile(sorted, 0.5);
  for (std::size_t i = 0; i < match.num_matched; ++i) {
    const std::int64_t duration_ns =
        std::min(a[i].end_ns - a[i].start_ns, b[i].end_ns - b[i].start_ns);
    const bool agrees =
        a[i].name == b[i].name && std::abs(ends_ns[i] - match.difference_ns) <=
                                      std::max(kEndsApartNs, duration_ns / kEndsApartPart);
    match.num_agreeing += agrees ? 1 : 0;
    const bool overlap =
        utc_ns && a[i].start_ns - *utc_ns < b[i].end_ns && b[i].start_ns < a[i].end_ns - *utc_ns;
    match.num_together += overlap ? 1 : 0;
  }
  const std::int64_t vary_ns = spread_of(std::move(starts_ns));
  match.do_wait =
      vary_ns >= kStartsVaryNs && vary_ns >= kStartsVaryTimes * spread_of(std::move(ends_ns));
  return match;
}

// The best match, where one file may have begun a few collectives after the other.
Match match_collectives(std::span<const Collective> a, std::span<const Collective> b,
                        const UtcDifference& utc_ns) {
  Match best;
  for (int i = 0; i <= 2 * kMostMissing; ++i) {
    const auto missing = static_cast<std::size_t>((i + 1) / 2);  // 0, 1 of b, 1 of a, 2 of b, ...
    const std::size_t skip_a = i % 2 == 1 ? std::min(missing, a.size()) : 0;
    const std::size_t skip_b = i % 2 == 0 ? std::min(missing, b.size()) : 0;
    const Match match = match_in_order(a.subspan(skip_a), b.subspan(skip_b), utc_ns);
    if (match.is_good() && match.num_agreeing * best.num_matched >=
                               best.num_agreeing * match.num_matched + (best.is_good() ? 1 : 0)) {
      best = match;
    }
  }
  return best;
}

// A file, with what its clock is found by.
struct Clock {
  TimeSpan span;
  std::vector<Collective> collectives;
  std::optional<std::int64_t> utc_ns;  // at its time 0
  std::vector<StepMark> marks;         // of the process that marks most; stages are hashes
};

std::vector<StepMark> marks_of(const Trace& trace, const Rules& rules, const TimeSpan& span) {
  const Stages stages = find_stages(trace, rules, span.start_ns, span.end_ns);
  std::vector<std::vector<StepMark>> marks = marks_by_process(trace, stages);
  const auto most = std::ranges::max_element(marks, {}, &std::vector<StepMark>::size);
  if (most == marks.end()) {
    return {};
  }
  for (StepMark& mark : *most) {
    std::get<0>(mark) = std::hash<std::string_view>()(stages.names[std::get<0>(mark)].text());
  }
  return std::move(*most);
}

Clock clock_of(const Trace& trace, const Rules& rules) {
  Clock clock{time_span(trace), collectives_of(trace, rules), trace.capture.utc_ns, {}};
  clock.marks = marks_of(trace, rules, clock.span);
  // From 2001 to 2100. A host whose clock was never set says nothing.
  const auto is_plausible_utc = [&](std::int64_t time_ns) {
    std::int64_t utc_ns = 0;
    return !__builtin_add_overflow(*clock.utc_ns, time_ns, &utc_ns) &&
           utc_ns > 1'000'000'000'000'000'000 && utc_ns < 4'102'444'800'000'000'000;
  };
  if (clock.utc_ns &&
      !(is_plausible_utc(clock.span.start_ns) && is_plausible_utc(clock.span.end_ns))) {
    clock.utc_ns.reset();
  }
  return clock;
}

UtcDifference utc_difference(const Clock& a, const Clock& b) {
  std::int64_t difference_ns = 0;
  const bool is_known =
      a.utc_ns && b.utc_ns && !__builtin_sub_overflow(*b.utc_ns, *a.utc_ns, &difference_ns);
  return is_known ? std::optional(difference_ns) : std::nullopt;
}

// Collectives from a time on.
std::span<const Collective> from(std::span<const Collective> all, std::int64_t start_ns) {
  const auto first = std::ranges::lower_bound(all, start_ns, {}, &Collective::end_ns);
  return {first, all.end()};
}

// The match of two files. Where UTC is known, collectives before the later start are left out at
// first: one rank may have begun to record long after the other.
Match match_files(const Clock& a, const Clock& b) {
  std::span<const Collective> of_a = a.collectives;
  std::span<const Collective> of_b = b.collectives;
  const auto utc_ns = utc_difference(a, b);
  if (utc_ns && !of_a.empty() && !of_b.empty()) {
    const std::int64_t a_starts_later_ns = of_a.front().end_ns - (of_b.front().end_ns + *utc_ns);
    if (a_starts_later_ns > kSmallCorrectionNs) {
      of_b = from(of_b, of_b.front().end_ns + a_starts_later_ns - kSmallCorrectionNs);
    } else if (a_starts_later_ns < -kSmallCorrectionNs) {
      of_a = from(of_a, of_a.front().end_ns - a_starts_later_ns - kSmallCorrectionNs);
    }
  }
  const Match match = match_collectives(of_a, of_b, utc_ns);
  const bool is_whole = of_a.size() + of_b.size() == a.collectives.size() + b.collectives.size();
  return match.is_good() || is_whole ? match
                                     : match_collectives(a.collectives, b.collectives, utc_ns);
}

class Aligner {
 public:
  Aligner(const Rules& rules, const Parallelism& parallelism, std::vector<TracePart>& parts)
      : parts_(parts), is_told_(parallelism.is_given()) {
    for (const TracePart& part : parts) {
      clocks_.push_back(clock_of(part.trace, rules));
    }
  }

  Diagnostics run() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!align_by_collectives(i) && !align_by_utc(i)) {
        leave(i);
      }
    }
    if (num_left_ == 0) {
      return {};
    }
    return {
        {"clocks_not_aligned", Severity::kWarning, num_left_,
         fmt::format("{} of {} files have no clock in common with the first ({}): they are shown "
                     "from the same start, no rank of theirs is grouped with it, and times of "
                     "different files cannot be compared",
                     num_left_, parts_.size(), first_left_)}};
  }

 private:
  FileRow& file(std::size_t i) { return parts_[i].file; }

  // Against the first file of each set of ranks that is known so far.
  bool align_by_collectives(std::size_t i) {
    for (const std::size_t lead : leads_) {
      const Match match = match_files(clocks_[lead], clocks_[i]);
      const auto utc_ns = utc_difference(clocks_[lead], clocks_[i]);
      const std::int64_t off_ns = utc_ns ? match.difference_ns - *utc_ns : 0;
      const bool is_small = utc_ns && std::abs(off_ns) <= kSmallCorrectionNs;
      if (match.is_good() && (match.do_wait || is_expected(lead, i, is_small))) {
        const bool is_utc = utc_ns && match.confirms_utc();
        file(i).shift_ns = file(lead).shift_ns + (is_utc ? *utc_ns : match.difference_ns);
        file(i).clock_number = file(lead).clock_number;
        file(i).clock =
            is_utc ? fmt::format("UTC time in the file; {} collectives run when those of {} do",
                                 match.num_together, file(lead).file)
                   : fmt::format("{} collectives end when those of {} do{}", match.num_agreeing,
                                 file(lead).file,
                                 utc_ns ? fmt::format("; its UTC time is {} off",
                                                      format_duration_ns(std::abs(off_ns)))
                                        : "");
        return true;
      }
    }
    leads_.push_back(i);
    return false;
  }

  // Whether a match may be chance.
  bool is_expected(std::size_t lead, std::size_t i, bool is_small_correction) {
    const RankName& a = file(lead).name;
    const RankName& b = file(i).name;
    return !clocks_[i].marks.empty() && are_same_steps(clocks_[lead].marks, clocks_[i].marks) &&
           !are_of_two_replicas(a, b) &&
           (is_small_correction || is_told_ || are_of_one_replica(a, b));
  }

  bool align_by_utc(std::size_t i) {
    const auto difference_ns = utc_difference(clocks_[0], clocks_[i]);
    if (!difference_ns) {
      return false;
    }
    check_same_time(i, *difference_ns);
    file(i).shift_ns = *difference_ns;
    file(i).clock = "UTC time in the file";
    return true;
  }

  // Ranks of one job run at the same time.
  void check_same_time(std::size_t i, std::int64_t difference_ns) {
    const TimeSpan& first = clocks_[0].span;
    const std::int64_t start_ns = clocks_[i].span.start_ns + difference_ns;
    const std::int64_t end_ns = clocks_[i].span.end_ns + difference_ns;
    const std::int64_t apart_ns = std::max(start_ns - first.end_ns, first.start_ns - end_ns);
    if (apart_ns > kMostApartNs) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} and {} were not recorded at the same time: one begins {} after "
                              "the other ends",
                              file(0).file, file(i).file, format_duration_ns(apart_ns)),
                  "several files are taken as ranks of one job; analyze others one by one, or "
                  "compare them: gpuwhy compare A B");
    }
  }

  void leave(std::size_t i) {
    if (i == 0) {
      file(i).clock = "its own";
      return;
    }
    file(i).shift_ns = clocks_[0].span.start_ns - clocks_[i].span.start_ns;
    file(i).clock_number = static_cast<std::uint32_t>(i);
    file(i).clock = "unknown: shown from the start of the first file";
    first_left_ = num_left_++ == 0 ? file(i).file : first_left_;
  }

  std::vector<TracePart>& parts_;
  bool is_told_;
  std::vector<Clock> clocks_;
  std::vector<std::size_t> leads_;
  std::int64_t num_left_ = 0;
  std::string first_left_;
};

}  // namespace

Diagnostics align_clocks(const Rules& rules, const Parallelism& parallelism,
                         std::vector<TracePart>& parts) {
  return Aligner(rules, parallelism, parts).run();
}

}  // namespace gpuwhy
