"""What a run did and when: recorded by the runtime, written as a Perfetto trace, explained."""
