#include "base/json.h"

#include <gtest/gtest.h>

namespace sapwood {
namespace {

nlohmann::json parsed(std::string_view text) { return parse_json(text, "file.json").value(); }

std::string error_of(const Status& status) { return status.ok() ? "no error" : status.message(); }

TEST(ParseJson, TheLineAndColumnOfAMistakeAreNamed) {
  const auto message = [](std::string_view text) {
    return error_of(parse_json(text, "file.json").status());
  };
  EXPECT_EQ(message("{\"a\": 1,\n  \"b\": }"), "file.json: is not valid JSON (line 2, column 8)");
  EXPECT_EQ(message(""), "file.json: is not valid JSON (line 1, column 1)");
  EXPECT_EQ(message("{} {}"), "file.json: is not valid JSON (line 1, column 4)");
  EXPECT_EQ(message("\"\xff\""), "file.json: is not valid JSON (line 1, column 2)");
  EXPECT_EQ(message("1e999"), "file.json: is not valid JSON (line 1, column 5)");
}

TEST(ParseJson, ATowerOfBracketsNeitherOverflowsTheStackNorParses) {
  EXPECT_FALSE(parse_json(std::string(200000, '['), "file.json").ok());
  EXPECT_TRUE(parse_json(std::string(100000, '[') + std::string(100000, ']'), "file.json").ok());
}

TEST(JsonObject, FieldsOfTheRightTypeAndRangeAreRead) {
  const nlohmann::json root =
      parsed(R"({"i": -3, "u": 5000000000, "f": 0.5, "b": true, "s": "x", "o": {"n": 7},
                 "bools": [true, false], "ints": [1, 2], "objects": [{"n": 1}, {"n": 2}]})");
  const JsonObject object(root, "file.json");
  int i = 0;
  uint64_t u = 0;
  float f = 0;
  bool b = false;
  std::string s;
  JsonObject o;
  std::vector<bool> bools;
  std::vector<int> ints;
  std::vector<JsonObject> objects;
  EXPECT_TRUE(object.read("i", -3, -3, &i).ok());
  EXPECT_TRUE(object.read("u", 0, uint64_t{1} << 40, &u).ok());
  EXPECT_TRUE(object.read("f", 0.0, 1.0, &f).ok());
  EXPECT_TRUE(object.read("b", &b).ok());
  EXPECT_TRUE(object.read("s", &s).ok());
  EXPECT_TRUE(object.read("o", &o).ok());
  EXPECT_TRUE(object.read("bools", &bools).ok());
  EXPECT_TRUE(object.read("ints", 1, 2, &ints).ok());
  EXPECT_TRUE(object.read("objects", &objects).ok());
  EXPECT_EQ(i, -3);
  EXPECT_EQ(u, 5000000000u);
  EXPECT_EQ(f, 0.5f);
  EXPECT_TRUE(b);
  EXPECT_EQ(s, "x");
  EXPECT_EQ(bools, (std::vector<bool>{true, false}));
  EXPECT_EQ(ints, (std::vector<int>{1, 2}));
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_TRUE(objects[1].read("n", 2, 2, &i).ok());
  EXPECT_TRUE(o.read("n", 7, 7, &i).ok());
}

TEST(JsonObject, EveryMistakeNamesTheFileTheFieldAndWhatWasFound) {
  const nlohmann::json root = parsed(
      R"({"a": {"text": "six", "big": 18446744073709551615, "real": 2.5, "minus": -1, "none": null,
          "list": [1, "two"], "deep": [{"x": 1}, 3], "yes": "yes"}})");
  JsonObject a;
  ASSERT_TRUE(JsonObject(root, "file.json").read("a", &a).ok());
  int i = 0;
  float f = 0;
  bool b = false;
  std::string s;
  std::vector<int> ints;
  std::vector<JsonObject> objects;
  EXPECT_EQ(error_of(a.read("layers", 1, 9, &i)), "file.json: a.layers is missing");
  EXPECT_EQ(error_of(a.read("text", 1, 9, &i)),
            "file.json: a.text: expected an integer from 1 to 9, found \"six\"");
  EXPECT_EQ(error_of(a.read("big", 1, 9, &i)),
            "file.json: a.big: expected an integer from 1 to 9, found 18446744073709551615");
  EXPECT_EQ(error_of(a.read("real", 1, 9, &i)),
            "file.json: a.real: expected an integer from 1 to 9, found 2.5");
  EXPECT_EQ(error_of(a.read("minus", 0, 9, &i)),
            "file.json: a.minus: expected an integer from 0 to 9, found -1");
  EXPECT_EQ(error_of(a.read("real", 0.0, 1.0, &f)),
            "file.json: a.real: expected a number from 0 to 1, found 2.5");
  EXPECT_EQ(error_of(a.read("yes", &b)), "file.json: a.yes: expected true or false, found \"yes\"");
  EXPECT_EQ(error_of(a.read("none", &s)), "file.json: a.none: expected a string, found null");
  EXPECT_EQ(error_of(a.read("list", 0, 9, &ints)),
            "file.json: a.list: expected only integers from 0 to 9 in the list, found \"two\"");
  EXPECT_EQ(error_of(a.read("deep", &objects)),
            "file.json: a.deep: expected only objects in the list, found 3");
  EXPECT_EQ(error_of(a.read("deep", &s)),
            "file.json: a.deep: expected a string, found a list of 2");
  EXPECT_FALSE(a.has("none"));
  EXPECT_TRUE(a.has("text"));
}

TEST(JsonObject, TextFromTheFileCannotBreakTheLineOrTheTerminal) {
  const nlohmann::json root = parsed(R"({"bad\nkey\u001b[31m": "\u001b[2J\n"})");
  const JsonObject object(root, "file.json");
  int i = 0;
  const std::string message = error_of(object.read(object.keys().front(), 1, 9, &i));
  EXPECT_EQ(message,
            "file.json: \"bad\\nkey\\u001b[31m\": expected an integer from 1 to 9, "
            "found \"\\u001b[2J\\n\"");
  EXPECT_EQ(printable(std::string(1000, 'x')), "\"" + std::string(60, 'x') + "...\"");
  EXPECT_EQ(printable("\xff"), "\"\\ufffd\"");
}

}  // namespace
}  // namespace sapwood
