"""Ollama's native interface, `/api/chat`: `codec` (JSON), `stream` (streamed replies) and `client`.

Sources of the format: https://docs.ollama.com/api/chat, and `api/types.go`, `server/prompt.go` and
`model/renderers/image_tags.go` of ollama/ollama (August 2026).
"""
