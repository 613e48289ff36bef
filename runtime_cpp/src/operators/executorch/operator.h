// What an operator is to ExecuTorch: a name and a function, found in a table that the process has
// one of.
#pragma once

#include <executorch/runtime/kernel/operator_registry.h>

#include <memory>
#include <span>

#include "base/status.h"
#include "operators/executorch/arguments.h"
#include "operators/resources.h"

namespace sapwood::executorch {

struct OperatorDefinition {
  const char* name;                        // "sapwood::rms_norm.out"
  std::span<const char* const> arguments;  // of its schema, outputs last
  Status (*compute)(Arguments& arguments, operators::Resources& resources);
};

// One per operator, in its own file.
extern const OperatorDefinition kTokenEmbedding;
extern const OperatorDefinition kRotaryTable;
extern const OperatorDefinition kRotaryEmbedding;
extern const OperatorDefinition kRmsNorm;
extern const OperatorDefinition kTreeAttention;
extern const OperatorDefinition kDecoderLayer;
extern const OperatorDefinition kOutputHead;
extern const OperatorDefinition kDynamicTreePrune;
extern const OperatorDefinition kBlockSparseVerify;

// Puts all operators into ExecuTorch's table, unless they are there already: ExecuTorch ends the
// process when a name is registered twice, as by a second copy of this library.
void register_operators();

// While it lives, operators that this thread runs use these resources; else a team that all share.
class UsedResources {
 public:
  explicit UsedResources(operators::Resources& resources);
  ~UsedResources();
  UsedResources(const UsedResources&) = delete;
  UsedResources& operator=(const UsedResources&) = delete;

 private:
  operators::Resources* before_;
};

}  // namespace sapwood::executorch
