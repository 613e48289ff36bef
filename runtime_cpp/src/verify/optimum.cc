#include "verify/optimum.h"

#include <cmath>
#include <cstddef>

namespace sapwood {
namespace {

constexpr double kTolerance = 1e-11;
constexpr int kPatience = 50;  // pivots without gain before Bland's rule, which cannot cycle

// A dense tableau: rows of [coefficients of x and of the slacks | bound], the objective last.
class Tableau {
 public:
  Tableau(const std::vector<std::vector<double>>& rows, const std::vector<double>& bounds,
          const std::vector<double>& objective)
      : height_(rows.size()), width_(objective.size() + rows.size() + 1), basis_(rows.size()) {
    cells_.resize((height_ + 1) * width_);
    for (size_t r = 0; r < height_; ++r) {
      for (size_t c = 0; c < objective.size(); ++c) at(r, c) = rows[r][c];
      at(r, objective.size() + r) = 1;
      at(r, width_ - 1) = bounds[r];
      basis_[r] = objective.size() + r;
    }
    for (size_t c = 0; c < objective.size(); ++c) at(height_, c) = -objective[c];
  }

  double solve() {
    int idle = 0;
    for (;;) {
      const size_t column = entering(idle >= kPatience);
      if (column == width_) return value();
      const size_t row = leaving(column);
      if (row == height_) return value();  // unbounded: not for the programs made here
      const double before = value();
      pivot(row, column);
      idle = value() > before + kTolerance ? 0 : idle + 1;
    }
  }

 private:
  double& at(size_t row, size_t column) { return cells_[row * width_ + column]; }
  double value() { return at(height_, width_ - 1); }

  size_t entering(bool first) {
    size_t best = width_;
    double lowest = -kTolerance;
    for (size_t c = 0; c + 1 < width_; ++c) {
      if (at(height_, c) >= lowest) continue;
      best = c;
      if (first) break;
      lowest = at(height_, c);
    }
    return best;
  }

  size_t leaving(size_t column) {
    size_t best = height_;
    double least = 0;
    for (size_t r = 0; r < height_; ++r) {
      if (at(r, column) <= kTolerance) continue;
      const double ratio = at(r, width_ - 1) / at(r, column);
      const bool better = best == height_ || ratio < least - kTolerance ||
                          (ratio <= least + kTolerance && basis_[r] < basis_[best]);
      if (!better) continue;
      best = r;
      least = ratio;
    }
    return best;
  }

  void pivot(size_t row, size_t column) {
    const double scale = 1 / at(row, column);
    for (size_t c = 0; c < width_; ++c) at(row, c) *= scale;
    for (size_t r = 0; r <= height_; ++r) {
      const double factor = at(r, column);
      if (r == row || factor == 0) continue;
      for (size_t c = 0; c < width_; ++c) at(r, c) -= factor * at(row, c);
    }
    basis_[row] = column;
  }

  size_t height_;
  size_t width_;
  std::vector<double> cells_;
  std::vector<size_t> basis_;
};

}  // namespace

double maximise(const std::vector<std::vector<double>>& rows, const std::vector<double>& bounds,
                const std::vector<double>& objective) {
  return Tableau(rows, bounds, objective).solve();
}

double optimal_accepted(const std::map<PathSet, double>& drafts,
                        const std::function<double(const Path&, int32_t)>& p) {
  // Variables: one for each node of each draft.
  struct Variable {
    size_t draft;
    Path path;
  };
  std::vector<Variable> variables;
  std::map<Path, std::vector<size_t>> by_path;
  std::vector<std::map<Path, size_t>> of_draft;
  std::vector<double> probability;
  for (const auto& [paths, weight] : drafts) {
    of_draft.emplace_back();
    for (const Path& path : paths) {
      of_draft.back()[path] = variables.size();
      by_path[path].push_back(variables.size());
      variables.push_back({probability.size(), path});
    }
    probability.push_back(weight);
  }
  const size_t n = variables.size();
  if (n == 0) return 0;
  std::vector<std::vector<double>> rows;
  std::vector<double> bounds;
  // The flow down each tree: what goes to the children does not exceed what came.
  for (size_t d = 0; d < of_draft.size(); ++d) {
    std::map<Path, std::vector<double>> below;
    for (const auto& [path, variable] : of_draft[d]) {
      const Path parent(path.begin(), path.end() - 1);
      auto [row, fresh] = below.try_emplace(parent, n, 0.0);
      row->second[variable] = 1;
      if (fresh && !parent.empty()) row->second[of_draft[d].at(parent)] = -1;
    }
    for (auto& [parent, row] : below) {
      rows.push_back(std::move(row));
      bounds.push_back(parent.empty() ? probability[d] : 0.0);
    }
  }
  // Validity at each path.
  for (const auto& [path, members] : by_path) {
    const Path parent(path.begin(), path.end() - 1);
    const double limit = p(parent, path.back());
    std::vector<double> row(n, 0.0);
    for (const size_t variable : members) row[variable] = 1;
    if (!parent.empty()) {
      for (const size_t variable : by_path.at(parent)) row[variable] -= limit;
    }
    rows.push_back(std::move(row));
    bounds.push_back(parent.empty() ? limit : 0.0);
  }
  return maximise(rows, bounds, std::vector<double>(n, 1.0));
}

}  // namespace sapwood
