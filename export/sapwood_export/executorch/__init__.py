"""The ExecuTorch export: our operators' out variants, the decoder's programs, lowering to .pte."""
