"""Prompts by scenario, and the classifier of the runtime fitted on them."""
