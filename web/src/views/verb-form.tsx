/* A dialog that sends one verb: fields left to the caller, the key, the error and the button are the same everywhere. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, newIdempotencyKey, request } from "../api";
import { Button } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { Note } from "../ui/states";

export interface VerbFormProps<T> {
  title: string;
  lead?: ComponentChildren;
  /** below /api/v1 */
  path: string;
  /** POST unless said otherwise; a DELETE has no body and no answer */
  method?: "POST" | "DELETE";
  body?: () => Record<string, unknown>;
  /** in place of the request: true when it was taken; the caller shows its own errors */
  send?: () => Promise<boolean>;
  /** verb + object, as on the button */
  verb: string;
  /** why it cannot be sent now; shown at the left of the foot */
  disabled?: string | null | undefined;
  /** what sending it means, at the left of the foot */
  binds?: ComponentChildren;
  done: (answer: T) => void;
  onClose: () => void;
  /** error: of the last try, so that fields can say what was wrong with them */
  children: (error: ApiError | null) => ComponentChildren;
  /** fields that show their own complaint */
  fields?: readonly string[];
}

export function VerbForm<T>(props: VerbFormProps<T>) {
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const kept = useRef({ text: "", key: "" });
  const submit = async () => {
    if (props.disabled || busy.value) {
      return;
    }
    busy.value = true;
    error.value = null;
    const body = props.body?.() ?? {};
    const text = JSON.stringify(body);
    if (kept.current.text !== text) {
      kept.current = { text, key: newIdempotencyKey() };
    }
    try {
      if (props.send) {
        if (await props.send()) {
          props.done(null as T);
        }
        return;
      }
      const method = props.method ?? "POST";
      const answer = await request<T>(method, props.path, method === "POST" ? { body, idempotencyKey: kept.current.key } : {});
      props.done(answer.data as T);
    } catch (cause) {
      error.value = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    } finally {
      busy.value = false;
    }
  };
  const failed = error.value;
  const unsure = failed && (failed.status === 0 || failed.status >= 500);
  const others = failed?.errors.filter((one) => !props.fields?.includes((one.pointer ?? "").slice(2))) ?? [];
  return (
    <Dialog
      narrow
      title={props.title}
      lead={props.lead}
      onClose={props.onClose}
      binds={props.disabled ? <b>{props.disabled}</b> : props.binds}
      buttons={
        <>
          <Button onClick={props.onClose}>Close</Button>
          <Button kind="primary" busy={busy.value} disabled={props.disabled} showReason={false} onClick={() => void submit()}>
            {props.verb}
          </Button>
        </>
      }
    >
      <form
        class="pad stack"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        {props.children(failed)}
        {failed && (
          <Note tone="bad" alert title={unsure ? "It is not known whether this arrived." : `${failed.title}.`}>
            <p class="t2">
              {failed.detail} {unsure ? "Press again: the same request is never carried out twice." : ""}
            </p>
            {others.map((one) => (
              <p class="t2" key={one.pointer}>
                {(one.pointer ?? "").slice(2)} {one.detail}
              </p>
            ))}
            {failed.requestId && <p class="s12 t3 gap4">Request {failed.requestId}</p>}
          </Note>
        )}
      </form>
    </Dialog>
  );
}
