"""Our operators for torch: what each computes (reference), and its registration (library)."""
