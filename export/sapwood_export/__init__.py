"""The export side of Sapwood: model files in, a bundle out. Not needed to run a bundle.

The native bundle needs numpy, gguf and tokenizers only; torch and onnx are imported where an ONNX
graph is asked for.
"""
