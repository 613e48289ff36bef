"""The Sapwood runtime: models, sessions, and the parts they are made of."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


class KvSlotBitmap:
    """Which KV slots are taken: a lock-free allocator, one bit a slot."""

    def __init__(self, slots: int) -> None: ...

    @property
    def slots(self) -> int: ...

    @property
    def available(self) -> int: ...

    @property
    def taken(self) -> int: ...

    @property
    def peak(self) -> int:
        """The most slots that were ever taken at once."""

    def reset_peak(self) -> None: ...

    def is_taken(self, slot: int) -> bool: ...

    def allocate(self, count: int) -> list[int] | None:
        """
        `count` free slots in ascending order, contiguous if possible; None when too few are free, and then nothing is taken.
        """

    def free(self, slots: Sequence[int]) -> None:
        """Gives slots back. One that is not taken is refused by name."""

class PrefixTrie:
    """
    Committed prefixes and the KV slots that hold them. A node is the slot of its token; -1 is the root.
    """

    def __init__(self, slots: int) -> None: ...

    def acquire(self, tokens: Sequence[int]) -> tuple[int, list[int]]:
        """Holds the longest stored prefix: its node and its slots."""

    def extend(self, held: int, tokens: Sequence[int], slots: Sequence[int]) -> tuple[int, list[int], list[int]]:
        """
        Stores `tokens` after `held` and moves the hold: its node, the slots that hold the tokens, and those of the given ones that somebody else's have made needless.
        """

    def hold(self, node: int) -> None: ...

    def release(self, node: int) -> None: ...

    def shorten(self, held: int, depth: int) -> int:
        """Moves a hold to the node `depth` tokens from the start."""

    def evict(self, count: int) -> list[int]:
        """Up to so many slots that nobody holds, the longest unused first."""

    def depth(self, node: int) -> int: ...

    def references(self, node: int) -> int: ...

    @property
    def stored(self) -> int: ...

    @property
    def evictable(self) -> int:
        """Those that evict would take at once."""

class KvStore:
    """
    The KV cache of one session, float16 or int8: [layers] of keys and values by slot.
    """

    @staticmethod
    def create(layers: int, kv_heads: int, head_dim: int, slots: int, format: str = 'float16') -> KvStore:
        """`slots` is rounded up to a multiple of 16."""

    @property
    def layers(self) -> int: ...

    @property
    def slots(self) -> int: ...

    @property
    def format(self) -> str: ...

    @property
    def bytes_per_slot(self) -> int:
        """What one token takes, of all layers."""

    def keys(self, layer: int) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """
        A view of the bytes, flat. float16: half bits, [kv_heads, slots / 16, head_dim, 16]. int8: as kernels/kv_layout.h says.
        """

    def values(self, layer: int) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """
        A view of the bytes, flat. float16: half bits, [kv_heads, slots, head_dim]. int8: as kernels/kv_layout.h says.
        """

    def copy_slot(self, source: int, target: int) -> None:
        """Copies one slot's K and V of all layers."""

def memory_kinds() -> list[tuple[str, str | None]]:
    """
    Kinds of memory that a pool can be made of, best first, each with why this machine has none of it, or None.
    """

