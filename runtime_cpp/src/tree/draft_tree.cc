#include "tree/draft_tree.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>

namespace sapwood {

int DraftTree::add(int parent, int32_t token, float log_q, float log_q_kept, float acceptance) {
  if (full() || parent < kRoot || parent >= size_) return kNone;
  if (find_child(parent, token) != kNone) return kNone;
  const int node = size_++;
  token_[node] = token;
  parent_[node] = static_cast<int16_t>(parent);
  depth_[node] = static_cast<int16_t>(depth(parent) + 1);
  first_child_[node] = last_child_[node] = next_sibling_[node] = kNone;
  log_q_[node] = log_q;
  log_q_kept_[node] = log_q_kept;
  acceptance_[node] = acceptance;
  path_acceptance_[node] = path_acceptance(parent) * acceptance;
  path_mask_[node] = parent == kRoot ? Mask{} : path_mask_[parent];
  path_mask_[node][node / 64] |= uint64_t{1} << (node % 64);

  const int last = parent == kRoot ? root_last_child_ : last_child_[parent];
  if (last != kNone) {
    next_sibling_[last] = static_cast<int16_t>(node);
  } else if (parent == kRoot) {
    root_first_child_ = node;
  } else {
    first_child_[parent] = static_cast<int16_t>(node);
  }
  if (parent == kRoot) {
    root_last_child_ = node;
  } else {
    last_child_[parent] = static_cast<int16_t>(node);
  }
  return node;
}

void DraftTree::truncate(int nodes) {
  if (nodes >= size_) return;
  size_ = std::max(nodes, 0);
  root_first_child_ = root_last_child_ = kNone;
  for (int v = 0; v < size_; ++v) {
    first_child_[v] = last_child_[v] = next_sibling_[v] = kNone;
  }
  for (int v = 0; v < size_; ++v) {
    const int p = parent_[v];
    if (p == kRoot) {
      if (root_last_child_ == kNone) root_first_child_ = v;
      if (root_last_child_ != kNone) next_sibling_[root_last_child_] = static_cast<int16_t>(v);
      root_last_child_ = v;
    } else {
      if (last_child_[p] == kNone) first_child_[p] = static_cast<int16_t>(v);
      if (last_child_[p] != kNone) next_sibling_[last_child_[p]] = static_cast<int16_t>(v);
      last_child_[p] = static_cast<int16_t>(v);
    }
  }
}

int DraftTree::max_depth() const {
  int deepest = 0;
  for (int v = 0; v < size_; ++v) deepest = std::max<int>(deepest, depth_[v]);
  return deepest;
}

double DraftTree::expected_tokens() const {
  double expected = 1.0;
  for (int v = 0; v < size_; ++v) expected += path_acceptance_[v];
  return expected;
}

int DraftTree::find_child(int node, int32_t token) const {
  for (int c = first_child(node); c != kNone; c = next_sibling_[c]) {
    if (token_[c] == token) return c;
  }
  return kNone;
}

int DraftTree::path(int node, std::span<int> out) const {
  const int length = depth(node);
  assert(static_cast<int>(out.size()) >= length);
  for (int i = length - 1; i >= 0; --i) {
    out[i] = node;
    node = parent_[node];
  }
  return length;
}

std::string DraftTree::to_text(const TokenName& name) const {
  std::string text;
  // Depth first without a stack: down to the first child, else to the next sibling of the nearest
  // ancestor that has one.
  int node = first_child(kRoot);
  while (node != kNone) {
    char numbers[64];
    std::snprintf(numbers, sizeof(numbers), "  q %.3f  accept %.3f  path %.3f\n",
                  std::exp(log_q_[node]), acceptance_[node], path_acceptance_[node]);
    text.append(2 * static_cast<size_t>(depth_[node] - 1), ' ');
    text += name ? name(token_[node]) : std::to_string(token_[node]);
    text += numbers;
    int next = first_child(node);
    for (int up = node; next == kNone && up != kRoot; up = parent_[up]) next = next_sibling(up);
    node = next;
  }
  return text;
}

std::string DraftTree::to_json() const {
  const auto number = [](float value) {
    if (!std::isfinite(value)) return std::string("null");
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", value);
    return std::string(text);
  };
  std::string json = "{\"nodes\":[";
  for (int v = 0; v < size_; ++v) {
    if (v > 0) json += ',';
    json +=
        "{\"token\":" + std::to_string(token_[v]) + ",\"parent\":" + std::to_string(parent_[v]) +
        ",\"depth\":" + std::to_string(depth_[v]) + ",\"log_q\":" + number(log_q_[v]) +
        ",\"log_q_kept\":" + number(log_q_kept_[v]) + ",\"acceptance\":" + number(acceptance_[v]) +
        ",\"path_acceptance\":" + number(path_acceptance_[v]) + '}';
  }
  return json + "]}";
}

}  // namespace sapwood
