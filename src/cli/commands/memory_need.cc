// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy analyze --memory-need: the memory, time and disk that an analysis will take.
//
// Without a limit the room is what the system says is free now; another program may take it a
// minute later. Options that leave rows out (--gpu, --pid) do not lower it: all rows are read
// before any is left out.
#include "cli/commands/memory_need.h"

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "capture/machine.h"
#include "session/reading/job_files.h"
#include "session/reading/memory_fit.h"
#include "session/reading/recording.h"

namespace gpuwhy {
namespace {

// What the limit or the machine has room for; nothing: it does not say.
struct Room {
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> disk_bytes;
  bool is_limit = false;  // the memory is what --memory-limit says
};

struct NeededFile {
  std::string name;
  TraceOutline outline;
  ReadingNeed need;
  Room room;
  std::size_t num_files = 1;
  unsigned files_at_once = 1;

  bool fits_memory() const { return !room.memory_bytes || needed() <= *room.memory_bytes; }
  bool is_coarse() const { return room.memory_bytes && need.peak_bytes > *room.memory_bytes; }
  // A limit makes the picture coarser where it must; without one nobody asked for that.
  std::uint64_t needed() const { return room.is_limit ? need.coarse_peak_bytes : need.peak_bytes; }
  std::uint64_t written() const { return need.report_bytes + need.trace_bytes; }
  bool fits_disk() const { return !room.disk_bytes || written() <= *room.disk_bytes; }
  bool fits() const { return fits_memory() && fits_disk(); }
};

std::string advice(const NeededFile& file) {
  if (!file.fits_disk()) {
    return file.need.trace_bytes > 0 ? "write elsewhere (--out), or leave out --with trace"
                                     : "write elsewhere (--out)";
  }
  if (!file.fits_memory() && file.need.coarse_peak_bytes <= *file.room.memory_bytes) {
    return fmt::format("--memory-limit {} makes the picture coarser, and no figure",
                       file.need.coarse_peak_bytes);
  }
  return file.fits_memory() ? "" : elsewhere(file.need);
}

std::vector<std::pair<const char*, std::uint64_t>> counts_of(const TraceOutline& outline) {
  return {{"kernels", outline.num_kernels}, {"copies", outline.num_copies},
          {"graphs", outline.num_graphs},   {"calls", outline.num_calls},
          {"ranges", outline.num_ranges},   {"operators", outline.num_ops}};
}

std::string text_of(const NeededFile& file) {
  const auto row = [](const char* name, const std::string& value) {
    return fmt::format("  {:<15}{}\n", name, value);
  };
  std::string text = fmt::format("{}: {}, {}\n", printable(file.name), file.outline.format,
                                 format_bytes(file.outline.file_bytes));
  text += row("events", fmt::format("{}{}, from {}", file.outline.is_estimate ? "about " : "",
                                    with_commas(file.outline.num_events()), file.outline.source));
  for (const auto& [name, count] : counts_of(file.outline)) {
    text += count == 0 ? "" : row(fmt::format("  {}", name).c_str(), with_commas(count));
  }
  text += row("memory",
              fmt::format("{} at its peak, {} once the file is read",
                          format_bytes(file.need.peak_bytes), format_bytes(file.need.load_bytes)));
  if (file.num_files > 1) {
    text += row("  files", fmt::format("{}, {} at a time", file.num_files, file.files_at_once));
  }
  text += row(file.room.is_limit ? "  allowed" : "  free here",
              file.room.memory_bytes ? format_bytes(*file.room.memory_bytes)
                                     : "n/a (/proc/meminfo does not say)");
  text += row("time", fmt::format("about {}", format_duration_ns(file.need.duration_ns)));
  if (file.written() > 0) {
    text += row("report", fmt::format("about {}", format_bytes(file.need.report_bytes)));
    if (file.need.trace_bytes > 0) {
      text += row(layout::kTrace, fmt::format("about {}", format_bytes(file.need.trace_bytes)));
    }
    text += row("  free there", file.room.disk_bytes ? format_bytes(*file.room.disk_bytes)
                                                     : "n/a (the file system does not say)");
  }
  const bool is_coarser = file.fits() && file.is_coarse();
  text += row("fits", !file.fits() ? "no"
                      : is_coarser ? fmt::format("with a coarser picture: {}",
                                                 format_bytes(file.need.coarse_peak_bytes))
                                   : "yes");
  const std::string next = advice(file);
  return next.empty() ? text : text + row("", "-> " + next);
}

Json json_of_need(const NeededFile& file) {
  Json document = json_document("memory_need", 1);
  document["file"] = file.name;
  document["format"] = file.outline.format;
  document["file_bytes"] = file.outline.file_bytes;
  document["events"] = {{"is_estimate", file.outline.is_estimate},
                        {"source", file.outline.source},
                        {"total", file.outline.num_events()}};
  for (const auto& [name, count] : counts_of(file.outline)) {
    document["events"][name] = count;
  }
  document["peak_bytes"] = file.need.peak_bytes;
  document["coarse_peak_bytes"] = file.need.coarse_peak_bytes;
  document["load_bytes"] = file.need.load_bytes;
  document["files"] = file.num_files;
  document["files_at_once"] = file.files_at_once;
  document["duration_ns"] = file.need.duration_ns;
  document["report_bytes"] = file.need.report_bytes;
  document["trace_bytes"] = file.need.trace_bytes;
  document["memory_bytes"] = number_or_null(file.room.memory_bytes);
  document["memory_is_limit"] = file.room.is_limit;
  document["disk_bytes"] = number_or_null(file.room.disk_bytes);
  document["fits"] = file.fits();
  document["picture"] = file.fits() && file.is_coarse() ? "coarse" : "full";
  document["advice"] = text_or_null(advice(file));
  return document;
}

PlannedOutput output_of(const NeedRequest& options) {
  PlannedOutput output;
  output.has_picture = !options.out.empty();
  if (output.has_picture) {
    output.trace_budget = options.trace_budget_bytes;
    output.has_trace = output.trace_budget > 0;
  }
  return output;
}

}  // namespace

int print_memory_need(const NeedRequest& options, Context& context) {
  const PlannedOutput output = output_of(options);
  NeededFile file;
  file.name = job_name(options.files);
  file.outline = outline_recordings(options.files);
  const ReadingNeed one_by_one = reading_need(file.outline, output);
  file.num_files = options.files.size();
  file.files_at_once =
      files_at_once(one_by_one, {file.num_files, options.num_threads, options.memory_limit_bytes});
  file.need = with_files_at_once(one_by_one, file.files_at_once);
  file.room.is_limit = options.memory_limit_bytes.has_value();
  file.room.memory_bytes =
      file.room.is_limit ? options.memory_limit_bytes : available_memory_bytes(context.system);
  if (output.has_picture) {
    file.room.disk_bytes = free_bytes(options.out);
  }
  context.console.out(options.json ? to_json_text(json_of_need(file)) : text_of(file));
  return file.fits() ? kExitOk : kExitEnvironment;
}

}  // namespace gpuwhy
