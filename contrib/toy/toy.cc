// SPDX-License-Identifier: Apache-2.0
//
// Example of a format: text with one line per kernel, "NAME START END" in nanoseconds, on one GPU.
//
// docs/adding.md shows how it becomes a part of the program. It has no outline, so no memory is
// planned for it.
#include <algorithm>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "ingest/ingest.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kToyMagic = "toy trace 1\n";

struct ToyKernel {
  std::string name;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

std::vector<ToyKernel> toy_kernels(const std::string& text, const std::string& path) {
  std::vector<ToyKernel> kernels;
  std::istringstream lines(text.substr(kToyMagic.size()));
  for (std::string line; std::getline(lines, line);) {
    ToyKernel kernel;
    std::istringstream words(line);
    if (!(words >> kernel.name >> kernel.start_ns >> kernel.end_ns)) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: line {} is not NAME START END", path, kernels.size() + 2));
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

template <typename T>
void fill_column(std::size_t size, T value, Column<T>& column) {
  column = Column<T>(size);
  std::ranges::fill(column.span(), value);
}

bool is_toy(const InputFile& file) {
  return file.head().starts_with(kToyMagic);
}

Recording load_toy(const InputFile& file, unsigned /*num_threads*/) {
  const std::vector<ToyKernel> rows =
      toy_kernels(read_file(file.path(), kGiB), file.path().string());
  Trace trace;
  trace.capture.has_cuda = trace.capture.has_kernel_table = true;
  trace.devices = {{}};
  trace.processes = {{}};
  trace.streams = {{}};
  trace.shapes = {{}};
  Kernels& kernels = trace.kernels;
  fill_column(rows.size(), std::int64_t{0}, kernels.start_ns);
  fill_column(rows.size(), std::int64_t{0}, kernels.end_ns);
  fill_column(rows.size(), StringId{0}, kernels.name);
  fill_column(rows.size(), StringId{0}, kernels.mangled_name);
  fill_column(rows.size(), std::uint32_t{0}, kernels.correlation);
  fill_column(rows.size(), std::uint32_t{0}, kernels.shape);
  fill_column(rows.size(), std::uint32_t{0}, kernels.stream);
  fill_column(rows.size(), std::uint16_t{0}, kernels.process);
  fill_column(rows.size(), std::uint16_t{0}, kernels.device);
  fill_column(rows.size(), kNoNode, kernels.graph_node);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    kernels.start_ns[row] = rows[row].start_ns;
    kernels.end_ns[row] = rows[row].end_ns;
    kernels.name[row] = trace.strings.intern(rows[row].name);
  }
  return trace;
}

}  // namespace

const Importer kToy = {{.name = "toy text",
                        .tool = "the toy profiler",
                        .tool_id = "toy",
                        .kind = "text file",
                        .made_with = "an editor"},
                       is_toy,
                       load_toy,
                       nullptr};

}  // namespace gpuwhy
