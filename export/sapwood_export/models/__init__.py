"""One decoder in torch for the Llama, Qwen and Gemma families, described by a spec."""
