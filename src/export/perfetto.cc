// SPDX-License-Identifier: Apache-2.0
//
// Writer of Perfetto traces: TrackEvent packets, encoded by field number.
//
// Perfetto's own library records a running program into shared memory. Here the recording is
// complete, so only the file format is needed: protobuf packets, each with a time and the number of
// its sequence. Texts are interned: a packet carries a text once per sequence, later ones its
// number. A slice takes two packets, together 40 bytes, and 20 more for its arguments; there is no
// packet for a whole slice.
//
// Packets are not compressed, though Perfetto reads compressed ones: they would take a fifth of the
// space and twice the time to write. Viewers also read the whole file gzipped.
//
// Field numbers: protos/perfetto/trace/{trace_packet,interned_data/interned_data,track_event/
// {track_event,track_descriptor,counter_descriptor,debug_annotation,process_descriptor,
// thread_descriptor}}.proto of github.com/google/perfetto. Perfetto keeps them stable for old
// traces.
//
// What it gets wrong: clocks are not declared, so times are the recording's own, counted from its
// start, and Perfetto takes them for the machine's time since boot.
#include "export/perfetto.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <vector>

#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include "analysis/profile.h"

namespace gpuwhy {
namespace {

using protozero::pbf_writer;

namespace trace_field {
constexpr protozero::pbf_tag_type kPacket = 1;
}
namespace packet_field {
constexpr protozero::pbf_tag_type kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                                  kInternedData = 12, kSequenceFlags = 13, kTrackDescriptor = 60;
constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;  // sequence_flags
}  // namespace packet_field
namespace event_field {
constexpr protozero::pbf_tag_type kCategoryIids = 3, kDebugAnnotations = 4, kType = 9,
                                  kNameIid = 10, kTrackUuid = 11, kDoubleCounterValue = 44;
enum Type : std::int32_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };
}  // namespace event_field
namespace interned_field {
constexpr protozero::pbf_tag_type kEventCategories = 1, kEventNames = 2, kAnnotationNames = 3,
                                  kAnnotationStrings = 29;
constexpr protozero::pbf_tag_type kIid = 1, kText = 2;  // of each of these
}  // namespace interned_field
namespace annotation_field {
constexpr protozero::pbf_tag_type kNameIid = 1, kIntValue = 4, kDoubleValue = 5,
                                  kStringValueIid = 17;
}
namespace track_field {
constexpr protozero::pbf_tag_type kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5,
                                  kCounter = 8, kChildOrdering = 11, kSiblingOrderRank = 12;
constexpr std::int32_t kExplicit = 3;  // child_ordering: by rank
constexpr protozero::pbf_tag_type kProcessPid = 1, kProcessName = 6;
constexpr protozero::pbf_tag_type kThreadPid = 1, kThreadTid = 2, kThreadName = 5;
constexpr protozero::pbf_tag_type kCounterUnitName = 6;
}  // namespace track_field

// Fields of a small message, written into a buffer with room for them. Events are the bulk of a
// trace; protozero's writer appends to a string byte by byte, which takes several times as long.
class Fields {
 public:
  static constexpr std::size_t kMostNumberBytes = 5 + 10;  // tag and value

  explicit Fields(char* to) : to_(to) {}

  void number(protozero::pbf_tag_type tag, std::uint64_t value) {
    put_varint(std::uint64_t{tag} << 3U);
    put_varint(value);
  }
  void real(protozero::pbf_tag_type tag, double value) {
    put_varint(std::uint64_t{tag} << 3U | 1U);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8) {
      *to_++ = static_cast<char>(bits >> shift & 0xFFU);
    }
  }
  void bytes(protozero::pbf_tag_type tag, std::string_view contents) {
    put_varint(std::uint64_t{tag} << 3U | 2U);
    put_varint(contents.size());
    to_ = std::copy(contents.begin(), contents.end(), to_);
  }

  const char* end() const { return to_; }

