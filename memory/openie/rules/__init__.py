"""OpenIE without a model: triples by grammar."""
