"""Language models: generators, the trainer, weights, chat format."""
