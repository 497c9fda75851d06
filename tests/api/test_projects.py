"""Projects."""
from resource import check_idempotency, check_list, check_refusals, check_update, last_event


def test_creating(world):
    name = world.name("p")
    answer = world.api("POST", "projects", {"name": name, "title": "T"})
    assert answer.status_code == 201
    project = answer.json()
    assert (project["name"], project["title"], project["clusters"], project["version"]) == (name, "T", 0, 1)
    assert answer.headers["location"] == f"/api/v1/projects/{project['id']}"
    assert world.api("GET", answer.headers["location"]).json() == project
    assert last_event(world)["type"] == "project.created"


def test_a_name_is_taken_once(world):
    name = world.name("p")
    world.made("POST", "projects", {"name": name})
    answer = world.api("POST", "projects", {"name": name})
    assert answer.status_code == 409 and answer.json()["code"] == "name_taken"


def test_refusals_come_all_at_once(world):
    check_refusals(world, "POST", "projects", {"title": "x" * 256, "nonsense": 1}, ["#/name", "#/title", "#/nonsense"])
    check_refusals(world, "POST", "projects", {"name": "Upper", "title": 5}, ["#/name", "#/title"])
    check_refusals(world, "POST", "projects", {"name": None}, ["#/name"])


def test_idempotency(world):
    count = lambda: int(world.sql(f"SELECT count(*) FROM project WHERE org_id = '{world.org.id}'"))
    check_idempotency(world, "projects", lambda: {"name": world.name("p")}, rows=count)


def test_list(world):
    for _ in range(3):
        world.project()
    items = check_list(world, "projects", "id")
    assert [item["name"] for item in items] == sorted(item["name"] for item in items)


def test_updating(world):
    check_update(world, f"projects/{world.project()}", {"title": "New"}, "title")
    taken = world.api("GET", f"projects/{world.project()}").json()["name"]
    answer = world.api("PATCH", f"projects/{world.project()}", {"name": taken}, headers={"If-Match": '"1"'})
    assert answer.status_code == 409 and answer.json()["code"] == "name_taken"


def test_clusters_are_counted(world):
    project = world.project()
    world.cluster(project_id=project)
    assert world.api("GET", f"projects/{project}").json()["clusters"] == 1
