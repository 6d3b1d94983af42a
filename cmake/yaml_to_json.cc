// SPDX-License-Identifier: Apache-2.0
//
// Converter of the YAML files below a folder to JSON, run while the program is built:
//   gpuwhy_yaml_to_json FOLDER OUT
//
// yaml-cpp takes 80 ms for the table of GPUs, JSON less than one. A mistake in a file stops the
// build.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/yaml.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 3) {
    return 2;
  }
  try {
    const fs::path from = argv[1];
    const fs::path to = argv[2];
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(from)) {
      const fs::path& path = entry.path();
      if (!entry.is_regular_file() || path.extension() != ".yaml") {
        continue;
      }
      const fs::path out = to / path.lexically_relative(from);
      fs::create_directories(out.parent_path());
      const gpuwhy::Json value = gpuwhy::parse_yaml(gpuwhy::read_file(path), path.string());
      gpuwhy::write_file(out, gpuwhy::to_json_line(value) + "\n");
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
