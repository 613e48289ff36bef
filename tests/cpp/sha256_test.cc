#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sapwood {
namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// FIPS 180-4's examples (NIST's "SHA256" and "SHA2 Additional" sheets).
TEST(Sha256, EveryVariantGivesTheStandardsExamples) {
  const std::vector<std::pair<std::string, std::string>> examples = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"\xbd", "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"},
      {std::string(1000000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
      {std::string(55, '\0'), "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
      {std::string(56, '\0'), "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"},
      {std::string(64, '\0'), "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
  };
  for (const Sha256Variant& variant : runnable_sha256()) {
    for (const auto& [message, digest] : examples) {
      Sha256 hash(variant.compress);
      hash.update(bytes_of(message));
      EXPECT_EQ(hexadecimal(hash.finish()), digest) << variant.name << ", " << message.size();
    }
  }
}

TEST(Sha256, PiecesOfAnySizeGiveTheDigestOfTheWhole) {
  std::string message;
  for (int i = 0; i < 1000; ++i) message += static_cast<char>(i * 131 + i / 7);
  const Sha256Digest whole = sha256(bytes_of(message));
  for (size_t piece = 1; piece < 200; ++piece) {
    Sha256 hash;
    for (size_t begin = 0; begin < message.size(); begin += piece) {
      hash.update(bytes_of(message).subspan(begin, std::min(piece, message.size() - begin)));
    }
    ASSERT_EQ(hash.finish(), whole) << piece;
  }
}

TEST(Sha256, VariantsAgreeOnMessagesOfEveryLength) {
  std::string message;
  for (int length = 0; length < 300; ++length) {
    const Sha256Digest expected = [&] {
      Sha256 hash(runnable_sha256().front().compress);
      hash.update(bytes_of(message));
      return hash.finish();
    }();
    ASSERT_EQ(sha256(bytes_of(message)), expected) << length;
    message += static_cast<char>(length * 77 + 5);
  }
}

}  // namespace
}  // namespace sapwood