class TensorHandle:
    """
    One reference to a piece of a pool; when the last one goes, the bytes are free again.
    """

    @property
    def nbytes(self) -> int: ...

    @property
    def offset(self) -> int:
        """From the start of the pool's memory."""

    @property
    def references(self) -> int:
        """0 once released."""

    def share(self) -> TensorHandle:
        """Another reference to the same bytes."""

    def release(self) -> None:
        """Lets this reference go."""

    def array(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C')]:
        """A view of the bytes, which keeps them."""

    def cpu_access(self, access: str = 'rw') -> CpuAccessScope:
        """
        A context: what is done to the bytes inside it, r, w or rw, is in order with devices.
        """

class CpuAccessScope:
    def __enter__(self) -> object: ...

    def __exit__(self, *error: object) -> None: ...

    def end(self) -> None: ...

class UnifiedPool:
    """
    Memory that stages, processes and devices share, handed out in page-aligned pieces.
    """

    @staticmethod
    def create(nbytes: int, kind: str | None = None, guard_pages: bool = False) -> UnifiedPool:
        """Without a kind, the best that this machine has (memory_kinds)."""

    @staticmethod
    def import_fd(fd: int, nbytes: int) -> UnifiedPool:
        """
        Maps a dma-buf, or a memfd sealed with F_SEAL_SHRINK. `fd` stays the caller's.
        """

    def allocate(self, nbytes: int) -> TensorHandle: ...

    def export_fd(self) -> int:
        """A new descriptor of all of the pool's memory, the caller's to close."""

    @property
    def kind(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def available_bytes(self) -> int: ...

    @property
    def peak_bytes(self) -> int: ...

class Timeline:
    """
    A number that only rises, which stages wait for and raise: how they take turns.
    """

    @property
    def value(self) -> int: ...

    def wait(self, value: int, timeout: float | None = None) -> str:
        """"reached", "missed" after `timeout` seconds, or "abandoned"."""

    def signal(self, value: int) -> None:
        """Raises the value and wakes whom it concerns."""

    def abandon(self) -> None:
        """Wakes everyone who waits for more, for ever."""

class HostTimeline(Timeline):
    """The processor's, on a futex."""

    def __init__(self, value: int = 0) -> None: ...

def vulkan_device_names() -> list[str]:
    """
    Of this machine's devices, by index; refused where there is no Vulkan at all.
    """

class VulkanDevice:
    """A Vulkan device for computing, with one queue."""

    @staticmethod
    def open(index: int) -> VulkanDevice:
        """A logical device of its own; refused with what it lacks."""

    @property
    def name(self) -> str: ...

class VulkanTimeline(Timeline):
    """A device's timeline semaphore, seen from the processor."""

    @staticmethod
    def create(device: VulkanDevice, value: int = 0) -> VulkanTimeline: ...

class DoubleBufferCost:
    """Of vulkan_double_buffer."""

    @property
    def step_ms(self) -> float: ...

    @property
    def draft_ms(self) -> float:
        """A pass of the draft while the target waited for it."""

    @property
    def draft_ms_waited(self) -> float:
        """A step, for the draft."""

    @property
    def kept(self) -> int:
        """Looks ahead."""

    @property
    def discarded(self) -> int: ...

    @property
    def right(self) -> bool:
        """The state, and every look that was kept."""

    def hidden_draft_share(self, steps: int) -> float: ...

def vulkan_double_buffer(draft: VulkanDevice, target: VulkanDevice, *, steps: int, target_size: int, draft_size: int, surprise_every: int = 3, ahead: bool = True) -> DoubleBufferCost:
    """
    Steps in which one device drafts what another one decides, ordered by their timelines. A pass adds so many numbers, a multiple of 256; the draft expects the outcome of all steps but every `surprise_every`-th. Without `ahead` it waits for the decision.
    """

class PackedLinear:
    """Weights of one linear layer in the packed layout of kernels/linear.h."""

    def __init__(self, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], outputs: int, inputs: int, format: str) -> None:
        """Copies `data`, uint8 [bytes]. `format` is "int4_g32", "int8_g32", ..."""

    @property
    def outputs(self) -> int: ...

    @property
    def inputs(self) -> int: ...

    @property
    def format(self) -> str: ...

class KernelTable:
    """The kernels of one instruction set. All give the same bits."""

    @property
    def name(self) -> str: ...

    @property
    def row_blocks(self) -> list[int]:
        """Rows of the blocks that linear layers have loops for, rising from 1."""

    def row_plan(self, format: str) -> list[int]:
        """
        For 1, 2, ... 64 rows left, the rows of the block they begin with: what is cheapest on this machine for weights of this format. Measured when first asked for.
        """

    def linear(self, weights: PackedLinear, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]:
        """
        x [rows, inputs] in float32 -> [rows, outputs]; x is quantised to int8 by groups of 32.
        """

    def gated_linear(self, weights: PackedLinear, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], activation: str = 'silu') -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]:
        """
        activation(gate) * up for gate and up interleaved by 16: [rows, outputs / 2].
        """

    def quantize_rows(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C')]]:
        """
        (codes int8 [rows, columns], scales float32 and sums int32 [rows, columns / 32]).
        """

    def rms_norm(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], epsilon: float) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]:
        """
        weight * x / sqrt(mean(x^2) + epsilon) over each row of x [rows, columns].
        """

    def embed(self, table: PackedLinear, token: int, scale: float = 1.0) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')]:
        """One row of a packed table as float32 [inputs], times `scale`."""

    def log_softmax(self, logits: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')]:
        """Natural logarithms, [n] -> [n]."""

def cheapest_row_plan(rows: Sequence[int], costs: Sequence[float]) -> list[int]:
    """
    The block that 1, 2, ... 64 rows begin with, if a block of rows[i] costs costs[i].
    """

def runnable_kernels() -> list[str]:
    """
    Names of the kernel tables this machine can run, the scalar one first, the best last.
    """

def kernels(name: str) -> KernelTable:
    """
    The table of that name. Raises SapwoodError if this machine cannot run it.
    """

def active_kernels() -> str:
    """
    The table in use: the best, or the one set by set_kernels or SAPWOOD_KERNELS.
    """

def set_kernels(name: str) -> bool:
    """
    Chooses a table for models opened from now on; False if it cannot be run here.
    """

def rotary_table(positions: Sequence[int], inverse_frequencies: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]:
    """
    [rows, head_dim]: cosines, then sines, of position * inverse frequency.
    """

class DraftTree:
    """A tree of guessed tokens; nodes are numbered, parents first, root -1."""

    def __init__(self) -> None: ...

    def __len__(self) -> int: ...

    def add(self, parent: int, token: int, log_q: float, log_q_kept: float | None = None, acceptance: float = 0.5) -> int:
        """
        Adds a child and returns its number. `log_q` is the drafter's log probability.
        """

    def truncate(self, nodes: int) -> None:
        """Keeps the first `nodes` nodes."""

    def clear(self) -> None: ...

    def token(self, node: int) -> int: ...

    def parent(self, node: int) -> int: ...

    def depth(self, node: int) -> int: ...

    def path_acceptance(self, node: int) -> float: ...

    def path(self, node: int) -> list[int]:
        """Nodes from the root's child down to `node`."""

    @property
    def max_depth(self) -> int: ...

    @property
    def expected_tokens(self) -> float:
        """Of a step: 1 + the sum of the path acceptances."""

    @property
    def tokens(self) -> list[int]: ...

    def to_text(self) -> str: ...

    def to_json(self) -> str: ...

class CostCurve:
    """Milliseconds to verify N rows, by N."""

    @staticmethod
    def assumed() -> CostCurve: ...

    @staticmethod
    def measured(rows: Sequence[int], milliseconds: Sequence[float]) -> CostCurve: ...

    def milliseconds(self, rows: int) -> float: ...

class UncertaintyHead:
    """sigmoid(w2 . relu(W1 h + b1) + b2): how probable a rejection is."""

    @staticmethod
    def create(w1: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], b1: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], w2: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], b2: float) -> UncertaintyHead:
        """w1 [units, hidden], b1 and w2 [units]."""

    @property
    def hidden_size(self) -> int: ...

    def uncertainty(self, hidden: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
        """Of a hidden state [hidden_size], in [0, 1]."""

class CostGrid:
    """Milliseconds of a verify pass by rows and by committed tokens."""

    def __init__(self, contexts: Sequence[int], rows: Sequence[int], milliseconds: Sequence[Sequence[float]]) -> None:
        """Contexts and rows ascending; milliseconds [contexts][rows]."""

    def at(self, context: int) -> CostCurve:
        """The curve over so many tokens."""

def dynamic_tree_prune(logits: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, entropy_threshold: float = 2.5, max_tree_width: int = 16, beta_base: float = 0.30000001192092896, rho_min: float = 0.019999999552965164, rho_max: float = 0.6000000238418579, entropy_low: float = 0.800000011920929) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C')]]:
    """
    The operator DynamicTreePrune: logits [rows, vocabulary] -> (kept_indices int32, importance_weights float32, tree_mask uint8), [rows, max_tree_width] each.
    """

class SamplingOptions:
    """The transform from logits to the law a token is drawn from."""

    def __init__(self, *, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0, repetition_penalty: float = 1.0, seed: int = 0) -> None: ...

    @property
    def temperature(self) -> float: ...

    @temperature.setter
    def temperature(self, arg: float, /) -> None: ...

    @property
    def top_k(self) -> int: ...

    @top_k.setter
    def top_k(self, arg: int, /) -> None: ...

    @property
    def top_p(self) -> float: ...

    @top_p.setter
    def top_p(self, arg: float, /) -> None: ...

    @property
    def min_p(self) -> float: ...

    @min_p.setter
    def min_p(self, arg: float, /) -> None: ...

    @property
    def repetition_penalty(self) -> float: ...

    @repetition_penalty.setter
    def repetition_penalty(self, arg: float, /) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    def check(self) -> None:
        """Raises SapwoodError naming the option that is out of range."""

class Sampler:
    """Applies SamplingOptions along one sequence."""

    def __init__(self, vocabulary_size: int) -> None: ...

    def start(self, options: SamplingOptions, history: Sequence[int] = []) -> None: ...

    def push(self, token: int) -> None: ...

    def law(self, logits: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')]:
        """
        Log probabilities [vocabulary_size], -inf for what the filters leave out.
        """

    def choose(self, logits: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], index: int) -> int:
        """The token at output position `index`."""

def counter_uniform(seed: int, index: int) -> float:
    """The uniform in [0, 1) that the target's draw at this position uses."""

def target_draw(tree: DraftTree, logits: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], sampler: Sampler, index: int, max_tokens: int, stop_tokens: Sequence[int] = []) -> tuple[list[int], list[int]]:
    """
    (accepted nodes, emitted tokens) of a deterministic tree; logits [1 + nodes, vocabulary_size], the root's row first.
    """

