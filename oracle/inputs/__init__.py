"""Cases: the sizes, input families and seeds under which a kernel is compared."""
