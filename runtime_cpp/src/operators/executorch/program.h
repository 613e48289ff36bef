// A target.pte, loaded and checked: what a pass of a model's spec needs of it.
#pragma once

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "base/status.h"
#include "model/bundle.h"
#include "model/executorch.h"
#include "operators/executorch/weights_map.h"

namespace sapwood::executorch {

// The program's inputs of one pass, in RowBatch's order; a layer's keys and values follow each
// other behind them, first all keys.
enum PassInput : size_t {
  kTokenIds,
  kPositions,
  kSlots,
  kContextSlots,
  kPathSlots,
  kPathRanges,
  kOutputRows,
  kPassInputs,
};

class LoadedProgram {
 public:
  // Loads, from options.runtime, what parts of ExecuTorch the program asks for.
  static Result<std::unique_ptr<LoadedProgram>> open(std::shared_ptr<const Bundle> bundle,
                                                     const ExecutorchOptions& options);

  ::executorch::runtime::Method& method() { return *loaded_->method; }
  int max_rows() const { return max_rows_; }

 private:
  // A method with the memory it runs in, which it keeps pointers to.
  struct Loaded {
    ::executorch::extension::MallocMemoryAllocator allocator, temporary;
    std::vector<std::vector<uint8_t>> planned;
    std::vector<::executorch::runtime::Span<uint8_t>> spans;
    std::optional<::executorch::runtime::HierarchicalAllocator> hierarchy;
    std::optional<::executorch::runtime::MemoryManager> manager;
    std::optional<::executorch::runtime::Method> method;
  };

  explicit LoadedProgram(std::shared_ptr<const Bundle> bundle)
      : bundle_(bundle), weights_(std::move(bundle)) {}

  Status load(const std::string& path, const ExecutorchOptions& options);
  Status check_version(const std::string& path);
  Status check_inputs(const std::string& path);
  Result<std::unique_ptr<Loaded>> load_method(const char* name, const std::string& path);

  const std::shared_ptr<const Bundle> bundle_;
  const WeightsMap weights_;
  FileMap map_;
  std::optional<::executorch::extension::BufferDataLoader> loader_;
  std::optional<::executorch::runtime::Program> program_;
  std::unique_ptr<Loaded> loaded_;
  int max_rows_ = 0;
};

}  // namespace sapwood::executorch