 private:
  void put_varint(std::uint64_t value) { to_ += protozero::add_varint_to_buffer(to_, value); }

  char* to_;
};

// Encodes each call as one packet and keeps track of what the reader already knows.
class PerfettoSink : public EventSink {
 public:
  using EventSink::EventSink;

  void begin_sequence() override {
    ++sequence_;
    is_fresh_ = true;
    for (Interned& texts : interned_) {
      texts.is_known.assign(num_texts(), false);
    }
  }

  // A track descriptor comes before the events of its track; Perfetto drops events of unknown
  // tracks.
  void track(const ExportTrack& track) override {
    namespace field = track_field;
    message_.clear();
    pbf_writer descriptor(message_);
    const std::string name = shown_name(track.name);
    descriptor.add_uint64(field::kUuid, track.id);
    descriptor.add_string(field::kName, name);
    if (track.kind == TrackKind::kProcess) {
      pbf_writer process(descriptor, field::kProcess);
      process.add_int32(field::kProcessPid, static_cast<std::int32_t>(track.pid));
      process.add_string(field::kProcessName, name);
    }
    if (track.kind == TrackKind::kThread) {
      pbf_writer thread(descriptor, field::kThread);
      thread.add_int32(field::kThreadPid, static_cast<std::int32_t>(track.pid));
      thread.add_int64(field::kThreadTid, track.tid);
      thread.add_string(field::kThreadName, name);
    }
    if (track.parent != 0) {
      descriptor.add_uint64(field::kParentUuid, track.parent);
    }
    if (track.kind == TrackKind::kCounter) {
      pbf_writer counter(descriptor, field::kCounter);
      counter.add_string(field::kCounterUnitName, track.unit);
    }
    // Perfetto sorts siblings by rank only if their parent asks for explicit order.
    if (track.kind == TrackKind::kGroup) {
      descriptor.add_enum(field::kChildOrdering, field::kExplicit);
    }
    descriptor.add_int32(field::kSiblingOrderRank, static_cast<std::int32_t>(track.rank));
    put_packet(packet_field::kTrackDescriptor, message_, std::nullopt, {});
  }

  void begin(const ExportSlice& slice) override {
    namespace field = event_field;
    interned_data_.clear();
    event_.resize(
        std::max(event_.size(), (4 + 3 * slice.arguments.size()) * Fields::kMostNumberBytes));
    Fields event(event_.data());
    event.number(field::kType, slice.is_mark ? field::kInstant : field::kSliceBegin);
    event.number(field::kTrackUuid, slice.track);
    event.number(field::kNameIid, iid_of(kNames, slice.name));
    event.number(field::kCategoryIids, iid_of(kCategories, slice.category));
    for (const SliceArgument& argument : slice.arguments) {
      std::array<char, 2 * Fields::kMostNumberBytes> buffer{};
      Fields annotation(buffer.data());
      add_argument(argument, annotation);
      event.bytes(field::kDebugAnnotations, {buffer.data(), annotation.end()});
    }
    // Names that are new in this sequence are defined in the packet that first uses them.
    put_packet(packet_field::kTrackEvent, {event_.data(), event.end()}, slice.start_ns,
               interned_data_);
  }

  void end(std::uint32_t track, std::uint64_t time_ns) override {
    std::array<char, 2 * Fields::kMostNumberBytes> buffer{};
    Fields event(buffer.data());
    event.number(event_field::kType, event_field::kSliceEnd);
    event.number(event_field::kTrackUuid, track);
    put_packet(packet_field::kTrackEvent, {buffer.data(), event.end()}, time_ns, {});
  }

  void counter(std::uint32_t track, std::uint64_t time_ns, double value) override {
    std::array<char, 3 * Fields::kMostNumberBytes> buffer{};
    Fields event(buffer.data());
    event.number(event_field::kType, event_field::kCounter);
    event.number(event_field::kTrackUuid, track);
    event.real(event_field::kDoubleCounterValue, value);
    put_packet(packet_field::kTrackEvent, {buffer.data(), event.end()}, time_ns, {});
  }

