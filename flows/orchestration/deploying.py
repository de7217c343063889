"""Putting the project's deployments on the Prefect server that the user named, and a worker that carries them out."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import MutableMapping
from pathlib import Path

from flows.console import Console
from flows.errors import ConfigurationError, StudyError
from flows.files import make_room
from flows.orchestration.settings import API_URL, be_worker

POOL = "agent-bench"
PREFECT_FILE = Path("deployments") / "prefect.yaml"
FLOW = "study"
WEBHOOK = "agent-bench-notify"
AUTOMATION = "agent-bench: a study failed"
ENDED_BADLY = ("prefect.flow-run.Failed", "prefect.flow-run.Crashed", "prefect.flow-run.TimedOut")
_TEXT = "flow_run.name, ' ', flow_run.state.name, ': ', flow_run.state.message or 'no message', ' ', flow_run | ui_url"
PAYLOAD = f'{{"text": {{{{ [{_TEXT}] | join | tojson }}}}}}'
"""What is posted, a template of JSON in the form that chat systems take from a webhook."""


def named_server(environ: MutableMapping[str, str] = os.environ) -> str:
    """The API of the server that the user named, which answers. Raises `ConfigurationError`."""
    api = environ.get(API_URL)
    if not api:
        raise ConfigurationError(
            f"{API_URL} is not set, so that there is no server to deploy to; start one with `agent-bench server` and "
            "export the line that it prints"
        )
    try:
        with urllib.request.urlopen(f"{api.rstrip('/')}/health", timeout=10) as answer:
            answer.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ConfigurationError(f"{API_URL}={api} does not answer ({reason}); see that the server is up") from None
    return api


def deploy(project: Path, notify: str | None, console: Console) -> None:
    """Make the work pool, all deployments of the project and, if an address is given, its notification.

    What is there already is brought up to date; the work pool is left as it is.

    Args:
        project: Folder of the manifest, in which runs will work, with `deployments/prefect.yaml`.
        notify: Where to post when a study fails.

    Raises:
        ConfigurationError: there is no server, or no such file.
        StudyError: Prefect refuses.
    """
    named_server()
    if not (project / PREFECT_FILE).is_file():
        raise ConfigurationError(f"{project / PREFECT_FILE}: there is no such file; it names what is to be deployed")
    if asyncio.run(_make_pool()):
        console.line(f"deploy: work pool {POOL!r} made")
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(PREFECT_FILE)]
    done = subprocess.run(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise StudyError(f"`prefect deploy` failed with code {done.returncode}; it said:\n{done.stdout.strip()}")
    for line in asyncio.run(_deployed()):
        console.line(f"deploy: {line}")
    if notify is not None:
        asyncio.run(_notify(notify))
        console.line(f"deploy: automation {AUTOMATION!r} posts to the given address")
    console.line("deploy: runs wait for a worker: agent-bench worker")


def work(home: Path, limit: int, environ: MutableMapping[str, str] = os.environ) -> int:
    """Be a worker of the project's pool until Ctrl-C. Returns its exit code.

    Args:
        home: Folder of the worker's own state.
        limit: Runs at once.

    Raises:
        ConfigurationError: there is no server.
        StoreError: the folder cannot be written.
    """
    named_server(environ)
    make_room(home, 1)
    be_worker(home, environ)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell starts what runs in the background with Ctrl-C ignored
    command = [sys.executable, "-m", "prefect", "worker", "start"]
    options = ["--pool", POOL, "--type", "process", "--limit", str(limit)]
    os.execve(sys.executable, [*command, *options], dict(environ))


async def _make_pool() -> bool:
    """Whether there was none."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    async with get_client() as client:
        try:
            await client.create_work_pool(WorkPoolCreate(name=POOL, type="process", base_job_template=template))
        except ObjectAlreadyExists:
            return False
    return True


async def _deployed() -> list[str]:
    """The deployments of the study's flow as lines."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName

    lines = []
    async with get_client() as client:
        chosen = FlowFilter(name=FlowFilterName(any_=[FLOW]))
        for each in await client.read_deployments(flow_filter=chosen):
            schedules = [
                f"{getattr(one.schedule, 'cron', one.schedule)} {'' if one.active else '(off)'}".strip()
                for one in each.schedules
            ]
            lines.append(f"{FLOW}/{each.name}: {'; '.join(schedules) or 'by hand'}")
    return sorted(lines)


async def _notify(address: str) -> None:
    from prefect.blocks.webhook import Webhook
    from prefect.client.orchestration import get_client
    from prefect.events.actions import CallWebhook
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification
    from prefect.types import SecretDict
    from pydantic import SecretStr

    block = Webhook(
        method="POST", url=SecretStr(address), headers=SecretDict({"content-type": SecretStr("application/json")})
    )
    block_id = await block.save(WEBHOOK, overwrite=True)
    wanted = AutomationCore(
        name=AUTOMATION,
        description="Posts to the webhook when a run of the study's flow fails, crashes or times out.",
        trigger=EventTrigger(
            expect=set(ENDED_BADLY),
            match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
            match_related=ResourceSpecification({"prefect.resource.role": "flow", "prefect.resource.name": FLOW}),
            for_each={"prefect.resource.id"},
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=[CallWebhook(block_document_id=block_id, payload=PAYLOAD)],
    )
    async with get_client() as client:
        for found in await client.read_automations_by_name(AUTOMATION):
            await client.delete_automation(found.id)
        await client.create_automation(wanted)
