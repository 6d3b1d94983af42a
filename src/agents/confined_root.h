// SPDX-License-Identifier: Apache-2.0
//
// A folder whose files may be read, and none outside of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpuwhy {

class ConfinedRoot {
 public:
  // Throws kUsage if it is not a folder.
  explicit ConfinedRoot(const std::filesystem::path& folder);

  // An existing file or folder below the root, by its path from there, with links resolved. Throws
  // kUsage for an absolute path, for "..", for a link that leads out, and for anything that is
  // neither file nor folder.
  std::filesystem::path resolve(const std::string& path) const;

  // Before a folder is read as a bundle. Throws kUsage if it holds a link that leads out, or
  // anything but files and folders: opening a pipe would wait for ever.
  void check_links(const std::filesystem::path& folder) const;

  // A file or folder that the root holds.
  struct Entry {
    std::string path;  // from the root
    bool is_folder = false;
    std::uint64_t size_bytes = 0;
  };
  // Those of a folder, sorted; at most 1000. Hidden ones and links that lead out are left out.
  std::vector<Entry> entries(const std::filesystem::path& folder) const;

  // With links resolved.
  std::string folder() const { return root_.string(); }

  // The path from the root, for answers: an absolute one is not for the client to see.
  std::string shown(const std::filesystem::path& resolved) const;

 private:
  bool is_inside(const std::filesystem::path& resolved) const;

  std::filesystem::path root_;
};

}  // namespace gpuwhy