 private:
  // Each kind of text has its own numbering in Perfetto; here a text has the same number in all of
  // them.
  enum InternedKind : std::uint8_t { kCategories, kNames, kArguments, kStrings };
  struct Interned {
    protozero::pbf_tag_type field;
    std::vector<bool> is_known;  // by TextId: sent in this sequence
  };

  // The number of a text; adds the text to interned_data_ at its first use in a sequence.
  std::uint64_t iid_of(InternedKind kind, TextId id) {
    Interned& texts = interned_[kind];
    const std::uint64_t iid = static_cast<std::uint64_t>(id) + 1;  // 0 is none
    if (!texts.is_known[static_cast<std::size_t>(id)]) {
      texts.is_known[static_cast<std::size_t>(id)] = true;
      pbf_writer data(interned_data_);
      pbf_writer entry(data, texts.field);
      entry.add_uint64(interned_field::kIid, iid);
      entry.add_string(interned_field::kText, shown_name(text(id)));
    }
    return iid;
  }

  void add_argument(const SliceArgument& argument, Fields& annotation) {
    namespace field = annotation_field;
    annotation.number(field::kNameIid, iid_of(kArguments, argument.name));
    if (const auto* whole = std::get_if<std::int64_t>(&argument.value)) {
      annotation.number(field::kIntValue, static_cast<std::uint64_t>(*whole));
    } else if (const auto* number = std::get_if<double>(&argument.value)) {
      annotation.real(field::kDoubleValue, *number);
    } else {
      annotation.number(field::kStringValueIid, iid_of(kStrings, std::get<TextId>(argument.value)));
    }
  }

  // One packet of the trace: `message` in the field `tag`, and new texts. The first packet of a
  // sequence tells the reader to forget interned texts.
  void put_packet(protozero::pbf_tag_type tag, std::string_view message,
                  std::optional<std::uint64_t> time_ns, std::string_view interned_data) {
    constexpr std::size_t kFrameBytes = 1 + 10;  // tag and length of the packet, put before it
    packet_.resize(std::max(packet_.size(), kFrameBytes + 5 * Fields::kMostNumberBytes +
                                                message.size() + interned_data.size()));
    char* const start = packet_.data() + kFrameBytes;
    Fields packet(start);
    packet.number(packet_field::kSequenceId, sequence_);
    packet.number(packet_field::kSequenceFlags,
                  is_fresh_ ? packet_field::kStateCleared : packet_field::kNeedsState);
    is_fresh_ = false;
    if (time_ns) {
      packet.number(packet_field::kTimestamp, *time_ns);
    }
    if (!interned_data.empty()) {
      packet.bytes(packet_field::kInternedData, interned_data);
    }
    packet.bytes(tag, message);
    const auto size = static_cast<std::uint64_t>(packet.end() - start);
    char* const frame = start - 1 - protozero::length_of_varint(size);
    *frame = static_cast<char>(trace_field::kPacket << 3U | 2U);
    protozero::add_varint_to_buffer(frame + 1, size);
    put({frame, packet.end()});
  }

  std::uint32_t sequence_ = 0;
  bool is_fresh_ = true;
  std::array<Interned, 4> interned_{{{interned_field::kEventCategories, {}},
                                     {interned_field::kEventNames, {}},
                                     {interned_field::kAnnotationNames, {}},
                                     {interned_field::kAnnotationStrings, {}}}};
  std::string message_, interned_data_;  // of protozero
  std::vector<char> event_, packet_;     // of Fields; they only grow
};

}  // namespace

ExportedTrace write_pftrace(const Profile& profile, const std::filesystem::path& path,
                            std::uint64_t budget_bytes) {
  return write_recording<PerfettoSink>(profile, path, budget_bytes);
}

}  // namespace gpuwhy
