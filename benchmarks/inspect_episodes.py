"""The same episodes in inspect_ai with its mock model: run by engine.py in the interpreter that has inspect_ai.

    python inspect_episodes.py SHAPE.json SAMPLES AT_ONCE LOGGING FOLDER

SHAPE.json holds one recorded episode: its prompt, its tools, its calls with their results. The mock model makes these
calls one by one and then says it is done, so that a sample is as many model calls as the episode and one tool run less.
No scorer: the stage that it is compared with does not score either. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import Tool, ToolChoice, ToolDef, ToolInfo, ToolParams
from inspect_ai.util import JSONSchema

LOGGING: dict[str, dict[str, Any]] = {
    "default": {},
    "minimal": {"log_realtime": False, "log_samples": False, "log_model_api": False, "log_buffer": 1_000_000},
}


def main(shape_path: str, samples: str, at_once: str, logging: str, folder: str) -> None:
    """Evaluate and print samples, wall_s and cpu_s of `eval` alone."""
    shape = json.loads(Path(shape_path).read_text(encoding="utf-8"))
    calls, results = shape["calls"], shape["results"]

    def respond(
        messages: list[ChatMessage], tools: list[ToolInfo], choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        del tools, choice, config
        number = sum(message.role == "assistant" for message in messages)
        if number < len(calls) - 1:
            name, arguments = calls[number]
            output = ModelOutput.for_tool_call("mockllm/model", name, arguments)
        else:
            output = ModelOutput.from_content("mockllm/model", json.dumps(calls[-1][1]))
        # With a usage of its own; without, the mock model would count tokens, at more cost.
        output.usage = ModelUsage(input_tokens=1000, output_tokens=20, total_tokens=1020)
        return output

    task = Task(
        dataset=[Sample(id=number, input=shape["prompt"], target="-") for number in range(int(samples))],
        solver=[system_message(shape["system"]), use_tools(*map(_tool_with(results), shape["tools"])), generate()],
    )
    model = get_model("mockllm/model", custom_outputs=respond)
    wall, cpu = time.perf_counter(), time.process_time()
    [log] = evaluate(
        task,
        model=model,
        max_samples=int(at_once),
        max_connections=int(at_once),
        display="none",
        log_dir=folder,
        **LOGGING[logging],
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if log.status != "success" or log.results is None or log.results.completed_samples != int(samples):
        raise SystemExit(f"inspect_ai: {log.status}: {log.error}")
    if log.samples:
        made = [message.role for message in log.samples[0].messages]
        if made.count("assistant") != len(calls) or made.count("tool") != len(calls) - 1:
            raise SystemExit(f"inspect_ai: another shape: {made}")
    print(json.dumps({"episodes": int(samples), "wall_s": wall, "cpu_s": cpu}))


def _tool_with(results: dict[str, str]) -> Any:
    def as_tool(spec: dict[str, Any]) -> Tool:
        async def execute(**arguments: Any) -> str:
            del arguments
            return results[spec["name"]]

        properties = {name: JSONSchema(**schema) for name, schema in spec["parameters"]["properties"].items()}
        parameters = ToolParams(properties=properties, required=spec["parameters"]["required"])
        return ToolDef(execute, spec["name"], spec["description"], parameters).as_tool()

    return as_tool


if __name__ == "__main__":
    main(*sys.argv[1:])
