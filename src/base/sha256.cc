// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 through OpenSSL's EVP interface, which uses the processor's SHA instructions if present.
#include "base/sha256.h"

#include <array>
#include <cstddef>
#include <fstream>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/error.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

// One hash computation. Throws kFailure if OpenSSL fails.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    check(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }

  void add(std::string_view bytes) {
    check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }

  std::string bytes() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    check(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    return {digest.begin(), digest.begin() + size};
  }

  std::string hex() {
    std::string text;
    for (const char byte : bytes()) {
      text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return text;
  }

 private:
  static void check(bool succeeded) {
    if (!succeeded) {
      throw Error(ErrorKind::kFailure, "OpenSSL cannot compute SHA-256");
    }
  }

  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

std::string sha256_bytes(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.bytes();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  Sha256 hash;
  std::vector<char> block(kMiB);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    hash.add({block.data(), static_cast<std::size_t>(file.gcount())});
  }
  if (!file.eof()) {
    throw Error(ErrorKind::kInput, fmt::format("cannot read {}", path.string()));
  }
  return hash.hex();
}

}  // namespace gpuwhy
