"""Letters: count a letter in a word."""
