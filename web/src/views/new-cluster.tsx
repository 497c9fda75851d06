/* A new cluster: a name is enough, the rest can be filled in later or is seen by the agents. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, newIdempotencyKey, post } from "../api";
import { navigate } from "../router";
import { may } from "../session";
import { refresh, useQuery } from "../store";
import type { Cluster, List, Project } from "../types";
import { Button, Field, SelectField } from "../ui/controls";
import { PageSentence } from "../ui/page";
import { Shell } from "../ui/shell";
import { Loaded, Note } from "../ui/states";

const SCHEDULERS = [
  { value: "none", label: "No scheduler" },
  { value: "slurm", label: "Slurm" },
  { value: "kubernetes", label: "Kubernetes" },
];

export function NewClusterPage() {
  const projects = useQuery<List<Project>>("/projects?limit=200");
  const project = useSignal("");
  const fields = useSignal<Record<string, string>>({ name: "", region: "", gpu_type: "", scheduler: "none" });
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const key = useSignal(newIdempotencyKey());
  useEffect(() => {
    document.title = "Add a cluster · Muster";
  }, []);
  const set = (name: string) => (value: string) => {
    fields.value = { ...fields.value, [name]: value };
    key.value = newIdempotencyKey();
  };
  const submit = async (first: string) => {
    busy.value = true;
    error.value = null;
    const given = Object.fromEntries(Object.entries(fields.value).filter(([, value]) => value.trim() !== ""));
    try {
      const made = await post<Cluster>("/clusters", { project_id: project.value || first, ...given }, { idempotencyKey: key.value });
      refresh("/clusters?");
      navigate(`/clusters/${made.id}`);
    } catch (cause) {
      error.value = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    } finally {
      busy.value = false;
    }
  };
  const text = (name: string) => ({ name, value: fields.value[name] ?? "", onInput: set(name), error: error.value?.field(name) });
  return (
    <Shell scope={{}}>
      <PageSentence parts={[<b>Add a cluster</b>, "nodes appear within 10 seconds of joining"]} />
      <Loaded query={projects} what="The list of projects">
        {(list) => (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void submit(list.items[0]?.id ?? "");
            }}
          >
            <div class="form">
              <Field label="Name" required help="Lower case letters, digits and dashes. It can be changed later." {...text("name")} />
              <SelectField label="Runs" name="scheduler" choices={SCHEDULERS} value={fields.value.scheduler ?? ""} onChange={set("scheduler")} help="Jobs on a node are known only with a scheduler." />
              <Field label="Region" help="Where it stands, in your words." {...text("region")} />
              <Field label="GPU type" help="Leave it empty to take what the agents see." {...text("gpu_type")} />
              {list.items.length > 1 && (
                <SelectField label="Project" name="project_id" choices={list.items.map((one) => ({ value: one.id, label: one.title || one.name }))} value={project.value || (list.items[0]?.id ?? "")} onChange={(value) => (project.value = value)} />
              )}
              {error.value && (
                <div class="whole">
                  <Note tone="bad" alert title={`${error.value.title}.`}>
                    <p class="t2">{error.value.detail}</p>
                    {error.value.errors.filter((one) => !["#/name", "#/scheduler", "#/region", "#/gpu_type"].includes(one.pointer ?? "")).map((one) => (
                      <p class="t2" key={one.pointer}>
                        {one.pointer?.slice(2)} {one.detail}
                      </p>
                    ))}
                  </Note>
                </div>
              )}
              <p class="row8 whole">
                <Button
                  kind="primary"
                  type="submit"
                  busy={busy.value}
                  disabled={!may("cluster.write") ? "It needs the permission cluster.write." : list.items.length === 0 ? "There is no project to put it in." : fields.value.name === "" ? "Give it a name first." : null}
                >
                  Add cluster {fields.value.name}
                </Button>
                <a class="btn quiet" href="/clusters">
                  Cancel
                </a>
              </p>
            </div>
          </form>
        )}
      </Loaded>
    </Shell>
  );
}
