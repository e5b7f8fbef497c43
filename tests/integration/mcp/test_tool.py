"""Two servers, two agents: list, send, ask, reply, pending, last, as the official package's own client sees them."""

from __future__ import annotations

import asyncio

import pytest

from libintercom.asking import DEFAULT_TIMEOUT_S
from tests.support.tool import Native, agent, program, run, two
from tests.support.waiting import DEADLINE_S

STEER = "defaults to steer; wakes idle recipients and steers active recipients after the current tool call"


def test_results_are_the_seeds_own_words(ctl):
    async def talk():
        async with agent(ctl.environment, "web-build@desk") as one, program(ctl, "api-fix@laptop", Native()) as other:
            sent = await one.call("send", to="api-fix@laptop", message="The schema change is merged.")
            assert sent.text == f"Message sent to api-fix@laptop ({STEER})"
            asking = asyncio.ensure_future(
                one.call("ask", to="api-fix@laptop", delivery="steer", message="Which port does the API use?")
            )
            async for arrival in other.inbound():
                banner = "**📨 From web-build@desk** (Native session cwd: /)\n\n"
                assert arrival.text.startswith(banner)
                if arrival.message.is_ask:
                    await other.reply(arrival, "Port 8443.")
                    break
            assert (await asking).text == "**Reply from api-fix@laptop:**\nPort 8443."

    run(talk)


def test_it_offers_one_tool_with_every_action_and_parameter(ctl):
    async def talk(one, _other):
        (offered,) = (await one.session.list_tools()).tools
        assert offered.name == "intercom"
        properties = offered.input_schema["properties"]
        assert properties["action"]["enum"] == ["list", "status", "send", "ask", "pending", "reply", "last"]
        seeds = "to message attachments delivery queueMode threadId replyTo children scope device entryId offset"
        assert set(properties) == {"action", *seeds.split()}

    two(ctl, talk)


def test_list_and_status_show_the_session_and_the_others(ctl):
    async def talk(one, other):
        listed = await one.call("list")
        assert listed.text.startswith("**Current session:**\n• asker (pi-")
        assert "**Main sessions (1):**\n• reviewer (pi-" in listed.text
        assert not listed.is_error
        assert listed.facts is None
        status = await one.call("status")
        assert status.text.startswith("**Connected:** yes\n**Session ID:** pi-")
        assert "**Pending inbound messages:** 0" in status.text
        narrowed = await one.call("list", to="nobody-of-this-name", children=True)
        assert '**Main sessions (0 of 1 match "nobody-of-this-name"):**' in narrowed.text
        refused = await other.call("list", device="laptop")
        assert refused.is_error
        assert refused.text.startswith('Not listed: device "laptop": sessions of other devices cannot be listed')

    two(ctl, talk)


def test_a_message_waits_is_shown_once_in_its_frame_and_is_placed(ctl):
    async def talk(one, other):
        sent = await one.call("send", to="reviewer", message="Check refresh-token rotation.")
        assert sent.text == "Message sent to reviewer (defaults to steer; this host reads at its next prompt)"
        told = {name: sent.facts[name] for name in ("accepted", "delivered", "deliveryUnknown")}
        assert told == {"accepted": True, "delivered": True, "deliveryUnknown": False}
        assert sent.facts["text"] == sent.text
        noticed = await other.await_text("messages wait", "list")
        assert noticed.text.endswith("\n\n1 messages wait (intercom pending)")
        shown = await other.call("pending")
        banner, framed = shown.text.split("\n\n")
        assert banner == "**📨 From asker** (Native session cwd: /)"
        opened, text, closed = framed.split("\n")
        assert text == "Check refresh-token rotation."
        assert opened == closed.replace("end ", "")
        assert (await other.call("pending")).text == "No message and no question waits."
        assert "messages wait" not in (await other.call("list")).text
        receipt = ctl.run("receipt", "reviewer", sent.facts["messageId"], "--json").json["receipt"]
        assert receipt["nativeHandoff"]
        assert receipt["placementEntryId"].startswith("mcp-")

    two(ctl, talk)


