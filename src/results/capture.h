// SPDX-License-Identifier: Apache-2.0
//
// The recording as a whole: what its file says, and what it amounts to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/field.h"
#include "results/format.h"

namespace gpuwhy {

// The part of the recording that was analyzed. Users count from the start of the whole recording.
struct Window {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::string why;                    // in words: "steps 10..20 of 64"
  std::int64_t capture_start_ns = 0;  // of the whole recording, on its clock
  bool is_by_time = false;            // else it holds whole steps, or all work
  std::int64_t first_step = 0;        // the number of its first step in the whole recording

  // On the recording's clock.
  std::int64_t start_ns() const { return capture_start_ns + from_ns; }
  std::int64_t end_ns() const { return capture_start_ns + to_ns; }
};

template <typename F>
void describe(const Window*, F&& f) {
  using T = Window;
  f("from_ns", &T::from_ns,
    is_signed(number("ns", "", "calls kernels copies graphs", "capture.window",
                     "its start, after the start of the whole recording")));
  f("to_ns", &T::to_ns,
    number("ns", "", "calls kernels copies graphs", "capture.window",
           "its end, after the start of the whole recording"));
  f("why", &T::why, plain("how it was chosen"));
}

// What the name of a file says of the rank that wrote it: "dp0_pp1_tp3", "rank-3".
struct RankName {
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> tensor;
  std::optional<std::int64_t> pipeline;
  std::optional<std::int64_t> data;
};

// One of the files of a job that were analyzed together.
struct FileRow {
  std::string file;
  std::optional<std::int64_t> rank;  // of its name, or else as the recording says
  std::vector<std::string> devices;  // its GPUs, as they are named here
  std::int64_t shift_ns = 0;         // added to its times
  bool is_aligned = true;            // its times can be compared with those of the first file
  std::string clock;                 // how that is known, in words
  std::uint32_t clock_number = 0;    // times of files with the same number can be compared
  RankName name = {};
};

template <typename F>
void describe(const FileRow*, F&& f) {
  using T = FileRow;
  f("file", &T::file, names_row("its name, or its path where names are alike"));
  f("rank", &T::rank,
    number("1", "", "", "capture.files", "of its name, or as the recording says"));
  f("devices", &T::devices, plain("its GPUs; renumbered where two files use the same number"));
  f("shift_ns", &T::shift_ns,
    is_signed(number("ns", "", "", "capture.files",
                     "added to its times, to have them on the clock of the first file")));
  f("is_aligned", &T::is_aligned, plain("whether its times can be compared with the first file's"));
  f("clock", &T::clock, plain("how its clock was aligned"));
}

// Properties of the recording as a whole.
struct CaptureInfo {
  std::string path;
  FormatInfo format;
  std::string schema_version;  // empty before 2022
  std::string tool_version;
  std::string graph_mode;                  // "Graph" or "Node" where the recording says
  std::optional<std::int64_t> rank;        // of the process among those of one job
  std::optional<std::int64_t> world_size;  // their number
  bool has_cuda = false;                   // any table of CUDA activity
  bool has_kernel_table = false;           // kernels, even if none of them can be used
  bool has_cpu_samples = false;            // or switches of threads; their rows are not read
  std::optional<std::int64_t> utc_ns;      // UTC at time 0 of the recording's clock
  // When the tool began to record, which may be before the first event; nullopt: unknown.
  std::optional<std::int64_t> session_start_ns;
  std::optional<Window> window;       // nullopt: all of it
  std::vector<std::string> messages;  // warnings and errors of the tool itself
  std::vector<FileRow> files;         // empty: all is of one file
};

// The recording as a whole.
struct CaptureRow : CaptureInfo {
  std::string command = {};      // that gpuwhy run ran, without secrets; empty: it is not known
  std::string file = {};         // without its folders
  std::string recorded = {};     // "2026-11-02 14:03:05 UTC"; empty: the recording does not say
  std::string format_name = {};  // as in FormatInfo
  std::string tool = {};         // older files do not name it
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;  // from the first recorded event to the last
  std::int64_t kernel_ns = 0;
  std::int64_t unattributed_kernel_ns = 0;  // launched in no stage, or by an unrecorded launch
  std::int64_t opaque_graph_ns = 0;         // of kernel_ns: CUDA graphs recorded as a whole
  std::int64_t stage_overlap_ns = 0;        // stage windows (all but nested) minus their union
  std::int64_t outside_stages_ns = 0;       // of the duration: in no stage's window
  // API calls, and how many there were by their numbers; launches that were captured into a graph
  // instead of run.
  std::int64_t num_calls = 0;
  std::int64_t num_numbered_calls = 0;
  std::int64_t num_captured_launches = 0;
  std::string stage_source = {};  // in words
};

template <typename F>
void describe(const CaptureRow*, F&& f) {
  using T = CaptureRow;
  f("command", &T::command,
    maybe("the command line that gpuwhy run ran, without secrets; null for a recording"));
  f("file", &T::file, plain("the recording's name, without its folders; of several, the first"));
  f("recorded", &T::recorded,
    plain("when the first recorded call or GPU work was, in UTC, where the recording says"));
  f("format", &T::format_name, plain("the format of the recording"));
  f("tool", &T::tool, plain("the tool that recorded"));
  f("tool_version", &T::tool_version, plain("its version"));
  f("schema_version", &T::schema_version, plain("the version of the recording's own schema"));
  f("graph_mode", &T::graph_mode, plain("whether CUDA graphs were recorded by node or whole"));
  f("rank", &T::rank, number("1", "", "", "capture.rank", "as the recording says"));
  f("world_size", &T::world_size, number("1", "", "", "capture.rank", "as the recording says"));
  f("start_ns", &T::start_ns,
    is_signed(number("ns", "", "calls kernels copies graphs", "capture.start",
                     "the first recorded call or GPU work, on the recording's clock")));
  f("duration_ns", &T::duration_ns,
    number("ns", "", "calls kernels copies graphs", "capture.duration",
           "from the first recorded call or GPU work to the end of the last"));
  f("kernel_ns", &T::kernel_ns,
    number("ns", "", "kernels graphs", "capture.kernel_time",
           "sum of the durations of kernels and of graphs recorded as a whole"));
  f("unattributed_kernel_ns", &T::unattributed_kernel_ns,
    number("ns", "", "kernels graphs calls marks", "capture.unattributed",
           "of the kernel time: launched in no stage, or with a launch that was not recorded"));
  f("opaque_graph_ns", &T::opaque_graph_ns,
    number("ns", "", "graphs", "capture.opaque",
           "sum of the durations of graphs recorded as a whole"));
  f("stage_overlap_ns", &T::stage_overlap_ns,
    number("ns", "", "marks kernels copies graphs", "capture.overlap",
           "stage windows, nested ones left out, minus their union"));
  f("calls", &T::num_calls, number("1", "", "calls", "capture.calls", "API calls"));
  f("numbered_calls", &T::num_numbered_calls,
    number("1", "", "calls", "capture.calls",
           "how many there were by their correlation numbers, also those not recorded"));
  f("captured_launches", &T::num_captured_launches,
    number("1", "", "calls", "capture.calls", "launches captured into a graph instead of run"));
  f("outside_stages_ns", &T::outside_stages_ns,
    number("ns", "", "marks kernels copies graphs", "capture.outside",
           "of the duration: in no stage's window"));
  f("stage_source", &T::stage_source, plain("which marks name the stages"));
  f("window", &T::window, plain("the part of the recording that was analyzed; null: all of it"));
  f("files", &T::files, maybe("the files of a job, in the order of ranks; null: one file"));
}

}  // namespace gpuwhy