class Exactness:
    """One combination of the exactness report."""

    @property
    def name(self) -> str: ...

    @property
    def lossless(self) -> bool:
        """Claimed; the ablations are known not to be."""

    @property
    def deviation(self) -> float:
        """Total variation from plain decoding, the largest over the models."""

    @property
    def expected_accepted(self) -> float:
        """Nodes a step, mean."""

    @property
    def optimum(self) -> float:
        """
        The largest of any valid verifier for these drafts, by linear programming.
        """

class TreeComparison:
    """Expected accepted nodes of two children a node and two levels."""

    @property
    def models(self) -> int: ...

    @property
    def naive(self) -> float:
        """Multi-round, with replacement."""

    @property
    def rejection(self) -> float:
        """Multi-round, without replacement."""

    @property
    def traversal(self) -> float: ...

    @property
    def sampled_optimum(self) -> float: ...

    @property
    def ranked(self) -> float:
        """target_draw over the likeliest children."""

class ChainComparison:
    """Expected accepted nodes of sampled chains of three."""

    @property
    def models(self) -> int: ...

    @property
    def rejection(self) -> float: ...

    @property
    def block(self) -> float: ...

    @property
    def optimum(self) -> float: ...

    @property
    def least_gain(self) -> float:
        """The smallest of block minus rejection over the models."""