def test_an_ask_waits_beside_other_calls_tells_progress_and_gets_its_reply(ctl):
    async def talk(one, other):
        progress: list[tuple[float, str]] = []

        async def note(done: float, _total: float | None, text: str | None) -> None:
            progress.append((done, text or ""))

        arguments = {"action": "ask", "to": "reviewer", "message": "Which invariant fails?", "delivery": "steer"}
        asking = asyncio.ensure_future(one.session.call_tool("intercom", arguments, progress_callback=note))
        await other.await_text("messages wait", "list")
        assert "reviewer" in (await one.call("list")).text
        second = await one.call("ask", to="reviewer", message="And this?")
        assert second.is_error
        assert second.text.startswith('Ask to "reviewer" was not sent: already waiting for the reply to ask ')
        assert (second.facts["accepted"], second.facts["deliveryUnknown"]) == (False, False)
        shown = await other.call("pending")
        assert "The sender waits for a reply: intercom({ action: " in shown.text
        left = await other.call("pending")
        assert left.text.startswith("**Questions that wait for your reply (1):**\n• ")
        assert left.text.endswith(": Which invariant fails?")
        answered = await other.call("reply", message="The rotated token remains usable.")
        assert (answered.text, answered.is_error) == ("Reply sent to asker", False)
        result = await asyncio.wait_for(asking, DEADLINE_S)
        assert result.content[0].text == "**Reply from reviewer:**\nThe rotated token remains usable."
        assert result.structured_content["replied"] is True
        assert progress
        assert progress[0][1] == f"asked reviewer; waiting for the reply, 0 s of {DEFAULT_TIMEOUT_S:g} s"

    two(ctl, talk)


def test_a_cancelled_ask_retires_its_question(ctl):
    async def talk(one, other):
        asking = asyncio.ensure_future(one.call("ask", to="reviewer", message="Still there?"))
        await one.await_text("pending_asks:1", "list", to="reviewer")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await one.await_text("pending_asks:0", "list", to="reviewer")
        shown = (await other.call("pending")).text
        assert "nobody waits for its reply any more" in shown
        assert "Still there?" in shown
        late = await other.call("reply", message="yes")
        assert (late.text, late.is_error) == ("The reply was not sent: no ask is pending here.", True)
        assert (late.facts["code"], late.facts["accepted"]) == ("no_pending_ask", False)
        again = await one.call("list")
        assert not again.is_error

    two(ctl, talk)


def test_an_ask_that_times_out_keeps_what_the_broker_said(ctl):
    async def talk(one, _other):
        late = await one.call("ask", to="reviewer", message="Anyone?")
        assert late.is_error
        assert late.text.startswith('No reply from "reviewer" within 0.3 seconds. The question was delivered (message ')
        told = {name: late.facts[name] for name in ("accepted", "delivered", "deliveryUnknown", "replied", "endedBy")}
        assert told == {
            "accepted": True,
            "delivered": True,
            "deliveryUnknown": False,
            "replied": False,
            "endedBy": "timeout",
        }
        assert late.facts["messageId"] in late.text

    two(ctl, talk, "--ask-timeout", "0.3")


def test_a_busy_peer_is_asked_and_not_waited_for(ctl):
    async def talk():
        async with agent(ctl.environment, "asker") as one, program(ctl, "busy-one") as busy:
            await busy.presence(accepts_asks=False)
            await one.await_text("accepts_asks:false", "list", to="busy-one")
            told = await one.call("ask", to="busy-one", message="When you can?")
            assert told.text.startswith('"busy-one" is busy (accepts_asks:false). The question was delivered')
            assert not told.is_error
            assert told.facts["reason"] == "peer_busy"
            assert told.facts["reasonCode"] == "recipient_not_accepting_asks"
            assert (told.facts["replied"], told.facts["accepted"]) == (False, True)

    run(talk)


