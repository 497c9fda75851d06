/* Chips and free text in one field; what cannot be read is said below it, with the fix. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { replaceTerm, type Filter } from "../filter";
import { bindKeys } from "../keys";
import { Icon } from "./icons";

const WRITE_MS = 250;

export interface FilterBarProps {
  label: string;
  /** a true example */
  placeholder: string;
  source: string;
  filter: Filter;
  onChange: (source: string) => void;
  before?: ComponentChildren;
  after?: ComponentChildren;
  chipText?: (raw: string) => string;
}

export function FilterBar(props: FilterBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const chips = props.filter.terms.map((term) => term.raw);
  const loose = props.source.split(/\s+/).filter((word) => word && !chips.includes(word)).join(" ");
  const draft = useSignal(loose);
  const written = useRef(props.source);
  const timer = useRef(0);
  useEffect(() => {
    if (props.source !== written.current) {
      draft.value = loose;
      written.current = props.source;
    }
  }, [props.source]);
  useEffect(() => bindKeys([{ keys: "/", does: "Go to the filter", run: () => input.current?.focus() }]), []);
  const write = (text: string) => {
    clearTimeout(timer.current);
    const next = [...chips, text.trim()].filter(Boolean).join(" ");
    written.current = next;
    props.onChange(next);
  };
  const take = (raw: string) => {
    const next = replaceTerm(props.source, raw, "");
    written.current = next;
    props.onChange(next);
    input.current?.focus();
  };
  const settle = () => {
    write(draft.value);
    draft.value = draft.value
      .split(/\s+/)
      .filter((word) => !/^-?[a-z_]+[:<>]./.test(word))
      .join(" ");
  };
  const complaints = props.filter.complaints;
  return (
    <div class="filter">
      {props.before}
      <div class={complaints.length ? "query bad" : "query"}>
        {chips.map((raw) => (
          <span class="chip" key={raw}>
            {props.chipText?.(raw) ?? raw}
            <button type="button" aria-label={`Remove filter ${raw}`} onClick={() => take(raw)}>
              <Icon name="close" />
            </button>
          </span>
        ))}
        <input
          ref={input}
          type="text"
          aria-label={props.label}
          placeholder={chips.length ? "" : props.placeholder}
          spellcheck={false}
          autocomplete="off"
          value={draft.value}
          aria-invalid={complaints.length ? true : undefined}
          aria-describedby={complaints.length ? id : undefined}
          onInput={(event) => {
            draft.value = event.currentTarget.value;
            clearTimeout(timer.current);
            /* a key:value still being typed is not yet a mistake */
            const half = /(?:^|\s)-?[a-z_]+[:<>]\S*$/.test(draft.value);
            timer.current = setTimeout(() => !half && write(draft.value), WRITE_MS) as unknown as number;
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" || event.key === " ") {
              if (event.key === "Enter" || /[:<>]\S+$/.test(draft.value)) {
                event.preventDefault();
                settle();
              }
            } else if (event.key === "Backspace" && draft.value === "" && chips.length) {
              take(chips[chips.length - 1] ?? "");
            } else if (event.key === "Escape") {
              input.current?.blur();
            }
          }}
          onBlur={settle}
        />
      </div>
      {props.after}
      {complaints.length > 0 && (
        <p id={id} class="queryerror" role="alert">
          {complaints.map((complaint, i) => (
            <span key={i}>
              {complaint.message}{" "}
              {complaint.fix && (
                <>
                  Did you mean{" "}
                  <button type="button" class="linkish" onClick={() => props.onChange(replaceTerm(props.source, complaint.fix?.what ?? "", complaint.fix?.with ?? ""))}>
                    {complaint.fix.with}
                  </button>
                  ?{" "}
                </>
              )}
            </span>
          ))}
        </p>
      )}
    </div>
  );
}
