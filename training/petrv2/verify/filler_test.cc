#include "training/petrv2/verify/filler.h"

#include <gtest/gtest.h>

#include <string>

namespace hvd::petrv2 {
namespace {

TEST(Filler, GivesTheCheckValues) {
  EXPECT_EQ(fill_value(0, 0), -1);
  EXPECT_NEAR(fill_value(0, 1), -.36480228, 5e-9);
  EXPECT_NEAR(fill_value(7, 0), -.05675941, 5e-9);
  EXPECT_NEAR(fill_value(7, 1), .94473536, 5e-9);
  EXPECT_EQ(fill_values(7, 3)[2], fill_value(7, 2));
}

TEST(HeadNumbering, LeavesTheNumbersOfAbsentPartsUnused) {
  HeadNumbering numbering;
  const std::string head = "pts_bbox_head.";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(numbering.number(head + "fpe"), i);  // no adapter
  EXPECT_EQ(numbering.number(head + "reference_points.weight"), 14);
  EXPECT_EQ(numbering.number(head + "query_embedding.0.weight"), 15);
  EXPECT_EQ(numbering.number(head + "transformer.decoder.post_norm.weight"), 127);
  EXPECT_EQ(numbering.number(head + "transformer.decoder.post_norm.bias"), 128);
  EXPECT_EQ(numbering.number(head + "cls_branches.0.0.weight"), 129);
  EXPECT_EQ(numbering.number(head + "reg_branches.0.reg_branch.0.weight"), 189);
  EXPECT_EQ(numbering.number(head + "code_weights"), -1);
}

}  // namespace
}  // namespace hvd::petrv2
