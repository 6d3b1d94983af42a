// SPDX-License-Identifier: Apache-2.0
//
// Names for what the host did in the gaps of a GPU.
//
//   GPU     [ work ]..............................[ next ]
//   thread          |  cudaMalloc  | ... |-launch-|
//                   its calls, by their kind; and the operator or range that covers half of the
//                   gap, else the Python function or system call
//
// Short gaps are not asked: there the host launches, one kernel after another.
//
// What it gets wrong: work of other threads, such as a data loader's, on which the launching
// thread waits without a CUDA call and without a range.
#include "analysis/idle/idle_causes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "analysis/names/operator_names.h"

namespace gpuwhy {

namespace {

constexpr std::int64_t kAskedNs = 100'000;     // gaps from here on are asked for calls
constexpr std::int64_t kWorkNs = 1'000'000;    // longer is not launch overhead
constexpr std::int64_t kAskedWaitNs = 20'000;  // waits from here on are asked for their place
constexpr std::size_t kMostLabels = 4096;      // further ones share one
constexpr std::size_t kMostSpansOfCall = 64;   // no real call spans more gaps
constexpr double kMostAround = 3;              // a scope longer than this many gaps says little
constexpr std::size_t kMostSpans = 50'000;     // gaps that are asked
constexpr std::size_t kMostLooks = 1'000'000;  // intervals against spans: bounds hostile nesting

// Whether a gap is long enough to ask what the host did.
bool is_asked(const Gap& gap) {
  return gap.is_host &&
         gap.end_ns - gap.start_ns >= (gap.cause == Bucket::kSync ? kAskedWaitNs : kAskedNs);
}

enum class CallKind : std::uint8_t { kOther, kLaunch, kLoad, kAllocate, kCopy };
constexpr std::size_t kNumCallKinds = 5;

CallKind kind_of_call(std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (has("ModuleLoad") || has("ModuleUnload") || has("LibraryLoad") || has("LibraryUnload") ||
      has("cuLink") || has("ModuleGet") || has("GraphInstantiate") || has("CtxCreate") ||
      has("PrimaryCtx") || has("StreamCreate") || has("cuInit") || has("FuncGetAttributes")) {
    return CallKind::kLoad;
  }
  if (has("Launch")) {
    return CallKind::kLaunch;
  }
  if (has("Malloc") || has("MemAlloc") || has("Free") || has("HostAlloc") || has("HostRegister") ||
      has("MemCreate") || has("MemMap") || has("MemUnmap") || has("MemRelease") ||
      has("MemSetAccess") || has("AddressReserve")) {
    return CallKind::kAllocate;
  }
  return has("Memcpy") || has("Memset") ? CallKind::kCopy : CallKind::kOther;
}

// Time of a gap in calls, by their kind and for the call with most of it.
struct CallTimes {
  std::array<std::int64_t, kNumCallKinds> ns{};
  std::array<std::int64_t, kNumCallKinds> most_ns{};
  std::array<StringId, kNumCallKinds> most{};
};

// How far intervals of one name cover a span.
struct Coverage {
  std::int64_t covered_ns = 0;
  double length_ns = 0;  // of the intervals, in total
  std::int64_t count = 0;

