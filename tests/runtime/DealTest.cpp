// Rows dealt to ranks: a step has the same rows whoever shares it, each row one owner, by every source of batches.
#include "runtime/DataLoader.h"
#include "runtime/FixedInputs.h"
#include "runtime/Safetensors.h"
#include "tests/runtime/TinyPlan.h"

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>

namespace llmc::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

using Row = std::vector<int64_t>; // T tokens, T labels
using MakeSource = std::function<std::unique_ptr<BatchSource>(int64_t microBatches, RankShare)>;

class DealTest : public ::testing::Test {
protected:
  DealTest() { map = *mapInputs(tiny.plan, {}); }

  static Row rowOf(const Batch &batch, int64_t row) {
    Row ids;
    for (size_t input : {0u, 1u})
      for (int64_t t = 0; t < 3; ++t)
        ids.push_back(loadId(batch.inputs[input], ElementType::i64, static_cast<uint64_t>(row * 3 + t)));
    return ids;
  }

  /// The rows of a step, put back in the order in which they were dealt.
  std::vector<Row> rowsOfStep(const MakeSource &make, int64_t step, int64_t microBatches, int ranks) {
    std::vector<Row> rows(static_cast<size_t>(ranks * microBatches * 2));
    for (int rank = 0; rank < ranks; ++rank) {
      auto source = make(microBatches, {rank, ranks});
      for (int64_t micro = 0; micro < microBatches; ++micro) {
        Batch batch = makeBatch(map);
        EXPECT_TRUE(source->fill(step, micro, batch));
        for (int64_t row = 0; row < 2; ++row)
          rows[static_cast<size_t>((micro * 2 + row) * ranks + rank)] = rowOf(batch, row);
      }
    }
    return rows;
  }

  void expectSameRowsForAnySplit(const MakeSource &make, int64_t step) {
    std::vector<Row> alone = rowsOfStep(make, step, 4, 1);
    EXPECT_EQ(rowsOfStep(make, step, 1, 4), alone);
    EXPECT_EQ(rowsOfStep(make, step, 2, 2), alone);
  }

  TestFolder folder;
  TinyPlan tiny; // B = 2, T = 3, V = 5
  InputMap map;
};

class LoaderDealTest : public DealTest {
protected:
  MakeSource loader(size_t tokens, bool dropLast = false) {
    std::string bytes;
    for (size_t i = 0; i < tokens; ++i)
      bytes += {static_cast<char>((i * i + i / 7) % 5), '\0'};
    std::string path = folder.write("t.bin", bytes);
    return [=, this](int64_t microBatches, RankShare share) {
      auto made = DataLoader::create(std::move(*TokenFile::open(path)), map, {3, microBatches, dropLast, share});
      EXPECT_TRUE(made) << made.error().message;
      return std::make_unique<DataLoader>(std::move(*made));
    };
  }
};

TEST_F(LoaderDealTest, GivesAStepTheSameRowsWhoeverSharesIt) {
  MakeSource make = loader(3 * 40 + 1);
  for (int64_t step : {0, 4, 5}) // the last of an epoch, and the next epoch's first
    expectSameRowsForAnySplit(make, step);
}

TEST_F(LoaderDealTest, FillsUpAPartialStepAcrossTheRanks) {
  MakeSource make = loader(3 * 13 + 1); // 8 rows, then 5
  expectSameRowsForAnySplit(make, 1);
  std::vector<Row> rows = rowsOfStep(make, 1, 1, 4);
  for (size_t row = 0; row < rows.size(); ++row) {
    std::vector<int64_t> labels(rows[row].begin() + 3, rows[row].end());
    if (row < 5)
      EXPECT_THAT(labels, Each(testing::Ge(0))) << "row " << row;
    else
      EXPECT_THAT(rows[row], ElementsAre(0, 0, 0, -1, -1, -1)) << "row " << row;
  }
  // Strided shards: rank 0 has one row more than the others.
  for (int rank = 0; rank < 4; ++rank) {
    auto source = make(1, {rank, 4});
    Batch batch = makeBatch(map);
    ASSERT_TRUE(source->fill(1, 0, batch));
    EXPECT_EQ(batch.numTokens, rank == 0 ? 6 : 3);
    EXPECT_EQ(batch.numLabels, rank == 0 ? 6 : 3);
    EXPECT_EQ(source->stepsPerEpoch(), 2);
    EXPECT_EQ(loader(3 * 13 + 1, true)(1, {rank, 4})->stepsPerEpoch(), 1);
  }
}

TEST_F(LoaderDealTest, LeavesARankWithoutRowsItsIgnoredLabels) {
  auto source = loader(3 * 2 + 1)(1, {3, 4}); // two rows for four ranks
  Batch batch = makeBatch(map);
  ASSERT_TRUE(source->fill(0, 0, batch));
  EXPECT_EQ(batch.numTokens, 0);
  EXPECT_EQ(batch.numLabels, 0);
}

TEST_F(DealTest, RandomTokensAreOtherOnesOnEveryRank) {
  MakeSource make = [&](int64_t, RankShare share) {
    return std::make_unique<RandomTokens>(*RandomTokens::create(map, 7, share));
  };
  expectSameRowsForAnySplit(make, 2);
  std::vector<Row> rows = rowsOfStep(make, 2, 1, 4);
  std::ranges::sort(rows);
  EXPECT_EQ(std::ranges::adjacent_find(rows), rows.end());
}

TEST_F(DealTest, FixedInputsHoldTheRowsOfAllRanks) {
  std::vector<SafetensorsInfo> infos = {{"idx", ElementType::i64, {8, 3}}, {"targets", ElementType::i64, {8, 3}}};
  std::string path = folder.path("in.safetensors");
  auto writer = SafetensorsWriter::create(path, infos);
  for (int64_t input : {0, 1}) {
    std::vector<int64_t> ids(24);
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = input == 1 && i % 5 == 0 ? -1 : static_cast<int64_t>(i * i + i / 3) % 5; // some labels are ignored
    ASSERT_TRUE(writer->append(std::as_bytes(std::span(ids))));
  }
  ASSERT_TRUE(writer->commit());
  expectSameRowsForAnySplit(
      [&](int64_t microBatches, RankShare share) {
        auto made = FixedInputs::load(path, map, microBatches, share);
        EXPECT_TRUE(made) << made.error().message;
        return std::make_unique<FixedInputs>(std::move(*made));
      },
      0);
  auto tooFew = FixedInputs::load(path, map, 2, {0, 4});
  EXPECT_THAT(tooFew.error().message, testing::HasSubstr("input 'idx': is i64 (8, 3), expected i64 (16, 3)"));
}

} // namespace
} // namespace llmc::test
