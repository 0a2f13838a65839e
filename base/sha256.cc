#include "base/sha256.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/unique_fd.h"

namespace hvd {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
}

void Sha256::update(std::string_view bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_.get(), sum.data(), &size);
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  return {reinterpret_cast<const char*>(sum.data()), size};
}

std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

Result<std::string> sha256_of_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_valid()) return make_error("cannot read {}: {}", path, std::strerror(errno));
  Sha256 sum;
  std::vector<char> buffer(256 * 1024);
  ssize_t size = 0;
  while ((size = ::read(fd.get(), buffer.data(), buffer.size())) > 0) {
    sum.update({buffer.data(), static_cast<std::size_t>(size)});
  }
  if (size < 0) return make_error("cannot read {}: {}", path, std::strerror(errno));
  return sum.finish();
}

}  // namespace hvd
