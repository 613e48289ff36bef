#include "draft/target_survey.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fake_model.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;
const std::string kTokenizer(64, 'a');

TEST(TargetSurvey, EveryTokenIsFollowedByWhatTheTargetSaysThere) {
  for (const int max_rows : {2, 5, 16}) {
    for (const Text& context : {Text{7}, Text{1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
      const auto model =
          std::make_shared<FakeModel>(FakeModel::Options{.vocabulary = 40, .max_rows = max_rows});
      Result<std::unique_ptr<TargetSurvey>> survey = TargetSurvey::create(model, context);
      ASSERT_TRUE(survey.ok()) << survey.status().message();
      ASSERT_EQ(survey.value()->tokens(), 40);
      ASSERT_TRUE(survey.value()->ask(13).ok());
      EXPECT_EQ(survey.value()->asked(), 13);
      ASSERT_TRUE(survey.value()->ask(1000).ok());
      EXPECT_EQ(survey.value()->asked(), 40);
      EXPECT_EQ(model->damaged_slots, 0);

      const NgramTable table = survey.value()->table(kTokenizer);
      TopSelector selector;
      selector.reserve(40);
      ASSERT_EQ(table.records().size(), 40u);
      for (int32_t token = 0; token < 40; ++token) {
        Text text = context;
        text.push_back(token);
        TopSuccessors expected;
        selector.select(model->logits_after(text), expected);
        const NgramTable::Record& record = table.records()[static_cast<size_t>(token)];
        EXPECT_EQ(record.before, SuccessorTable::kNoToken);
        EXPECT_EQ(record.token, token);
        ASSERT_EQ(record.top.count, expected.count);
        for (int i = 0; i < expected.count; ++i) {
          EXPECT_EQ(record.top.tokens[i], expected.tokens[i]);
          EXPECT_EQ(record.top.probability[i], expected.probability[i]);
        }
      }
    }
  }
}

TEST(TargetSurvey, AContextThatCannotBeIsRefusedAndAFailedPassIsTold) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{});
  EXPECT_EQ(TargetSurvey::create(model, {}).status().code(), Code::kInvalidArgument);
  const Text context = {1, 2, 3};
  Result<std::unique_ptr<TargetSurvey>> survey = TargetSurvey::create(model, context);
  ASSERT_TRUE(survey.ok());
  model->fail_pass = model->passes;
  EXPECT_FALSE(survey.value()->ask(40).ok());
}

}  // namespace
}  // namespace sapwood
