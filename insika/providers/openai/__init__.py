"""OpenAI's chat completions, and everything that speaks them: DeepSeek, OpenRouter, vLLM, Ollama and others.

No other room imports the SDK, and here only `wire` and `breakage` do, which are imported by the first request.
"""
