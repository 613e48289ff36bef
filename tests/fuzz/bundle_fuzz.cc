// A bundle or a trained draft with any manifest whatever: it opens, or one line says why not, and
// every tensor that an opened one gives lies inside the weights.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "fuzz_target.h"
#include "make_test_bundle.h"
#include "make_test_draft.h"
#include "model/bundle.h"
#include "model/draft_folder.h"
#include "model/tensors.h"
#include "promise.h"
#include "temporary_folder.h"

namespace {

using namespace sapwood;

constexpr uint64_t kMaxWeights = uint64_t{1} << 22;  // larger ones are not allocated

void check_message(const Status& status) {
  require(!status.ok(), "a failure has an error code");
  require(!status.message().empty() && status.message().size() < 2000, "a message is short");
  for (const char c : status.message()) {
    require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a message is one line of text");
  }
}

// Reads the first and the last byte.
void read(const void* data, size_t size) {
  require(data != nullptr && size > 0, "every tensor of the spec is there");
  const volatile uint8_t* bytes = static_cast<const uint8_t*>(data);
  (void)bytes[0];
  (void)bytes[size - 1];
}

void touch(const Bundle& bundle) {
  for (const TensorShape& tensor : tensors_of(bundle.spec())) {
    if (tensor.matrix) {
      const LinearWeights weights = bundle.linear(tensor.name);
      read(weights.data, weights.bytes());
    } else {
      read(bundle.vector(tensor.name), bundle.values(tensor.name).size_bytes());
    }
  }
  for (int i = 0; i < bundle.spec().layers; ++i) {
    require(bundle.layer(i).qkv.data != nullptr, "every layer is there");
    require(bundle.rope(i).size() == static_cast<size_t>(bundle.spec().head_dim) / 2,
            "every layer has its frequencies");
  }
}

// The manifest as a file, beside weights that may be a byte too long or too short.
void open_on_disk(const std::string& text, uint64_t weights_bytes,
                  const std::string& weights_file) {
  static const std::string folder = [] {
    return write_test_bundle(test_bundle_options("llama")).value();
  }();
  write_text(folder + "/manifest.json", text);
  const uint64_t size = weights_bytes + text.size() % 3 - 1;
  if (weights_file == "target.weights" && size <= kMaxWeights) {
    require(::truncate((folder + "/target.weights").c_str(), static_cast<off_t>(size)) == 0,
            "the file can be resized");
  }
  const Result<Bundle> bundle = Bundle::open(folder, {.verify_checksums = text.size() % 2 == 0});
  if (bundle.ok()) {
    touch(bundle.value());
  } else {
    check_message(bundle.status());
  }
}

void touch(const DraftFolder& draft) {
  const Weights tensors = draft.tensors();
  for (const TensorShape& tensor : tensors_of_draft(draft.manifest())) {
    if (tensor.matrix) {
      const LinearWeights weights = tensors.linear(tensor.name);
      read(weights.data, weights.bytes());
    } else if (tensor.integers) {
      read(tensors.integers(tensor.name).data(), tensors.integers(tensor.name).size_bytes());
    } else {
      read(tensors.values(tensor.name).data(), tensors.values(tensor.name).size_bytes());
    }
  }
  require(uncertainty_head_of(draft).ok(), "an uncertainty network is whole");
}

// Beside the weights of a good one, if they are not too large to be made as large as it says.
void open_draft_on_disk(const std::string& text, const DraftManifest& manifest) {
  static const std::string folder = [] {
    const std::string target = write_test_bundle(test_bundle_options("llama")).value();
    return write_test_draft(target, {}).value();
  }();
  write_text(folder + "/manifest.json", text);
  const uint64_t size = find_file(manifest.files, manifest.weights_file)->bytes;
  if (manifest.weights_file == "draft.weights" && size <= kMaxWeights) {
    require(::truncate((folder + "/draft.weights").c_str(), static_cast<off_t>(size)) == 0,
            "the file can be resized");
  }
  const Result<DraftFolder> draft = DraftFolder::open(folder, {.verify_checksums = false});
  if (draft.ok()) {
    touch(draft.value());
  } else {
    check_message(draft.status());
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const char* family : {"llama", "qwen2", "qwen3", "gemma3"}) {
    TestBundleOptions options = test_bundle_options(family);
    options.spec.layers = 2;
    options.spec.layer_is_sliding.assign(2, false);
    options.spec.layer_is_sliding[0] = options.spec.sliding_window != 0;
    const std::string folder = write_test_bundle(options).value();
    seeds.push_back(read_file(folder + "/manifest.json", 1 << 20).value());
  }
  const std::string target = write_test_bundle(test_bundle_options("llama")).value();
  for (const DraftKind kind : {DraftKind::kHead, DraftKind::kParallelHeads}) {
    const std::string folder = write_test_draft(target, {.kind = kind}).value();
    seeds.push_back(read_file(folder + "/manifest.json", 1 << 20).value());
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Result<DraftManifest> draft = parse_draft_manifest(text, "manifest.json");
  if (draft.ok()) {
    open_draft_on_disk(text, draft.value());
  } else {
    check_message(draft.status());
  }
  Result<Manifest> manifest = parse_manifest(text, "manifest.json");
  if (!manifest.ok()) {
    check_message(manifest.status());
    return 0;
  }
  const std::string weights_file = manifest->weights_file;
  const uint64_t bytes = manifest->file(weights_file)->bytes;
  if (bytes <= kMaxWeights) {
    struct Free {
      void operator()(void* memory) const { std::free(memory); }
    };
    // Exactly as large as the manifest says: the address sanitizer guards its end.
    void* memory = nullptr;
    require(::posix_memalign(&memory, kTensorAlignment, bytes) == 0, "memory is there");
    const std::unique_ptr<void, Free> weights(memory);
    std::fill_n(static_cast<uint8_t*>(weights.get()), bytes, uint8_t{0x3c});
    const Result<Bundle> bundle =
        Bundle::over(std::move(manifest).value(), {static_cast<uint8_t*>(weights.get()), bytes});
    if (bundle.ok()) {
      touch(bundle.value());
    } else {
      check_message(bundle.status());
    }
  }
  open_on_disk(text, bytes, weights_file);
  return 0;
}
