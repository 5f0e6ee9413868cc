"""What the benchmarks have in common: options, the machine's block, samples, output, processes that are asked."""
