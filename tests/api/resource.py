"""What every resource promises, for the tests of each of them."""
import threading
import uuid

from waiting import wait_for


def walk(world, path, limit=2):
    """All items of a list by its pages; checks pages, Link and cursors on the way."""
    items, join = [], "&" if "?" in path else "?"
    page = world.api("GET", f"{path}{join}limit={limit}")
    while True:
        assert page.status_code == 200, page.text
        body = page.json()
        assert len(body["items"]) <= limit
        items += body["items"]
        if body["next_cursor"] is None:
            assert "link" not in page.headers
            return items
        assert len(body["items"]) == limit
        target, _, rel = page.headers["link"].partition(">; ")
        assert rel == 'rel="next"'
        assert body["next_cursor"] in target
        page = world.api("GET", target.removeprefix("<"))


def check_list(world, path, key, others=()):
    """A list has no gaps and no doubles, its cursor belongs to its filters, and it answers 304."""
    everything = walk(world, path, 200)
    assert len(everything) >= 3, "too few to walk"
    assert [item[key] for item in walk(world, path)] == [item[key] for item in everything]
    first = world.api("GET", f"{path}{'&' if '?' in path else '?'}limit=1")
    cursor = first.json()["next_cursor"]
    for other in others:
        answer = world.api("GET", f"{other}&cursor={cursor}&limit=1")
        assert answer.status_code == 400 and answer.json()["code"] == "bad_cursor", answer.text
    for bad in ("x", cursor[2:], cursor + "!"):
        answer = world.api("GET", f"{path}{'&' if '?' in path else '?'}cursor={bad}")
        assert answer.status_code == 400, answer.text
    assert first.headers["etag"].startswith('W/"')
    check_unchanged(world, f"{path}{'&' if '?' in path else '?'}limit=1")
    for parameter, code in (("limit=0", "out_of_range"), ("limit=x", "wrong_type"), ("nonsense=1", "unknown_field")):
        answer = world.api("GET", f"{path}{'&' if '?' in path else '?'}{parameter}")
        assert answer.status_code == 422, answer.text
        error = answer.json()["errors"][0]
        assert error["parameter"] == parameter.split("=")[0]
    return everything


def check_unchanged(world, path):
    """What did not change is 304 without a body; what the loops write in between moves the tag, so it is tried again."""
    def again():
        etag = world.api("GET", path).headers["etag"]
        answer = world.api("GET", path, headers={"If-None-Match": etag})
        return answer if answer.status_code == 304 else None
    answer = wait_for(again)
    assert not answer.content


def check_update(world, path, change, field):
    """PATCH needs the present version and says the new one."""
    now = world.api("GET", path)
    assert now.headers["etag"] == f'"{now.json()["version"]}"'
    assert world.api("GET", path, headers={"If-None-Match": now.headers["etag"]}).status_code == 304
    missing = world.api("PATCH", path, change)
    assert missing.status_code == 428 and missing.json()["code"] == "precondition_required"
    done = world.api("PATCH", path, change, headers={"If-Match": now.headers["etag"]})
    assert done.status_code == 200, done.text
    assert done.json()[field] == change[field] and done.json()["version"] == now.json()["version"] + 1
    assert done.headers["etag"] == f'"{done.json()["version"]}"'
    assert world.api("GET", path).json()[field] == change[field]
    stale = world.api("PATCH", path, change, headers={"If-Match": now.headers["etag"]})
    assert stale.status_code == 412 and stale.headers["etag"] == done.headers["etag"]
    unknown = world.api("PATCH", path, {**change, "nonsense": 1}, headers={"If-Match": done.headers["etag"]})
    assert unknown.status_code == 422 and unknown.json()["errors"][0]["pointer"] == "#/nonsense"
    merge = world.api("PATCH", path, None, content="{}", headers={"If-Match": done.headers["etag"],
                                                                 "Content-Type": "application/merge-patch+json"})
    assert merge.status_code == 200 and merge.json()[field] == change[field], "what is absent stays"
    return merge.json()


def check_refusals(world, method, path, body, pointers, headers=None):
    """All that is wrong is said at once."""
    answer = world.api(method, path, body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert {error["pointer"] for error in answer.json()["errors"]} == set(pointers), answer.text


def check_idempotency(world, path, make_body, status=201, rows=None):
    """The same key and body again is the same answer, also when both come at once; another body is refused."""
    body, key = make_body(), {"Idempotency-Key": str(uuid.uuid4())}
    before = rows() if rows else None
    first = world.api("POST", path, body, headers=key)
    assert first.status_code == status and "idempotent-replayed" not in first.headers
    again = world.api("POST", path, body, headers=key)
    assert again.status_code == status and again.headers["idempotent-replayed"] == "true"
    for header in ("location", "etag"):
        assert again.headers.get(header) == first.headers.get(header)
    if "token" not in first.json():
        assert again.json() == first.json()
    other = world.api("POST", path, {**body, **change_of(body)}, headers=key)
    assert other.status_code == 422 and other.json()["code"] == "idempotency_key_reused"
    race(world, path, make_body(), status)
    if rows:
        assert rows() == before + 2


def change_of(body):
    field = next(name for name, value in body.items() if isinstance(value, str))
    return {field: body[field] + "x"}


def race(world, path, body, status):
    """Eight at once with one key: one effect, and everybody hears the same."""
    key, answers = {"Idempotency-Key": str(uuid.uuid4())}, []
    gate = threading.Barrier(8)

    def post():
        gate.wait()
        answers.append(world.api("POST", path, body, headers=key))

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [status] * 8, [answer.text for answer in answers]
    ids = {answer.json().get("id", answer.json().get("seq")) for answer in answers}
    assert len(ids) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1


def last_event(world):
    """The newest event that somebody caused: the background loops (actor `muster`) write theirs at any moment."""
    path = "events?limit=200"
    while True:
        page = world.api("GET", path).json()
        theirs = [event for event in page["items"] if event["actor"] != "muster"]
        if theirs:
            return theirs[0]
        path = f"events?limit=200&cursor={page['next_cursor']}"


def last_audit(world, target, action=None):
    """The newest row about a thing: the loops audit what they do, too."""
    path = f"audit?target={target}" + (f"&action={action}" if action else "")
    return world.api("GET", path).json()["items"][0]
