// The longest accepted length any valid verifier could reach, for a given random draft.
//
// A step is valid if, at every position it reaches, the emitted token has the target's law. Let
// f(T, s) be the probability that the draft is T and the path s in T is accepted. Then f is a flow
// down each tree, f(T, root) = P(T), and validity asks for no more than
//     sum over T of f(T, s y) <= p(y | s) * sum over T of f(T, s)
// (what is missing is emitted as the token that no node foresaw). The largest sum of f over all
// paths but the root is a linear program; for trees of depth one it is the optimal transport bound
// of multi-draft sampling, for chains what block verification reaches. It is solved here by the
// simplex method, for the small cases of the exactness report.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace sapwood {

using Path = std::vector<int32_t>;
using PathSet = std::set<Path>;  // of a tree: every node's path from the root's child down

// maximise objective . x subject to rows . x <= bounds, x >= 0, with bounds >= 0.
double maximise(const std::vector<std::vector<double>>& rows, const std::vector<double>& bounds,
                const std::vector<double>& objective);

// drafts: the law of the draft, by its nodes. p(path, token): the target's probability of `token`
// after `path`. Returns the expected number of accepted nodes of a step.
double optimal_accepted(const std::map<PathSet, double>& drafts,
                        const std::function<double(const Path&, int32_t)>& p);

}  // namespace sapwood
