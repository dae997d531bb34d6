"""The full report beside other work: one check at a time, cells and clicks in between."""

import asyncio
import concurrent.futures
import threading

import pytest

from nbsurgery.verify import Finding
from nbsurgery.widget import notebook
from nbsurgery.widget.beside import Beside


@pytest.fixture
def run(monkeypatch):
    """Runs a coroutine on a loop that is taken for the kernel's."""

    def run(coroutine):
        async def kernel():
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(notebook, "main_loop", lambda: loop)
            await coroutine

        with concurrent.futures.ThreadPoolExecutor(
            1
        ) as pool:  # a browser's loop may live in this one
            pool.submit(asyncio.run, kernel()).result(60)
        monkeypatch.setattr(notebook, "main_loop", lambda: None)

    return run


async def until(condition):
    """Give the loop back until something holds; fails where it never does."""
    for _ in range(200):
        if condition():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it never came to that")


def test_other_work_is_served_between_checks(run, fake):
    """A click is answered while checks are left; none runs inside a check of another."""
    log = []

    async def kernel():
        fake.remove(["relu"])
        fake.observe(lambda change: log.append(change["new"]), "_checking")
        fake._ask_verify()
        assert log == []  # it is begun after the message that asks for it has been answered
        await until(lambda: log)
        fake._on_message(fake, {"id": 1, "method": "facts", "params": {"names": ["fc"]}}, [])
        assert fake.sent[-1]["ok"] and fake._checking["state"] == "running"
        await until(lambda: fake._checking == {"state": "done"})

    run(kernel())
    assert [one["name"] for one in log[:-1]] == ["train mode", "export"]
    assert log[0] == {
        "state": "running",
        "name": "train mode",
        "number": 1,
        "of": 2,
        "holds": False,
    }
    assert fake.report["findings"][0]["text"] == "checked in full"


def test_a_step_taken_meanwhile_begins_the_checks_again(run, fake):
    """The checks of the old steps end; those of the new ones give the report."""
    begun = []
    checking = fake._session.checking

    def spied():
        begun.append(len(fake.steps))
        yield from ()
        return (yield from checking())

    fake._session.checking = spied

    async def kernel():
        fake.remove(["relu"])
        fake._ask_verify()
        await until(lambda: fake._checking.get("number") == 1)
        fake.remove(["fc"])
        assert fake._checking == {} and fake._beside.busy
        await until(lambda: fake._checking == {"state": "done"})
        fake.undo()
        assert not fake._beside.busy  # nothing was at work: nothing is begun
        fake._ask_verify()
        fake.undo()  # no step is left
        assert not fake._beside.busy
        await asyncio.sleep(0.1)

    run(kernel())
    assert begun == [1, 2]
    assert fake._checking == {} and fake.steps == []


def test_it_can_be_stopped(run, fake):
    """No check is begun after that, and the immediate report stays."""

    async def kernel():
        fake.remove(["relu"])
        fake._ask_verify()
        await until(lambda: fake._checking.get("number") == 1)
        fake._ask_stop_verify()
        await asyncio.sleep(0.15)

    run(kernel())
    assert fake._checking == {"state": "stopped"}
    assert fake.report == fake._session.report


def test_stopped_from_the_thread_of_messages(run, fake):
    """JupyterLab asks from there while a check is at work: that check does not bring it back to life."""

    async def kernel():
        fake.remove(["relu"])
        fake._ask_verify()
        await until(lambda: fake._checking.get("number") == 1)
        told = fake._told

        def at_work(progress):  # the message comes while the check before this is in its turn
            thread = threading.Thread(target=fake._ask_stop_verify)
            thread.start()
            thread.join()
            told(progress)

        fake._beside._told = at_work
        await asyncio.sleep(0.3)

    run(kernel())
    assert fake._checking == {"state": "stopped"}


def test_asked_again_by_emit_it_is_not_repeated(fake):
    """What is checked, or being checked, is not checked anew unless the person asks."""
    fake.remove(["relu"])
    fake._ask_verify(again=False)  # without a loop: at once
    assert fake._checking == {"state": "done"}
    fake._session.found = []
    fake._ask_verify(again=False)
    assert fake.report["findings"]
    fake._ask_verify()
    assert fake.report["findings"] == []


def test_an_error_of_a_check_is_told(run):
    """Not lost in a task."""
    said = []

    def checks():
        yield "one"
        raise ValueError("bad")

    async def kernel():
        beside = Beside(said.append, lambda *end: said.append(end))
        beside.start(checks())
        await until(lambda: len(said) == 2)
        assert not beside.busy

    run(kernel())
    assert said[0] == "one" and repr(said[1]) == "(None, ValueError('bad'))"


def test_what_another_thread_asks_for_is_done_where_cells_run(run, fake, monkeypatch):
    """JupyterLab hears widgets in a thread of its own; while a cell runs nothing but looking is done."""
    here, seen, offers = [], [], fake._session.offers
    monkeypatch.setattr(
        fake._session, "offers", lambda n, _: seen.append(threading.current_thread()) or offers(n)
    )

    def thread():
        for method, params in (("find", {"query": "fc"}), ("offers", {"names": ["fc"]})):
            fake._on_message(fake, {"id": method, "method": method, "params": params}, [])

    async def kernel():
        here.append(threading.current_thread())
        other = threading.Thread(target=thread)
        other.start()
        other.join()  # a cell at work: the loop has no turn
        assert [reply["id"] for reply in fake.sent] == ["find"]
        await until(lambda: len(fake.sent) == 2)

    run(kernel())
    assert seen == here


def test_emit_warns_of_what_the_full_report_finds(fake, capsys):
    """Where no picture is shown that would tell it."""
    fake._session.found = [Finding("error", "train mode fails")]
    fake.remove(["relu"])
    with pytest.warns(UserWarning, match="train mode fails"):
        fake.emit()
    assert "model.relu" in capsys.readouterr().out


def test_emit_without_a_step_says_what_to_do(fake, capsys):
    """No cell with a comment alone."""
    fake.emit()
    assert "nothing to emit yet" in capsys.readouterr().out
