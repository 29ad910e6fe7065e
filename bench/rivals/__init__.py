"""The kernels again, each with what a JAX user would take instead of jaxc."""
