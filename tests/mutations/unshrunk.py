"""A pytest plugin: an example that breaks a law is enough, it need not be the simplest.

Loaded before any conftest, so that the profiles that these register inherit it.
"""

from hypothesis import Phase, settings

settings.register_profile("unshrunk", phases=(Phase.explicit, Phase.reuse, Phase.generate))
settings.load_profile("unshrunk")
