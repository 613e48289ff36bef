#include "base/file_map.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "temporary_folder.h"

namespace sapwood {
namespace {

std::string text_of(const FileMap& map) {
  return {reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()};
}

TEST(FileMap, AFileOfTheExpectedSizeIsMapped) {
  const std::string path = temporary_folder() + "/file";
  write_text(path, "heartwood");
  const auto map = FileMap::open(path, 9);
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(text_of(map.value()), "heartwood");
}

TEST(FileMap, AFileOfAnotherSizeIsRefusedAndBothSizesAreNamed) {
  const std::string path = temporary_folder() + "/file";
  write_text(path, "heartwood");
  for (const uint64_t expected : {uint64_t{0}, uint64_t{8}, uint64_t{10}, UINT64_MAX}) {
    const auto map = FileMap::open(path, expected);
    ASSERT_FALSE(map.ok());
    EXPECT_EQ(map.status().code(), Code::kCorrupt);
    EXPECT_EQ(map.status().message(), path + ": has 9 bytes, expected " + std::to_string(expected));
  }
}

TEST(FileMap, AnEmptyFileIsAnEmptySpan) {
  const std::string path = temporary_folder() + "/file";
  write_text(path, "");
  const auto map = FileMap::open(path, 0);
  ASSERT_TRUE(map.ok());
  EXPECT_TRUE(map->bytes().empty());
}

TEST(FileMap, AMissingFileAndAFolderAndAPipeAreRefusedByName) {
  const std::string folder = temporary_folder();
  const auto missing = FileMap::open(folder + "/none", 1);
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_EQ(missing.status().message(), folder + "/none: No such file or directory");

  const auto directory = FileMap::open(folder, 1);
  EXPECT_EQ(directory.status().message(), folder + ": is not a regular file");

  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(FileMap::open(pipe, 1).status().message(), pipe + ": is not a regular file");
  EXPECT_FALSE(read_file(pipe, 10).ok());
}

TEST(FileMap, MovingKeepsTheAddressAndLeavesNothingBehind) {
  const std::string path = temporary_folder() + "/file";
  write_text(path, "heartwood");
  FileMap first = FileMap::open(path, 9).value();
  const uint8_t* address = first.bytes().data();
  FileMap second = std::move(first);
  EXPECT_EQ(second.bytes().data(), address);
  FileMap third;
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), address);
  EXPECT_EQ(text_of(third), "heartwood");
}

TEST(ReadFile, TheWholeFileOrAnErrorWhenItIsTooLong) {
  const std::string path = temporary_folder() + "/file";
  write_text(path, std::string("with\0zero", 9));
  EXPECT_EQ(read_file(path, 9).value(), std::string("with\0zero", 9));
  EXPECT_EQ(read_file(path, 8).status().message(), path + ": has 9 bytes, at most 8 are allowed");
  EXPECT_EQ(read_file(path + "x", 8).status().code(), Code::kNotFound);
  EXPECT_EQ(file_size(path).value(), 9u);
}

}  // namespace
}  // namespace sapwood
