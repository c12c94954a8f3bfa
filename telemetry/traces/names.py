"""The names of span attributes, as published: OpenTelemetry's for generative AI and messaging, and OpenInference's.

Phoenix and Langfuse read these. https://opentelemetry.io/docs/specs/semconv/gen-ai/ ·
https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
"""

OPERATION = "gen_ai.operation.name"
WORKFLOW = "gen_ai.workflow.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT_NAME, AGENT_ID = "gen_ai.agent.name", "gen_ai.agent.id"
PROVIDER, MODEL = "gen_ai.provider.name", "gen_ai.request.model"
TOKENS_IN, TOKENS_OUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
TOOL, TOOL_ARGUMENTS, TOOL_RESULT = "gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
JUDGED, TERM, SCORE, EXPLANATION = (
    "gen_ai.evaluation.result", "gen_ai.evaluation.name", "gen_ai.evaluation.score.value",
    "gen_ai.evaluation.explanation",
)  # fmt: skip

SYSTEM, DESTINATION = "messaging.system", "messaging.destination.name"
MESSAGE, MESSAGE_CONVERSATION = "messaging.message.id", "messaging.message.conversation_id"
MESSAGE_OPERATION = "messaging.operation.type"

KIND = "openinference.span.kind"
INPUT, OUTPUT, INPUT_TYPE, OUTPUT_TYPE = "input.value", "output.value", "input.mime_type", "output.mime_type"
SESSION = "session.id"
LLM_MODEL, LLM_PROVIDER = "llm.model_name", "llm.provider"
LLM_IN, LLM_OUT, LLM_ALL = "llm.token_count.prompt", "llm.token_count.completion", "llm.token_count.total"
LLM_COST = "llm.cost.total"
TOOL_NAME, TOOL_PARAMETERS = "tool.name", "tool.parameters"
OI_AGENT = "agent.name"

ERROR_TYPE = "error.type"

CORRELATION = "repertory.correlation_id"
DECISION = "repertory.decision_id"
SCENARIO, VERSION, SUCCESS, ENDED = (
    "repertory.scenario", "repertory.version", "repertory.success", "repertory.ended"
)  # fmt: skip
REWARD, REWARD_MISSING = "repertory.reward", "repertory.reward_missing"
COST, DEGRADED, ATTEMPTS, LOGP = (
    "repertory.cost_usd", "repertory.degraded", "repertory.attempts", "repertory.logp"
)  # fmt: skip
"""Our own, where nobody has published a name. Costs are US dollars, ``logp`` nat."""