EXACT_TOLERANCE: float = 1e-12

def exactness_report(*, vocabulary: int = 4, depth: int = 2, nodes: int = 4, models: int = 2) -> list[Exactness]:
    """
    Every verifier with every pruning, drafter and temperature, enumerated exactly.
    """

def compare_on_trees(models: int) -> TreeComparison:
    """Verifiers of trees side by side, means over random models."""

def compare_on_chains(models: int) -> ChainComparison:
    """Block against rejection, means over random models."""

class ModelSpec:
    """What a decoder is made of."""

    @property
    def family(self) -> str: ...

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def hidden_size(self) -> int: ...

    @property
    def intermediate_size(self) -> int: ...

    @property
    def layers(self) -> int: ...

    @property
    def heads(self) -> int: ...

    @property
    def kv_heads(self) -> int: ...

    @property
    def head_dim(self) -> int: ...

    @property
    def context_length(self) -> int: ...

    @property
    def sliding_window(self) -> int: ...

class Model:
    """A model on some host. Every host gives the same bits."""

    @property
    def spec(self) -> ModelSpec: ...

    @property
    def host(self) -> str: ...

    @property
    def max_rows(self) -> int: ...

    @property
    def shows_hidden_states(self) -> bool: ...

    def forward(self, kv: KvStore, *, tokens: Sequence[int], positions: Sequence[int], slots: Sequence[int], context_slots: Sequence[int], path_slots: Sequence[int], path_begin: Sequence[int], path_end: Sequence[int], output_rows: Sequence[int]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]:
        """
        One pass over a batch of rows (kernels/row_batch.h): logits [output_rows, vocabulary_size] in float32. The GIL is released.
        """

    def keep_hidden_states(self, layers: Sequence[int]) -> None:
        """
        From the next pass on, hidden_states() gives the outputs of these layers: counted from 1, ascending; 0 is the embedding; none at first. Raises SapwoodError for layers the model does not have, and on hosts that do not show them.
        """

    def hidden_states(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C')]:
        """
        Of every row of the latest pass: float32 [rows, layers kept, hidden_size], before any norm.
        """

def check_bundle(folder: str) -> None:
    """
    Reads and checks everything in a bundle. Raises SapwoodError naming what is wrong.
    """

def open_native_model(folder: str, *, threads: int, max_rows: int = 256, verify_checksums: bool = True) -> Model:
    """
    The bundle's target on the native host. Raises SapwoodError if it cannot be used.
    """

def open_draft_model(folder: str, *, target_folder: str, target: Model, threads: int, own_threads: bool = False, verify_checksums: bool = True) -> Model:
    """
    A bundle that drafts for `target`, which was opened from `target_folder` and whose vocabulary it must have. On the native host; runs on the target's threads, or on as many of its own where the target keeps its to itself.
    """

class TrainedDraft:
    """A draft that was trained for a target, opened for it."""

    @property
    def drafter(self) -> str: ...

class TextVocabulary:
    """
    A draft's tokens by entry of its laws, and beside them those of a text that it lacks.
    """

    def begin(self, text: Sequence[int]) -> None:
        """The tokens of this text, and no others from before."""

    def add(self, text: Sequence[int]) -> None:
        """Further ones; when there is no place left, the oldest makes room."""

    @property
    def tokens(self) -> list[int]: ...

class DraftHead:
    """A trained head alone: its passes as they are."""

    @staticmethod
    def open(folder: str, *, target_folder: str, threads: int, max_rows: int = 256) -> DraftHead: ...

    def make_kv(self, slots: int) -> KvStore: ...

    def forward(self, kv: KvStore, *, tokens: Sequence[int], positions: Sequence[int], slots: Sequence[int], context_slots: Sequence[int], path_slots: Sequence[int], path_begin: Sequence[int], path_end: Sequence[int], features: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], states: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], vocabulary: TextVocabulary | None = None) -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]]:
        """
        One pass: `features` of the first rows, `states` of all others; logits [rows, entries of the vocabulary] and states [rows, hidden_size] of every row, in float32. vocabulary: None is that of no text.
        """

    def make_vocabulary(self) -> TextVocabulary: ...

    def uncertainty(self, state: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float | None: ...

def check_draft(folder: str) -> None:
    """
    Reads and checks everything in a draft folder. Raises SapwoodError naming what is wrong.
    """

def open_trained_draft(folder: str, *, target_folder: str, target: Model, threads: int, own_threads: bool = False, verify_checksums: bool = True) -> TrainedDraft:
    """
    A draft folder that was trained for `target`, which was opened from `target_folder`. Runs on the target's threads, or on as many of its own as `threads` says.
    """

def open_early_exit(target_folder: str, *, target: Model, threads: int, own_threads: bool = False) -> Model:
    """
    The first layers of a bundle that has an early exit, to draft for the whole.
    """

def built_with_onnxruntime() -> bool:
    """Whether this build has the ONNX Runtime host."""

def open_onnxruntime_model(folder: str, *, threads: int, max_rows: int = 256, verify_checksums: bool = True, library: str = '') -> Model:
    """
    The bundle's target.onnx on ONNX Runtime, whose C library is `library`.
    """

def open_executorch_model(folder: str, *, threads: int, max_rows: int = 256, verify_checksums: bool = True, library: str = '', runtime: str = '') -> Model:
    """
    The bundle's target.pte on ExecuTorch, by way of libsapwood_executorch.so, which is `library`. `runtime` is the folder with ExecuTorch's own libraries.
    """

class SuffixAutomaton:
    """Which tokens followed every substring of a text, and how often."""

    def __init__(self, capacity: int) -> None:
        """`capacity`: tokens; the oldest half is forgotten when it is full."""

    def __len__(self) -> int: ...

    def clear(self) -> None: ...

    def append(self, token: int) -> None: ...

    def followers(self, context: Sequence[int]) -> list[tuple[int, int]] | None:
        """
        (token, count) of what followed `context`, the latest first; None if it never occurred.
        """

    def longest_seen_suffix(self) -> int:
        """
        Length of the longest suffix of the text that also occurs earlier in it.
        """

class NgramTable:
    """What usually follows a token and a pair of tokens, from text."""

    @staticmethod
    def build(texts: Sequence[Sequence[int]], *, vocabulary: int, tokenizer_sha256: str) -> NgramTable:
        """From texts as token ids."""

    @staticmethod
    def read(path: str, *, vocabulary: int, tokenizer_sha256: str) -> NgramTable: ...

    def write(self, path: str) -> None:
        """Whole or not at all."""

    def __len__(self) -> int: ...

class TargetSurvey:
    """Asks a target what it says after every single token."""

    @staticmethod
    def create(model: Model, context: Sequence[int]) -> TargetSurvey:
        """`context`: tokens that come before each, at least one."""

    @property
    def tokens(self) -> int:
        """To be asked in all."""

    @property
    def asked(self) -> int: ...

    def ask(self, count: int) -> None:
        """The next `count` tokens."""

    def table(self, *, tokenizer_sha256: str) -> NgramTable:
        """What was found out so far."""

class TreeCost:
    """What a step costs beside the model: medians in microseconds."""

    @property
    def nodes(self) -> int: ...

    @property
    def grow(self) -> float: ...

    @property
    def layout(self) -> float: ...

    @property
    def verify(self) -> float: ...

    @property
    def follow(self) -> float: ...

    @property
    def observe(self) -> float: ...

    @property
    def select_row(self) -> float: ...

def tree_cost(drafter: str, *, vocabulary: int, nodes: int, rounds: int) -> TreeCost:
    """
    Grows, lays out, verifies greedily and learns from trees of `nodes` nodes.
    """

class TraceRing:
    """
    The latest events of the runtime: stages, counters, changes. Sessions record into it; it never holds text.
    """

    def __init__(self, capacity: int = 65536) -> None: ...

    @property
    def capacity(self) -> int: ...

    @property
    def recorded(self) -> int:
        """Events so far, with those overwritten since."""

    def record(self, name: int, *, step: int = 0, rows: int = 0, accepted: int = 0, value: float = 0.0, mode: int = 0, begin_ns: int = 0, duration_ns: int = 0, reason: int = 0) -> None: ...

    def events(self) -> dict[str, NDArray[numpy.generic]]:
        """
        What is there, the oldest first: arrays of one length by field, `name` an index into trace_names().
        """

    def perfetto_trace(self) -> bytes:
        """What is there, as a Perfetto trace file's bytes."""

    def clear(self) -> None:
        """Nobody may be recording."""

class TraceCost:
    """Nanoseconds, medians."""

    @property
    def event(self) -> float:
        """Into the ring."""

    @property
    def stage(self) -> float:
        """A span: two readings of the clock and an event."""

    @property
    def off(self) -> float:
        """A span where nobody records."""

def trace_cost(*, rounds: int) -> TraceCost:
    """What recording costs by itself."""

def reason_names() -> list[str]:
    """Why something changed, in words, by the number in an event's `reason`."""

def trace_names() -> list[tuple[str, str, str]]:
    """
    Of every event: its name, its kind (stage, counter or instant) and its track.
    """

def drafter_names() -> list[str]:
    """What Session.create takes as `drafter`, the default first."""

class SessionStats:
    """Counts and times of one answer."""

    @property
    def mode(self) -> str: ...

    @property
    def verifier(self) -> str: ...

    @property
    def prompt_tokens(self) -> int: ...

    @property
    def reused_prompt_tokens(self) -> int: ...

    @property
    def emitted_tokens(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def rows_verified(self) -> int: ...

    @property
    def drafted_tokens(self) -> int: ...

    @property
    def accepted_tokens(self) -> int: ...

    @property
    def soft_fallbacks(self) -> int: ...

    @property
    def hard_fallbacks(self) -> int: ...

    @property
    def peak_kv_slots(self) -> int: ...

    @property
    def peak_draft_slots(self) -> int:
        """The most that a step held beyond the text."""

    @property
    def beta(self) -> float: ...

    @property
    def heat(self) -> str: ...

    @property
    def heat_reason(self) -> str:
        """Of the latest change; empty: there was none."""

    @property
    def memory_pressure(self) -> str: ...

    @property
    def celsius(self) -> float | None:
        """The latest reading."""

    @property
    def strategy(self) -> str:
        """What the latest step drafted in place of what was asked for."""

    @property
    def strategy_reason(self) -> str:
        """Why that last changed; empty: it did not."""

    @property
    def strategy_changes(self) -> int: ...

    @property
    def recent_tokens_per_second(self) -> float:
        """Of the latest steps."""

    @property
    def recent_accepted_length(self) -> float: ...

    @property
    def tree_nodes(self) -> int:
        """Of the latest step."""

    @property
    def tree_depth(self) -> int: ...

    @property
    def prefill_seconds(self) -> float: ...

    @property
    def decode_seconds(self) -> float: ...

    @property
    def draft_seconds(self) -> float: ...

    @property
    def cost_curve(self) -> str: ...

    @property
    def hidden_draft_share(self) -> float:
        """
        Of the time for drafting that was of use: what passed while the target verified.
        """

    @property
    def hidden_draft_seconds(self) -> float: ...

    @property
    def draft_way(self) -> str:
        """
        Of the latest step: "in turns" with the target, "beside" it on a thread of its own, or "ahead", going on while the target verifies.
        """

    @property
    def kept_ahead(self) -> int:
        """Steps whose text went where the draft had looked ahead."""

    @property
    def discarded_ahead(self) -> int:
        """Steps whose text went elsewhere."""

    @property
    def missed_deadlines(self) -> int:
        """Of a step's stages, and drafts that failed."""

    @property
    def watchdog(self) -> str:
        """The latest of these in words; empty: there were none."""

    @property
    def mean_accepted_length(self) -> float: ...

    @property
    def mean_draft_slots(self) -> float:
        """Held beyond the text, a step."""

    @property
    def tokens_per_second(self) -> float: ...

    @property
    def prompt_tokens_per_second(self) -> float: ...

class PrefixCache:
    """
    A KV cache that keeps the prefixes of earlier texts. Session.cache; sessions over one model may share it, one at a time being used.
    """

    @property
    def slots(self) -> int: ...

    @property
    def taken(self) -> int:
        """By living texts and kept prefixes."""

    @property
    def stored(self) -> int:
        """Of these, in prefixes that texts may share."""

    @property
    def is_whole(self) -> bool:
        """
        Every slot that is taken is stored, or was given out and not yet given back.
        """

    def is_taken(self, slot: int) -> bool: ...

    def forget(self) -> None:
        """Evicts all that no living text holds."""

class DraftMemory:
    """Where a draft's K and V lie, for sessions that share a cache."""

    def __init__(self) -> None: ...

class Session:
    """One conversation with a model. Not thread-safe, except for cancel()."""

    @staticmethod
    def create(model: Model, *, context_length: int, max_tree_nodes: int = 31, drafter: str = 'mix', measured_costs: CostGrid | None = None, learn_costs: bool = True, ngram: NgramTable | None = None, draft_model: Model | None = None, trained_draft: TrainedDraft | None = None, kv: str = 'float16', share_prefixes: bool = True, kv_slots: int = 0, cache: PrefixCache | None = None, draft_memory: DraftMemory | None = None, least_deadline: float = 1.0, draft_thread: bool = False, double_buffer: str = 'measured') -> Session:
        """
        `drafter`: one of drafter_names(). `measured_costs`: what a pass costs here; without it the session finds out from its own steps. `ngram`: what the drafter begins with. `draft_model`: what a drafter runs that runs a model; `trained_draft`: what one runs that runs a draft. `kv`: the cache's format, float16 or int8. `share_prefixes`: what it has room for keeps earlier texts, and who begins like one computes only the rest. `kv_slots`: its room, in tokens; 0: just what the context and a step need. `cache`, `draft_memory`: those of other sessions over this model and draft. `least_deadline`: seconds that a step's stage has at least before it counts as hanging; 0: for ever. `draft_thread`: what runs a network to draft does so on a thread of its own, beside the target; the network must have been opened with threads of its own. `double_buffer`: whether it looks ahead while the target verifies: on, off, or measured, the fastest of all ways, in turns with the target too.
        """

    def start(self, prompt: Sequence[int], *, mode: str = 'dynamic', sampling: SamplingOptions = ..., max_new_tokens: int = 128, eos_token_ids: Sequence[int] = [], chain_length: int = 4, fixed_nodes: int = 15, adapt: bool = False, verifier: str = 'target_draw', length_rule: str = 'window', beta: float = 0.30000001192092896, least_accepted_length: float = 0.0, target_milliseconds: float = 0.0) -> None:
        """
        Takes a whole prompt and fills the cache with it. `adapt`: chain and fixed fall back where guesses fail, chains take their length from `length_rule` (window: how many came true; entropy: how certain the draft is), and `beta` follows the length of the steps. `verifier`: with rejection, block and traversal drafts are drawn; the law of the text is the same, the text at a seed is not. `beta`: the share pruned of a draft's law where it is certain. `least_accepted_length`: where steps emit fewer tokens, a chain or nothing is tried, and used if it is faster; `target_milliseconds`: where tokens take longer, a greedy tree is, in place of a chain or a fixed tree; 0: never. The GIL is released.
        """

    def step(self) -> list[int]:
        """
        One verify step: the tokens it emitted, none once the answer has ended. The GIL is released.
        """

    def finish_at(self, emitted: int) -> None:
        """Ends the answer after its first `emitted` tokens."""

    def observe(self, *, celsius: float | None = None, watts: float | None = None, watts_budget: float = 4.0, thermal_status: int | None = None, memory_used: float | None = None, trim_level: int | None = None) -> None:
        """
        What sensors and the platform say of the device, now: above 45 C or the power budget the next steps speculate less, above 55 C not at all, with 90 % of the memory taken (`memory_used`, a share) their trees are narrower, with 97 % chains, until it is well again. `thermal_status`, `trim_level`: Android's. The text stays the same.
        """

    def force(self, strategy: str | None) -> None:
        """
        From the next step on it drafts so, as far as device and watchdog allow; None: as it finds best. For comparing strategies.
        """

    def record_into(self, ring: TraceRing | None) -> None:
        """
        Events go into this ring from the next start or step on; None: into none.
        """

    def cancel(self) -> None:
        """From any thread: the next step ends the answer."""

    @property
    def stop_reason(self) -> str:
        """"none", "eos", "length", "context", "stopped" or "cancelled"."""

    @property
    def stats(self) -> SessionStats:
        """A copy, as of now."""

    @property
    def tokens(self) -> list[int]:
        """Prompt and emitted tokens."""

    @property
    def context_length(self) -> int: ...

    @property
    def kv_bytes_per_token(self) -> int: ...

    @property
    def cache(self) -> PrefixCache:
        """Which others may share."""

    @property
    def cost_curve(self) -> CostCurve:
        """A copy, as of now."""

    @property
    def last_tree(self) -> DraftTree:
        """A copy of the latest step's draft."""

SCENARIO_WORDS: int = 2048

SCENARIO_FEATURES: int = 2120

def scenario_names() -> list[str]: ...

def scenario_features(prompt: str) -> list[int]:
    """
    Which features a prompt has, ascending: below SCENARIO_WORDS words and pairs of words, from there on its shape, below SCENARIO_FEATURES.
    """

def guess_scenario(prompt: str) -> tuple[str | None, list[float]]:
    """
    The likeliest scenario by name, None if that is not likely enough to act upon, and the probability of each.
    """

def scenario_template(name: str) -> tuple[int, int, float]:
    """
    What speculation begins with: length of chains, nodes of fixed trees, beta.
    """

class DraftComparison:
    """A trained draft's law of one token against its target's."""

    @property
    def position(self) -> int: ...

    @property
    def depth(self) -> int:
        """1: right after what is verified."""

    @property
    def same_top(self) -> bool: ...

    @property
    def covered(self) -> bool:
        """The draft can guess the target's likeliest token."""

    @property
    def overlap(self) -> float:
        """Sum of min(p, q), temperature 1."""

    @property
    def entropy(self) -> float:
        """Of the draft's law, in nats."""

    @property
    def uncertainty(self) -> float | None:
        """Predicted 1 - overlap; None: the draft has no uncertainty network."""

class DraftPassCost:
    """Milliseconds, measured once."""

    @property
    def target_row(self) -> float: ...

    @property
    def text_pass(self) -> float: ...

    @property
    def node_pass(self) -> float: ...

class DraftQuality:
    """How good a trained draft is on texts of its target, and what it costs."""

    @staticmethod
    def create(target: Model, draft: TrainedDraft, *, depths: int, context_length: int) -> DraftQuality: ...

    def compare(self, text: Sequence[int], first: int) -> list[DraftComparison]:
        """
        Of every token from `first` on, at every depth, those before taken as right. The GIL is released.
        """

    def cost(self, *, context: int, unread: int, nodes: int) -> DraftPassCost:
        """
        A row of the target, a draft pass over `unread` rows of text and one over `nodes` nodes, once. The GIL is released.
        """

def known_shapes() -> list[str]:
    """Names of model sizes that ModelCost can measure with random weights."""

class ModelCost:
    """
    What a pass over a bundle's target, or over random weights of a known shape, costs: whole and by part.
    """

    def __init__(self, folder: str = '', *, shape: str = '', threads: int, max_rows: int, max_context: int, kv: str = 'float16') -> None: ...

    def native_model(self, max_rows: int) -> Model:
        """A native host over the same weights."""

    def linears(self, rows: int) -> float:
        """Milliseconds of all linear layers and the head, once."""

    def attention(self, rows: int, context: int) -> float:
        """Milliseconds of the attention of all layers, once."""

    def model(self, model: Model, rows: int, context: int) -> float:
        """
        Milliseconds of one pass over a root and rows - 1 children, with all their logits.
        """

    def prefill(self, model: Model, tokens: int) -> float:
        """Milliseconds to fill an empty cache with so many tokens."""

    def read_bandwidth(self) -> float:
        """Bytes a second that the threads read of the weights, once."""

    def int8_peak(self) -> float:
        """
        int8 multiply-accumulates a second between registers, in the kernels in use.
        """

    def barrier_seconds(self) -> float:
        """Seconds of a barrier that all threads come to at once."""

    @property
    def linear_bytes(self) -> float: ...

    @property
    def linear_multiplies(self) -> float: ...

class Latency:
    """Of single calls, in nanoseconds."""

    @property
    def p50(self) -> float: ...

    @property
    def p99(self) -> float: ...

class SlotLatency:
    @property
    def allocate(self) -> Latency: ...

    @property
    def free(self) -> Latency: ...

class HandleLatency:
    @property
    def allocate(self) -> Latency: ...

    @property
    def free(self) -> Latency: ...

    @property
    def acquire(self) -> Latency: ...

    @property
    def release(self) -> Latency: ...

def slot_latency(*, slots: int, count: int, threads: int, rounds: int) -> SlotLatency:
    """`count` KV slots at a time of a bitmap that others hold a part of."""

def handle_latency(*, rounds: int) -> HandleLatency:
    """
    A page of a pool taken and given back, a reference to it shared and let go.
    """

def wake_latency(*, waiter: str, rounds: int) -> Latency:
    """
    From a signal to the thread that waits for it: "spinning" or "parked" for a host timeline, "patient", spinning for long, or asleep on a bare "futex".
    """

def step_allocations(session: Session) -> tuple[int, int]:
    """
    Steps to the answer's end: how often they called operator new, and how many tokens came. The GIL is released.
    """

class TextTokenizer:
    """The engine's tokenizer: the ids of Hugging Face's, without Python."""

    def __init__(self, definition: str, name: str = 'tokenizer.json') -> None: ...

    def encode(self, text: str, markers: bool = False) -> list[int]: ...

    def least_ids(self, bytes: int) -> int:
        """A text of so many bytes has at least so many ids."""

    def encode_chat(self, messages: str, template: str, bos: int | None = None, eos: Sequence[int] = []) -> list[int]:
        """The ids of a chat; messages are JSON."""

class TextDetokenizer:
    """Ids to text, piece by piece."""

    def __init__(self, tokenizer: TextTokenizer) -> None: ...

    def push(self, token: int) -> str: ...

    def finish(self) -> str: ...

class TextStopMatcher:
    """Finds the stop text that is complete first."""

    def __init__(self, stops: Sequence[str]) -> None: ...

    def push(self, piece: str) -> str: ...

    def finish(self) -> str: ...

    @property
    def matched(self) -> bool: ...

def render_chat_template(source: str, messages: str, bos_token: str = '', eos_token: str = '', variables: str = '{}') -> str:
    """
    A chat template rendered by the engine; messages and variables are JSON.
    """
