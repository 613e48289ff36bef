"""The ONNX export: trace, simplify, rewrite to our operators, refer to the bundle's weights."""
