#include "operators/executorch/program.h"

#include <executorch/runtime/platform/runtime.h>

#include <algorithm>

#include "kernels/kv_layout.h"
#include "operators/executorch/log.h"
#include "operators/executorch/xnnpack.h"
#include "operators/shapes.h"

namespace sapwood::executorch {
namespace {

using ::executorch::aten::ScalarType;
using ::executorch::runtime::Error;
using ::executorch::runtime::MethodMeta;
using ::executorch::runtime::Program;
using ::executorch::runtime::Span;
using operators::kAny;

constexpr const char* kMethod = "forward";
constexpr const char* kVersionMethod = "sapwood_operator_version";
constexpr const char* kXnnpack = "XnnpackBackend";

struct Wanted {
  const char* name;
  ScalarType type;
  std::vector<int64_t> shape;
};

std::string again(const std::string& path, const std::string& what) {
  return path + ": " + what + "; export the bundle again with --format executorch";
}

// Every input of a pass of this spec, with the sizes that are fixed.
std::vector<Wanted> wanted_inputs(const ModelSpec& spec) {
  std::vector<Wanted> wanted = {
      {"token_ids", ScalarType::Int, {kAny}},  {"positions", ScalarType::Int, {kAny}},
      {"slots", ScalarType::Int, {kAny}},      {"context_slots", ScalarType::Int, {kAny}},
      {"path_slots", ScalarType::Int, {kAny}}, {"path_ranges", ScalarType::Int, {kAny, 2}},
      {"output_rows", ScalarType::Int, {kAny}}};
  const Wanted keys = {"keys", ScalarType::Half, {spec.kv_heads, kAny, spec.head_dim, kKeyTile}};
  const Wanted values = {"values", ScalarType::Half, {spec.kv_heads, kAny, spec.head_dim}};
  wanted.insert(wanted.end(), spec.layers, keys);
  wanted.insert(wanted.end(), spec.layers, values);
  return wanted;
}

}  // namespace

Result<std::unique_ptr<LoadedProgram>> LoadedProgram::open(std::shared_ptr<const Bundle> bundle,
                                                           const ExecutorchOptions& options) {
  const std::string path = bundle->file_path(bundle->manifest().executorch.file);
  std::unique_ptr<LoadedProgram> program(new LoadedProgram(std::move(bundle)));
  SAPWOOD_TRY(program->load(path, options));
  return program;
}

Status LoadedProgram::load(const std::string& path, const ExecutorchOptions& options) {
  KeptLog log;
  ::executorch::runtime::runtime_init();
  const FileEntry* entry = bundle_->manifest().file(bundle_->manifest().executorch.file);
  Result<FileMap> map = FileMap::open(path, entry->bytes);
  if (!map.ok()) return map.status();
  map_ = std::move(map).value();
  loader_.emplace(map_.bytes().data(), map_.bytes().size());
  auto program = Program::load(&*loader_, Program::Verification::InternalConsistency);
  if (!program.ok()) {
    return log.status(program.error(), Code::kCorrupt, again(path, "is no ExecuTorch program"));
  }
  program_.emplace(std::move(program.get()));
  SAPWOOD_TRY(check_version(path));
  SAPWOOD_TRY(check_inputs(path));
  if (program_->method_meta(kMethod)->uses_backend(kXnnpack)) {
    SAPWOOD_TRY(load_xnnpack(options.runtime, options.threads));
  }
  Result<std::unique_ptr<Loaded>> loaded = load_method(kMethod, path);
  if (!loaded.ok()) return loaded.status();
  loaded_ = std::move(loaded).value();
  return Status::okay();
}

Result<std::unique_ptr<LoadedProgram::Loaded>> LoadedProgram::load_method(const char* name,
                                                                          const std::string& path) {
  KeptLog log;
  const auto meta = program_->method_meta(name);
  if (!meta.ok()) return Status(Code::kCorrupt, again(path, std::string("has no ") + name));
  auto loaded = std::make_unique<Loaded>();
  for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
    const auto bytes = meta->memory_planned_buffer_size(i);
    if (!bytes.ok()) return Status(Code::kCorrupt, again(path, "is damaged"));
    loaded->planned.emplace_back(static_cast<size_t>(bytes.get()));
    loaded->spans.emplace_back(loaded->planned.back().data(), loaded->planned.back().size());
  }
  loaded->hierarchy.emplace(Span<Span<uint8_t>>(loaded->spans.data(), loaded->spans.size()));
  loaded->manager.emplace(&loaded->allocator, &*loaded->hierarchy, &loaded->temporary);
  auto method = program_->load_method(name, &*loaded->manager, nullptr, &weights_);
  if (!method.ok()) {
    const bool lacks = method.error() == Error::OperatorMissing;
    return log.status(
        method.error(), lacks ? Code::kUnsupported : Code::kCorrupt,
        again(path, lacks ? "needs an operator that this build does not have, so another Sapwood "
                            "wrote it"
                          : "cannot be loaded"));
  }
  loaded->method.emplace(std::move(method.get()));
  return loaded;
}

Status LoadedProgram::check_version(const std::string& path) {
  if (!program_->method_meta(kVersionMethod).ok()) {
    return Status(Code::kUnsupported,
                  again(path, "says no operator version: an older Sapwood, or none, wrote it"));
  }
  Result<std::unique_ptr<Loaded>> loaded = load_method(kVersionMethod, path);
  if (!loaded.ok()) return loaded.status();
  ::executorch::runtime::Method& method = *loaded.value()->method;
  if (method.execute() != Error::Ok || method.outputs_size() != 1 ||
      !method.get_output(0).isInt()) {
    return Status(Code::kCorrupt, again(path, "says no operator version that can be read"));
  }
  const int64_t version = method.get_output(0).toInt();
  if (version == kOperatorVersion) return Status::okay();
  return Status(Code::kUnsupported, again(path, "was made for version " + std::to_string(version) +
                                                    " of the operators, this build has version " +
                                                    std::to_string(kOperatorVersion)));
}

Status LoadedProgram::check_inputs(const std::string& path) {
  const auto meta = program_->method_meta(kMethod);
  if (!meta.ok()) return Status(Code::kCorrupt, again(path, "has no method 'forward'"));
  const std::vector<Wanted> wanted = wanted_inputs(bundle_->spec());
  if (meta->num_inputs() != wanted.size() || meta->num_outputs() != 1) {
    return Status(Code::kUnsupported,
                  again(path, "takes " + std::to_string(meta->num_inputs()) + " inputs, not " +
                                  std::to_string(wanted.size()) + ": it is not of this model"));
  }
  for (size_t index = 0; index < wanted.size(); ++index) {
    const auto info = meta->input_tensor_meta(index);
    if (!info.ok()) return Status(Code::kCorrupt, again(path, "takes an input that is no tensor"));
    const std::vector<int64_t> sizes(info->sizes().begin(), info->sizes().end());
    if (info->scalar_type() != wanted[index].type ||
        !operators::shape_fits(sizes, wanted[index].shape)) {
      return Status(
          Code::kUnsupported,
          again(path, operators::describe_misfit(wanted[index].name, sizes, wanted[index].shape) +
                          ": it is not of this model"));
    }
    if (index == kTokenIds) max_rows_ = static_cast<int>(sizes[0]);
  }
  return Status::okay();
}

}  // namespace sapwood::executorch
