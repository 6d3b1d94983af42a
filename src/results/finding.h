// SPDX-License-Identifier: Apache-2.0
//
// Findings, each with its bound, its advice and its evidence; and the verdict on a recording.
//
// Files have bound, advice and verdict as one text each. Their parts are members: nobody else takes
// the texts apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "results/bucket.h"
#include "results/field.h"
#include "results/finding_info.h"
#include "results/row.h"

namespace gpuwhy {

// How sure a saving is.
enum class Confidence : std::uint8_t { kHigh, kMedium, kLow };
inline constexpr const char* kConfidences[] = {"high", "medium", "low"};
constexpr std::span<const char* const> words_of(Confidence /*any*/) {
  return kConfidences;
}

// How a saving comes about: all of a time; "20.1 ms of kernels - 4.1 ms that remains = 16.0 ms";
// "293 ms of GEMMs x 0.925 (why) = 271 ms"; what a step takes beyond the longer of two chains.
struct AllOf {
  std::int64_t time_ns = 0;
  std::string what = "this time";
};
struct Difference {
  std::int64_t whole_ns = 0;
  std::string what;
  std::int64_t rest_ns = 0;
  std::string which;
};
struct Product {
  std::int64_t time_ns = 0;
  std::string what;
  double factor = 0;
  std::string why;
};
struct BeyondLongerChain {
  std::int64_t window_ns = 0;
  std::int64_t longer_ns = 0;
};
// Nothing is saved, or a file says it.
using Bound =
    std::variant<std::monostate, AllOf, Difference, Product, BeyondLongerChain, std::string>;

// A change that solves more than one finding.
enum class Fix : std::uint8_t { kNoFix, kCompile, kCompileWithGraphs, kPinMemory };
bool is_same_fix(Fix one, Fix other);
// "torch.compile".
std::string_view fix_words(Fix fix);

struct Advice {
  Fix fix = Fix::kNoFix;
  std::string text = {};                  // what to do
  std::string more = {};                  // what beside that: it follows the text
  std::optional<FindingId> same_as = {};  // a finding above has the same fix
  std::optional<FindingId> after = {};    // that one first: this gains little before

  std::string words() const { return text + more; }
};

// Something worth fixing, with its maximum saving.
struct Finding {
  FindingId id = FindingId::kUnknown;
  RowName stage = {};       // a part of the recording, or all of it, where no stage is marked
  std::string device = {};  // "cuda:0"; empty if no GPU is meant
  // True if the recording itself must be fixed before other figures are meaningful. These come
  // first.
  bool is_blocker = false;
  std::int64_t saving_ns = 0;         // of window_ns, at most
  std::int64_t once_ns = 0;           // perhaps spent once: no saving, but it counts in the order
  std::int64_t window_ns = 0;         // of the stage on that device
  std::optional<Bucket> bucket = {};  // of the ledger: where the saved time is
  // True if a finding above saves time in the same bucket of the same stage and device. The savings
  // of all others sum to at most the window.
  bool overlaps = false;
  Bound bound = {};
  Confidence confidence = Confidence::kLow;
  std::string sentence = {};
  Advice advice = {};
  std::vector<std::string> evidence = {};  // keys of metrics.json

  // How many times as fast the stage would be, where that is a bound: a saving of nearly the whole
  // is none, and one of less than a percent says nothing.
  std::optional<double> speedup() const;
  std::optional<double> saving_fraction() const;
};

// A rule that could not be checked, and why.
struct SilentRule {
  FindingId id = FindingId::kUnknown;
  std::string reason = {};
};

// One sentence on a recording: what it shows, or why it shows nothing.
struct Verdict {
  enum class Kind : std::uint8_t { kNoRecording, kNoFigures, kBusy };
  // The first finding, where its saving has a bound.
  struct Top {
    FindingId id = FindingId::kUnknown;
    std::string gain = {};  // ", up to 1.79x faster."
  };

  Kind kind = Kind::kNoFigures;
  std::string device = {};  // of kBusy: the sentence goes on after it
  std::string sentence = {};
  std::optional<std::size_t> told = {};  // the finding that it says, by place
  std::optional<Top> top = {};

  std::string words() const { return device.empty() ? sentence : device + " " + sentence; }
};

// What stands before the top opportunity, after the sentence.
inline constexpr std::string_view kTopOpportunity = " Top opportunity: ";

// The texts that files have, and what such a text says.
template <>
inline constexpr bool kIsText<Bound> = true;
template <>
inline constexpr bool kIsText<Advice> = true;
template <>
inline constexpr bool kIsText<Verdict> = true;
std::string text_of_member(const Bound& bound);
std::string text_of_member(const Advice& advice);
std::string text_of_member(const Verdict& verdict);
void read_member(const std::string& text, Bound& bound);
void read_member(const std::string& text, Advice& advice);
void read_member(const std::string& text, Verdict& verdict);

template <typename F>
void describe(const Finding* /*row*/, F&& f) {
  using T = Finding;
  f("id", &T::id, one_of(plain("a stable name of the rule"), kKnownFindings));
  f("stage", &T::stage, plain("the stage it is about"));
  f("device", &T::device, maybe("the GPU it is about"));
  f("blocker", &T::is_blocker, plain("the recording must be fixed before other figures mean much"));
  f("saving_ns", &T::saving_ns,
    number("ns", "", "", "findings.saving",
           "what fixing it saves at most; the keys under evidence hold it"));
  f("window_ns", &T::window_ns,
    number("ns", "", "", "findings.window", "the window it is a part of"));
  f("saving_fraction", &T::saving_fraction,
    is_part(number("fraction", "", "", "findings.saving", "saving_ns / window_ns")));
  f("bucket", &T::bucket, plain("the bucket of the ledger in which that time lies"));
  f("overlaps", &T::overlaps, plain("a finding above saves time of the same bucket"));
  f("bound", &T::bound, maybe("how saving_ns comes about, with numbers"));
  f("confidence", &T::confidence, one_of(plain("how sure the saving is"), kConfidences));
  f("sentence", &T::sentence, plain("what was found"));
  f("next", &T::advice, plain("what to do"));
  f("evidence", &T::evidence, items(plain("keys of this file it rests on"), 1));
}

template <typename F>
void describe(const SilentRule* /*row*/, F&& f) {
  f("id", &SilentRule::id, plain("a rule that could not be checked"));
  f("reason", &SilentRule::reason, plain("why not"));
}

}  // namespace gpuwhy
