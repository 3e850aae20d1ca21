"""The environment protocol and its adapters."""