def test_several_questions_are_told_apart(ctl):
    async def talk():
        async with (
            agent(ctl.environment, "reviewer") as reviewer,
            agent(ctl.environment, "first") as first,
            agent(ctl.environment, "second") as second,
        ):
            one = asyncio.ensure_future(first.call("ask", to="reviewer", message="one?"))
            await reviewer.await_text("1 messages wait", "list")
            two_ = asyncio.ensure_future(second.call("ask", to="reviewer", message="two?"))
            await reviewer.await_text("2 messages wait", "list")
            shown = await reviewer.call("pending")
            assert shown.text.index("one?") < shown.text.index("two?")
            vague = await reviewer.call("reply", message="which?")
            assert vague.is_error
            assert "2 asks are pending; name one by its message ID" in vague.text
            assert (await reviewer.call("reply", message="to the second", to="second")).text == "Reply sent to second"
            assert (await asyncio.wait_for(two_, DEADLINE_S)).text == "**Reply from reviewer:**\nto the second"
            listed = await reviewer.call("pending")
            message_id = listed.text.splitlines()[1].split()[1]
            # `send` with `replyTo` is a reply too.
            sent = await reviewer.call("send", to="first", replyTo=message_id, message="to the first")
            assert sent.text == "Reply sent to first"
            assert (await asyncio.wait_for(one, DEADLINE_S)).text == "**Reply from reviewer:**\nto the first"

    run(talk)


def test_failures_say_what_became_of_the_message(ctl):
    async def talk(one, _other):
        lost = await one.call("send", to="nobody-here", message="x")
        assert lost.is_error
        assert lost.text.startswith('Message to "nobody-here" was not delivered: Session not found.')
        assert lost.text.endswith('See who is there: intercom({ action: "list" })')
        itself = await one.call("send", to="asker", message="x")
        assert (itself.is_error, itself.facts["code"]) == (True, "self_target")
        invalid = await one.call("send", to="reviewer", message="bell \x07")
        told = {name: invalid.facts[name] for name in ("deliveryUnknown", "accepted", "delivered")}
        assert told == {"deliveryUnknown": False, "accepted": False, "delivered": False}
        assert invalid.facts["code"] == "invalid_message"
        mistaken = await one.call("send", message="x")
        assert (mistaken.text, mistaken.is_error) == ("send needs to.", True)
        assert mistaken.facts["accepted"] is False
        unknown = await one.call("fly")
        assert unknown.text == (
            'action "fly" is not known; give one of list, status, send, ask, pending, reply, last.'
        )
        result = await one.session.call_tool("other", {})
        assert result.is_error
        assert result.content[0].text == 'There is no tool "other" here; there is intercom.'

    two(ctl, talk)


def test_delivery_options_are_told_as_the_seeds_tell_them(ctl):
    async def talk():
        async with agent(ctl.environment, "asker") as one, program(ctl, "worker") as worker:
            assert (await one.call("send", to="worker", message="a")).text.startswith("Message sent to worker (")
            passive = await one.call("send", to="worker", message="fyi", delivery="passive")
            assert passive.text == (
                "Message sent to worker (passive; wakes nobody; the recipient reads it at its next turn)"
            )
            await worker.presence(status="idle")
            replaced = await one.call(
                "send", to="worker", message="50 %", delivery="queue", queueMode="replace", threadId="build"
            )
            assert replaced.text.startswith("Message queued for worker (queue; ")
            assert 'replaces a still staged message of thread "build"' in replaced.text
            assert (replaced.facts["accepted"], replaced.facts["delivered"]) == (True, False)

    run(talk)


def test_attachments_travel_and_are_fenced(ctl):
    async def talk(one, other):
        attachment = {"type": "snippet", "name": "a.py", "content": "print()\n", "language": "python"}
        sent = await one.call("send", to="reviewer", attachments=[attachment])
        assert not sent.is_error
        await other.await_text("messages wait", "list")
        assert "📎 a.py (snippet)\n~~~python\nprint()\n~~~" in (await other.call("pending")).text
        wrong = await one.call("send", to="reviewer", attachments=[{"type": "image", "name": "x", "content": ""}])
        assert (wrong.is_error, wrong.facts["code"]) == (True, "invalid_message")

    two(ctl, talk)
