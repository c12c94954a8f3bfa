"""A recording proxy: an OpenAI-compatible endpoint before any other, which notes what is asked and answered.

A program whose ``base_url`` points here goes on as it did. Every chat and every tool call becomes the same records as
those of a team that runs live, so that they can be read, audited and trained on. See docs/proxy.md.
"""
