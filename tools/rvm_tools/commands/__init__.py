"""The commands of `rvm`, a module each: the declaration for click, the work behind lazy imports."""