  void add(const Coverage& other) {
    covered_ns += other.covered_ns;
    length_ns += other.length_ns;
    count += other.count;
  }
};
using CoverageByName = std::unordered_map<std::uint64_t, Coverage>;  // (span, name)

// A name for a span, and the time of the span that it covers.
struct SpanName {
  std::string name;
  std::int64_t covered_ns = 0;
};

// With what covers the rest of a span that `first` covers in part: "'load' and 'prefetch'".
SpanName with_rest(const SpanName& first, const std::map<std::string, Coverage>& names,
                   std::int64_t length_ns) {
  for (const auto& [name, coverage] : names) {
    const std::int64_t sum_ns = first.covered_ns + coverage.covered_ns;
    if (name != first.name && sum_ns <= length_ns && sum_ns * 10 >= length_ns * 9) {
      return {first.name + "' and '" + name, sum_ns};
    }
  }
  return first;
}

// The operator that the program called: aten::randn around aten::normal_, which does all of its
// work.
SpanName as_called(SpanName best, double mean_ns, const std::map<std::string, Coverage>& names,
                   std::int64_t length_ns) {
  constexpr std::string_view kOperator = "aten::";
  constexpr double kAsLong = 1.05;
  double longest_ns = mean_ns;
  for (const auto& [name, coverage] : names) {
    const double own_mean_ns = coverage.length_ns / static_cast<double>(coverage.count);
    if (best.name.starts_with(kOperator) && name.starts_with(kOperator) &&
        coverage.covered_ns * 10 >= length_ns * 9 && own_mean_ns > longest_ns &&
        own_mean_ns <= mean_ns * kAsLong) {
      longest_ns = own_mean_ns;
      best = {name, std::min(coverage.covered_ns, length_ns)};
    }
  }
  return best;
}

// Of the names that cover half of a span or more, the innermost: the one whose intervals are
// shortest. Empty if there is none.
SpanName innermost(const std::map<std::string, Coverage>& names, std::int64_t length_ns) {
  // Nine tenths before a half: a name that covers the gap says more than a part of it.
  for (const std::int64_t tenths : {9, 5}) {
    double shortest_ns = std::numeric_limits<double>::infinity();
    SpanName best;
    for (const auto& [name, coverage] : names) {
      const double mean_ns = coverage.length_ns / static_cast<double>(coverage.count);
      if (coverage.covered_ns * 10 >= length_ns * tenths && mean_ns < shortest_ns &&
          mean_ns < static_cast<double>(length_ns) * kMostAround) {
        shortest_ns = mean_ns;
        best = {name, std::min(coverage.covered_ns, length_ns)};
      }
    }
    if (!best.name.empty()) {
      return tenths == 9 ? as_called(best, shortest_ns, names, length_ns)
                         : with_rest(best, names, length_ns);
    }
  }
  return {};
}

// Python functions that only call others.
bool is_glue(std::string_view text) {
  constexpr std::array<std::string_view, 6> kGlue = {
      "_call_impl", "decorate_context", "__torch_function__", "_disabled_torch_function_impl",
      "): wrapper", "_ops.py"};
  return std::ranges::any_of(
      kGlue, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// A profiler's own mark around each step names nothing that the host did.
bool says_nothing(std::string_view text) {
  return text.empty() || text.starts_with("ProfilerStep");
}

}  // namespace

void IdleCauses::begin() {
  asked_.clear();
  next_asked_ = 0;
}

void IdleCauses::ask(const Gap& gap) {
  if (is_asked(gap)) {
    asked_.push_back(gap);
    if (asked_.size() >= 2 * kMostSpans) {
      keep_longest();
    }
  }
}

// Names of more would take more memory than the recording.
void IdleCauses::keep_longest() {
  if (asked_.size() > kMostSpans) {
    const auto last = asked_.begin() + static_cast<std::ptrdiff_t>(kMostSpans);
    std::nth_element(asked_.begin(), last, asked_.end(), [](const Gap& a, const Gap& b) {
      return std::pair(b.end_ns - b.start_ns, a.start_ns) <
             std::pair(a.end_ns - a.start_ns, b.start_ns);
    });
    asked_.erase(last, asked_.end());
  }
}

void IdleCauses::name(std::uint16_t device) {
  keep_longest();
  std::ranges::sort(asked_, {}, &Gap::start_ns);
  if (asked_.empty()) {
    return;
  }
  std::vector<HostSpan> spans = spans_of_asked();
  name_calls(device, spans);
  name_scopes(spans);
  name_functions(spans);
  for (const HostSpan& span : spans) {
    span.gap->label = number_of(span.label);
  }
}

void IdleCauses::set_label(Gap& gap) {
  if (is_asked(gap)) {
    while (next_asked_ < asked_.size() && asked_[next_asked_].start_ns < gap.start_ns) {
      ++next_asked_;
    }
    if (next_asked_ < asked_.size() && asked_[next_asked_].start_ns == gap.start_ns) {
      gap = asked_[next_asked_];
      return;
    }
  }
  set_usual_label(gap);
}

// Of a gap that was not asked.
void IdleCauses::set_usual_label(Gap& gap) {
  gap.label = !gap.is_host                           ? std::uint16_t{0}
              : gap.cause == Bucket::kSync           ? label_of_wait(gap)
              : gap.end_ns - gap.start_ns >= kWorkNs ? number_of({IdleKind::kHostWork, "", ""})
                                                     : std::uint16_t{1};
}

// Waits have the name of their call; one label for each name.
std::uint16_t IdleCauses::label_of_wait(Gap& gap) {
  gap.in_call_ns = gap.end_ns - gap.start_ns;
  const StringId name = trace_.api_calls.name[gap.call];
  const auto known = wait_labels_.find(name);
  if (known != wait_labels_.end()) {
    return known->second;
  }
  const std::uint16_t label =
      number_of({IdleKind::kWaiting, std::string(trace_.strings[name]), ""});
  wait_labels_.emplace(name, label);
  return label;
}

std::vector<IdleCauses::HostSpan> IdleCauses::spans_of_asked() {
  std::vector<HostSpan> spans;
  spans.reserve(asked_.size());
  for (Gap& gap : asked_) {
    set_usual_label(gap);
    spans.push_back(
        {trace_.api_calls.thread[gap.call], gap.start_ns, gap.end_ns, &gap, labels_[gap.label]});
  }
  std::ranges::sort(spans, {},
                    [](const HostSpan& one) { return std::tie(one.thread, one.start_ns); });
  return spans;
}

// The first span of each thread, and the end of the last.
std::vector<std::size_t> IdleCauses::first_of_threads(const std::vector<HostSpan>& spans) const {
  std::vector<std::size_t> first_of(trace_.threads.size() + 1);
  for (const HostSpan& span : spans) {
    ++first_of[span.thread + 1];
  }
  for (std::size_t thread = 0; thread < trace_.threads.size(); ++thread) {
    first_of[thread + 1] += first_of[thread];
  }
  return first_of;
}

// Calls `visit(span, overlap_ns)` for each span that the row of a table overlaps, until it returns
// false. Spans of one thread do not overlap each other: they are gaps of one GPU.
template <typename Table, typename Visit>
void IdleCauses::visit_overlaps(const Table& table, std::size_t row,
                                const std::vector<HostSpan>& spans,
                                const std::vector<std::size_t>& first_of, Visit visit) {
  const auto from = spans.begin() + static_cast<std::ptrdiff_t>(first_of[table.thread[row]]);
  const auto to = spans.begin() + static_cast<std::ptrdiff_t>(first_of[table.thread[row] + 1]);
  auto span =
      std::upper_bound(from, to, table.start_ns[row],
                       [](std::int64_t time, const HostSpan& one) { return time < one.end_ns; });
  for (; span != to && span->start_ns < table.end_ns[row]; ++span) {
    const std::int64_t overlap_ns =
        std::min(span->end_ns, table.end_ns[row]) - std::max(span->start_ns, table.start_ns[row]);
    if (!visit(static_cast<std::uint64_t>(span - spans.begin()), overlap_ns)) {
      return;
    }
  }
}

// Adds the overlaps of a table's rows with the spans.
template <typename Table, typename Names, typename ByName>
void IdleCauses::add_coverage(const Table& table, const Names& texts,
                              const std::vector<HostSpan>& spans, ByName& by_name) const {
  const std::vector<std::size_t> first_of = first_of_threads(spans);
  std::size_t num_looks = 0;
  for (std::size_t row = 0; row < table.size() && num_looks < kMostLooks; ++row) {
    const double length_ns =
        static_cast<double>(table.end_ns[row]) - static_cast<double>(table.start_ns[row]);
    visit_overlaps(table, row, spans, first_of, [&](std::uint64_t span, std::int64_t overlap_ns) {
      by_name[span << 32 | static_cast<std::uint32_t>(texts[row])].add({overlap_ns, length_ns, 1});
      ++num_looks;
      return true;
    });
  }
}

void IdleCauses::name_calls(std::uint16_t device, std::vector<HostSpan>& spans) {
  const std::vector<std::size_t> first_of = first_of_threads(spans);
  const ApiCalls& calls = trace_.api_calls;
  std::unordered_map<std::uint64_t, std::int64_t> by_name;  // (span, name)
  for (std::size_t row = 0; row < calls.size(); ++row) {
    std::size_t num_spans = 0;
    visit_overlaps(calls, row, spans, first_of, [&](std::uint64_t span, std::int64_t overlap_ns) {
      by_name[span << 32 | static_cast<std::uint32_t>(calls.name[row])] += overlap_ns;
      return ++num_spans < kMostSpansOfCall;
    });
  }
  std::vector<CallTimes> times(spans.size());
  for (const auto& [key, time_ns] : by_name) {
    const auto name = static_cast<StringId>(static_cast<std::uint32_t>(key));
    const auto kind = static_cast<std::size_t>(kind_of_call(trace_.strings[name]));
    CallTimes& of = times[key >> 32];
    of.ns[kind] += time_ns;
    const bool is_more =
        time_ns > of.most_ns[kind] ||
        (time_ns == of.most_ns[kind] && trace_.strings[name] < trace_.strings[of.most[kind]]);
    if (is_more) {
      of.most_ns[kind] = time_ns;
      of.most[kind] = name;
    }
  }
  const std::vector<bool> is_first = first_launches(device, spans);
  const std::vector<std::int64_t>& links_ns = first_uses().links_ns;
  CoverageByName captured;  // all captures have one name
  add_coverage(first_uses().captures, first_uses().captures.name, spans, captured);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    HostSpan& span = spans[i];
    if (span.label.kind == IdleKind::kWaiting) {
      continue;
    }
    const std::int64_t length_ns = span.end_ns - span.start_ns;
    const auto capture = captured.find(static_cast<std::uint64_t>(i) << 32);
    if (capture != captured.end() && capture->second.covered_ns * 2 >= length_ns) {
      span.label = {IdleKind::kFirstUse, "the capture of a graph", ""};
      span.gap->in_call_ns = capture->second.covered_ns;
      continue;
    }
    // Compiled by the host, then linked, or loaded and launched for the first time.
    constexpr auto kLoad = static_cast<std::size_t>(CallKind::kLoad);
    const auto linked = std::lower_bound(links_ns.begin(), links_ns.end(), span.start_ns);
    const bool has_linked = linked != links_ns.end() && *linked < span.end_ns;
    const bool has_loaded = is_first[i] && times[i].ns[kLoad] > 0;
    if (length_ns >= kWorkNs && (has_linked || has_loaded)) {
      span.label.kind = IdleKind::kFirstUse;
      span.label.call = has_loaded ? std::string(trace_.strings[times[i].most[kLoad]]) : "";
      span.gap->in_call_ns = has_loaded ? times[i].ns[kLoad] : 0;
      continue;
    }
    const auto most = std::max_element(times[i].ns.begin(), times[i].ns.end());
    if (*most * 2 < length_ns) {
      continue;
    }
    const auto kind = static_cast<std::size_t>(most - times[i].ns.begin());
    switch (static_cast<CallKind>(kind)) {
      case CallKind::kLoad:
        span.label.kind = IdleKind::kFirstUse;
        break;
      case CallKind::kAllocate:
        span.label.kind = IdleKind::kAllocating;
        break;
      case CallKind::kLaunch:
        // Many short launches are launch overhead; one long one is not.
        if (calls.end_ns[span.gap->call] - calls.start_ns[span.gap->call] < kAskedNs) {
          continue;
        }
        span.label.kind = is_first[i] ? IdleKind::kFirstUse : IdleKind::kBlocked;
        break;
      default:
        span.label.kind = IdleKind::kBlocked;
        break;
    }
    span.label.call = std::string(trace_.strings[times[i].most[kind]]);
    span.gap->in_call_ns = *most;
  }
}

// Rows of the calls whose names have one of these words. Each name is looked at once.
template <typename... Words>
std::vector<std::uint32_t> IdleCauses::calls_with(Words... words) const {
  enum class Known : std::uint8_t { kNothing, kHas, kLacks };
  const ApiCalls& calls = trace_.api_calls;
  std::vector<Known> names(trace_.strings.size());
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    Known& known = names[static_cast<std::size_t>(calls.name[row])];
    if (known == Known::kNothing) {
      const std::string_view text = trace_.strings[calls.name[row]];
      const bool has = ((text.find(words) != std::string_view::npos) || ...);
      known = has ? Known::kHas : Known::kLacks;
    }
    if (known == Known::kHas) {
      rows.push_back(row);
    }
  }
  return rows;
}

// Once for all GPUs.
const IdleCauses::FirstUses& IdleCauses::first_uses() {
  if (first_uses_) {
    return *first_uses_;
  }
  FirstUses& found = first_uses_.emplace();
  const ApiCalls& calls = trace_.api_calls;
  for (const std::uint32_t row : calls_with("cuLink")) {
    found.links_ns.push_back(calls.start_ns[row]);
  }
  std::ranges::sort(found.links_ns);

  std::vector<std::uint32_t> rows = calls_with("StreamBeginCapture", "StreamEndCapture");
  std::ranges::sort(rows, {}, [&](std::uint32_t one) {
    return std::tuple(calls.thread[one], calls.start_ns[one], one);
  });
  const auto begins = [&](std::uint32_t row) {
    return trace_.strings[calls.name[row]].find("StreamBeginCapture") != std::string_view::npos;
  };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    if (begins(rows[i]) && !begins(rows[i + 1]) &&
        calls.thread[rows[i]] == calls.thread[rows[i + 1]]) {
      pairs.emplace_back(rows[i], rows[i + 1]);
    }
  }
  make_rows(found.captures, pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    found.captures.start_ns[i] = calls.start_ns[pairs[i].first];
    found.captures.end_ns[i] = calls.end_ns[pairs[i].second];
    found.captures.thread[i] = calls.thread[pairs[i].first];
    found.captures.name[i] = StringId{};
  }
  return found;
}

