"""Programs that run in other environments, without this package: they write what other implementations compute."""
