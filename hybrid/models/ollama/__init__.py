"""Ollama by its native interface, `/api/chat`: `codec` (JSON), `stream` (replies in lines) and `client`.

Source of the format: https://docs.ollama.com/api/chat, and `api/types.go`, `server/prompt.go` and
`model/renderers/image_tags.go` of ollama/ollama (August 2026).
"""
