// SHA-256, by OpenSSL's libcrypto. Any thread.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd {

class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  // The sum's 32 bytes; what comes after it starts a new one.
  [[nodiscard]] std::string finish();

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

// Two small digits a byte.
[[nodiscard]] std::string to_hex(std::string_view bytes);

// The sum's 32 bytes. Reads the whole file.
[[nodiscard]] Result<std::string> sha256_of_file(const std::string& path);

}  // namespace hvd
