// Operators that opsets 18 to 23 brought, or brought anew: of each at least three uses, one of them awkward.
#include <doctest/doctest.h>

#include <sstream>

#include "tests/onnx/sheet.h"

namespace oclc::test::new_versions_test {

// The change log of ONNX's default domain. ImageDecoder (20), on the host, has its tests in
// tests/package/images_test.cpp.
struct Brought {
  std::int64_t opset;
  const char* operators;
};
constexpr Brought kBrought[] = {
    {18,
     "BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CenterCropPad Col2Im GroupNormalization LpPool Mish OptionalGetElement "
     "OptionalHasElement Pad ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
     "ReduceSumSquare Resize ScatterElements ScatterND Split"},
    {19,
     "AveragePool Cast CastLike Constant DeformConv DequantizeLinear Equal Identity If Loop Pad QuantizeLinear Reshape Resize "
     "Scan Shape Size"},
    {20,
     "AffineGrid ConstantOfShape DFT Gelu GridSample IsInf IsNaN ReduceMax ReduceMin RegexFullMatch StringConcat StringSplit"},
    {21,
     "Cast CastLike Constant ConstantOfShape DequantizeLinear Flatten GroupNormalization Identity If Loop Pad QLinearMatMul "
     "QuantizeLinear Reshape Scan Shape Size Squeeze Transpose Unsqueeze"},
    {22,
     "Acos Acosh Asin Asinh Atan Atanh AveragePool Bernoulli Conv ConvTranspose Cos Cosh DeformConv Det Dropout Elu EyeLike "
     "GRU "
     "GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample HardSigmoid HardSwish InstanceNormalization LSTM "
     "LpNormalization LpPool MaxPool MaxRoiPool MaxUnpool Mish Multinomial NegativeLogLikelihoodLoss RNN RandomNormal "
     "RandomNormalLike RandomUniform RandomUniformLike RoiAlign Round Selu Sin Sinh Softplus Softsign Tan ThresholdedRelu"},
    {23,
     "Attention Cast CastLike Constant ConstantOfShape DequantizeLinear Flatten Identity If Loop Pad QuantizeLinear "
     "RMSNormalization Reshape RotaryEmbedding Scan Shape Size Squeeze Transpose Unsqueeze"}};

using Family = void (*)(Sheet&);
constexpr Family kFamilies[] = {movement_uses,  control_uses,       elementwise_uses, reduction_uses, window_uses, image_uses,
                                recurrent_uses, normalization_uses, indexing_uses,    random_uses,    text_uses};

void check_version(std::int64_t opset) {
  std::map<std::string, Sheet::Count> counts;
  for (const Family family : kFamilies) {
    Sheet sheet(opset);
    family(sheet);
    if (sheet.counts().empty()) continue;
    sheet.check();
    for (const auto& [op, count] : sheet.counts()) {
      counts[op].all += count.all;
      counts[op].awkward += count.awkward;
    }
  }
  for (const Brought& row : kBrought) {
    if (row.opset != opset) continue;
    std::istringstream names(row.operators);
    for (std::string op; names >> op;) {
      CAPTURE(op);
      CHECK(counts[op].all >= 3);
      CHECK(counts[op].awkward >= 1);
    }
  }
}

TEST_CASE("Opset 18: what it brought") { check_version(18); }
TEST_CASE("Opset 19: what it brought") { check_version(19); }
TEST_CASE("Opset 20: what it brought") { check_version(20); }
TEST_CASE("Opset 21: what it brought") { check_version(21); }
TEST_CASE("Opset 22: what it brought") { check_version(22); }
TEST_CASE("Opset 23: what it brought") { check_version(23); }

}  // namespace oclc::test::new_versions_test