// Whether the launch that ends a span is the first of its kernel on the GPU.
std::vector<bool> IdleCauses::first_launches(std::uint16_t device,
                                             const std::vector<HostSpan>& spans) const {
  std::unordered_map<std::uint32_t, std::size_t> span_of_call;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    span_of_call.emplace(spans[i].gap->call, i);
  }
  const Kernels& kernels = trace_.kernels;
  std::vector<std::int64_t> first_ns(trace_.strings.size(), INT64_MAX);
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    if (kernels.device[row] == device) {
      std::int64_t& first = first_ns[static_cast<std::size_t>(kernels.name[row])];
      first = std::min(first, kernels.start_ns[row]);
    }
  }
  std::vector<bool> is_first(spans.size());
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    const std::uint32_t call = attribution_.kernels.call[row];
    if (kernels.device[row] != device || call == kNone ||
        kernels.start_ns[row] != first_ns[static_cast<std::size_t>(kernels.name[row])]) {
      continue;
    }
    if (const auto span = span_of_call.find(call); span != span_of_call.end()) {
      is_first[span->second] = true;
    }
  }
  return is_first;
}

// By StringId: ranges that mark stages. The GPU waits inside its steps, so these names say nothing.
const std::vector<bool>& IdleCauses::marks() {
  if (!is_mark_.empty()) {
    return is_mark_;
  }
  is_mark_.resize(trace_.strings.size());
  const Ranges& ranges = trace_.ranges;
  for (std::size_t row = 0; row < ranges.size(); ++row) {
    const std::pair place(ranges.thread[row], ranges.start_ns[row]);
    const auto instance = std::lower_bound(
        stages_.instances.begin(), stages_.instances.end(), place,
        [](const StageInstance& one, const std::pair<std::uint32_t, std::int64_t>& at) {
          return std::pair(one.thread, one.start_ns) < at;
        });
    if (instance != stages_.instances.end() &&
        std::pair(instance->thread, instance->start_ns) == place) {
      is_mark_[static_cast<std::size_t>(ranges.text[row])] = true;
    }
  }
  return is_mark_;
}

