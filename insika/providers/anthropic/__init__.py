"""The provider that speaks Anthropic's Messages API, on the vendor's own SDK.

All but `provider` and `sdk` is pure. Only `sdk` imports the SDK, and `provider` imports that when it is first asked.
"""