// Whether a gap is long enough to name its scope.
bool IdleCauses::is_named(const HostSpan& span) {
  const bool is_wait = span.label.kind == IdleKind::kWaiting;
  return span.end_ns - span.start_ns >= (is_wait ? kAskedWaitNs : kWorkNs);
}

// Without a call, the gap's time is the scope's.
template <typename Name>
void IdleCauses::set_scope(const Name& name, HostSpan& span) {
  span.label.scope = name.name;
  if (span.label.call.empty()) {
    span.gap->in_call_ns = name.covered_ns;
  }
}

void IdleCauses::name_scopes(std::vector<HostSpan>& spans) {
  CoverageByName by_name;
  add_coverage(trace_.ops, trace_.ops.name, spans, by_name);
  add_coverage(trace_.ranges, trace_.ranges.text, spans, by_name);
  std::vector<std::map<std::string, Coverage>> names(spans.size());
  const std::vector<bool>& is_mark = marks();
  for (const auto& [key, coverage] : by_name) {
    const auto id = static_cast<std::uint32_t>(key);
    const std::string_view text = trace_.strings[static_cast<StringId>(id)];
    if (!says_nothing(text) && !is_mark[id]) {
      names[key >> 32][without_numbers(text)].add(coverage);
    }
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (is_named(spans[i])) {
      set_scope(innermost(names[i], spans[i].end_ns - spans[i].start_ns), spans[i]);
    }
  }
}

// Only where no operator or range has named the scope: these are the program's own words.
void IdleCauses::name_functions(std::vector<HostSpan>& spans) const {
  CoverageByName by_name;
  add_coverage(trace_.functions, trace_.functions.name, spans, by_name);
  std::vector<std::map<std::string, Coverage>> names(spans.size());
  for (const auto& [key, coverage] : by_name) {
    const std::string_view text =
        trace_.strings[static_cast<StringId>(static_cast<std::uint32_t>(key))];
    // What the driver asks of the operating system inside a call that is named says nothing new.
    const bool is_inside_call = text.ends_with("()") && !spans[key >> 32].label.call.empty();
    if (!is_glue(text) && !is_inside_call) {
      names[key >> 32][function_name(text)].add(coverage);
    }
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].label.scope.empty() && is_named(spans[i])) {
      set_scope(innermost(names[i], spans[i].end_ns - spans[i].start_ns), spans[i]);
    }
  }
}

std::uint16_t IdleCauses::number_of(const IdleLabel& label) {
  const auto known = numbers_.find(label);
  if (known != numbers_.end()) {
    return known->second;
  }
  if (labels_.size() >= kMostLabels && !(label.call.empty() && label.scope.empty())) {
    return number_of({label.kind, "", ""});
  }
  const auto number = static_cast<std::uint16_t>(labels_.size());
  labels_.push_back(label);
  numbers_.emplace(label, number);
  return number;
}

}  // namespace gpuwhy
