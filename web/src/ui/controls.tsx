/* Buttons, switches and fields. A control that cannot be used stays reachable and says why. */
import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { useSignal } from "@preact/signals";

export interface ButtonProps {
  children: ComponentChildren;
  onClick?: (event: MouseEvent) => void;
  kind?: "default" | "primary" | "quiet" | "danger";
  small?: boolean;
  /** for square buttons, whose children are an icon */
  label?: string;
  icon?: boolean;
  type?: "button" | "submit";
  /** why it cannot be used now; shown beside it */
  disabled?: string | null | undefined;
  /** false: the reason is shown elsewhere and only tied to the button for screen readers */
  showReason?: boolean;
  busy?: boolean;
  class?: string;
  expanded?: boolean;
  pressed?: boolean;
}

export function Button(props: ButtonProps) {
  const id = useId();
  const off = props.disabled || props.busy;
  const names = ["btn", props.kind === "default" ? "" : (props.kind ?? ""), props.small ? "sm" : "", props.icon ? "icon" : "", props.class ?? ""];
  return (
    <>
      <button
        type={props.type ?? "button"}
        class={names.filter(Boolean).join(" ")}
        aria-label={props.label}
        aria-disabled={off ? true : undefined}
        aria-describedby={props.disabled ? id : undefined}
        aria-expanded={props.expanded}
        aria-pressed={props.pressed}
        onClick={(event) => {
          if (off) {
            event.preventDefault();
          } else {
            props.onClick?.(event);
          }
        }}
      >
        {props.children}
      </button>
      {props.disabled && (
        <span id={id} class={props.showReason === false ? "vh" : "reason"}>
          {props.disabled}
        </span>
      )}
    </>
  );
}

export interface Choice {
  value: string;
  label: string;
}

/** Joined buttons, at most four. With href the choices are links, so that each view has an address. */
export function Segmented(props: { label: string; choices: Choice[]; value: string; onChange?: (value: string) => void; href?: (value: string) => string }) {
  return (
    <div class="seg" role="group" aria-label={props.label}>
      {props.choices.map((choice) =>
        props.href ? (
          <a key={choice.value} href={props.href(choice.value)} aria-current={choice.value === props.value ? "true" : undefined}>
            {choice.label}
          </a>
        ) : (
          <button key={choice.value} type="button" aria-pressed={choice.value === props.value} onClick={() => props.onChange?.(choice.value)}>
            {choice.label}
          </button>
        ),
      )}
    </div>
  );
}

/** Label and value in one frame, a native select underneath. */
export function Select(props: { label: string; choices: Choice[]; value: string; onChange: (value: string) => void }) {
  return (
    <label class="sel">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.choices.map((choice) => (
          <option key={choice.value} value={choice.value} selected={choice.value === props.value}>
            {choice.label}
          </option>
        ))}
      </select>
    </label>
  );
}

export interface FieldProps {
  label: ComponentChildren;
  name: string;
  value: string;
  onInput: (value: string) => void;
  help?: string;
  /** what is wrong with it, in place of the help */
  error?: string | null | undefined;
  multiline?: boolean;
  /** several lines that a machine reads: as wide as they are, in the letters of code */
  code?: boolean;
  placeholder?: string;
  autoComplete?: string;
  inputMode?: JSX.HTMLAttributes<HTMLInputElement>["inputMode"];
  required?: boolean;
}

export function Field(props: FieldProps) {
  const id = useId();
  const note = props.error ?? props.help;
  const common = {
    id,
    name: props.name,
    class: props.code ? "inp code" : "inp",
    value: props.value,
    placeholder: props.placeholder,
    autocomplete: (props.autoComplete ?? "off") as "off",
    "aria-invalid": props.error ? true : undefined,
    "aria-describedby": note ? `${id}-note` : undefined,
    "aria-required": props.required ? true : undefined,
  } as const;
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.multiline ? (
        <textarea {...common} spellcheck={!props.code} onInput={(event) => props.onInput(event.currentTarget.value)} />
      ) : (
        <input {...common} type="text" inputMode={props.inputMode} spellcheck={false} onInput={(event) => props.onInput(event.currentTarget.value)} />
      )}
      {note && (
        <p id={`${id}-note`} class={props.error ? "help c-unhealthy" : "help"}>
          {note}
        </p>
      )}
    </div>
  );
}

export interface Option {
  value: string;
  label: ComponentChildren;
  sub?: ComponentChildren;
  /** at the right: how long it takes */
  end?: ComponentChildren;
}

/** Radio buttons, each with a sentence of its own. */
export function Options(props: { legend: string; name: string; options: readonly Option[]; value: string; onChange: (value: string) => void }) {
  return (
    <fieldset class="opts">
      <legend class="lbl">{props.legend}</legend>
      {props.options.map((option) => (
        <label class="opt" key={option.value}>
          <input type="radio" name={props.name} value={option.value} checked={option.value === props.value} onChange={() => props.onChange(option.value)} />
          <span>
            {option.label}
            {option.sub && <span class="sub">{option.sub}</span>}
          </span>
          {option.end && <span class="end">{option.end}</span>}
        </label>
      ))}
    </fieldset>
  );
}

/** A select with its label above, for forms. */
export function SelectField(props: { label: string; name: string; choices: Choice[]; value: string; onChange: (value: string) => void; help?: string }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <span class="sel full">
        <select id={id} name={props.name} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
          {props.choices.map((choice) => (
            <option key={choice.value} value={choice.value} selected={choice.value === props.value}>
              {choice.label}
            </option>
          ))}
        </select>
      </span>
      {props.help && <p class="help">{props.help}</p>}
    </div>
  );
}

export function CheckBox(props: { label: string; hideLabel?: boolean; checked: boolean; onChange: (checked: boolean, event: MouseEvent) => void; some?: boolean }) {
  return (
    <label class={props.hideLabel ? "hit" : "check"}>
      <input
        type="checkbox"
        checked={props.checked}
        ref={(box) => {
          if (box) {
            box.indeterminate = !props.checked && !!props.some;
          }
        }}
        aria-label={props.hideLabel ? props.label : undefined}
        onClick={(event) => props.onChange(event.currentTarget.checked, event)}
      />
      {props.hideLabel ? null : <span>{props.label}</span>}
    </label>
  );
}

/** Says "Copied" where it was pressed; text that cannot be copied is selected by hand instead. */
export function CopyButton(props: { text: string | (() => string); children: ComponentChildren; small?: boolean; kind?: ButtonProps["kind"]; class?: string }) {
  const said = useSignal<string | null>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof props.text === "function" ? props.text() : props.text);
      said.value = "Copied";
    } catch {
      said.value = "Select it and copy by hand";
    }
    setTimeout(() => (said.value = null), 1500);
  };
  return (
    <>
      <Button small={props.small ?? false} kind={props.kind ?? "default"} class={props.class ?? ""} onClick={() => void copy()}>
        {said.value ?? props.children}
      </Button>
      <span class="vh" role="status">
        {said.value}
      </span>
    </>
  );
}

/** A command to run elsewhere, with its Copy button. */
export function Command({ text, label }: { text: string; label: string }) {
  return (
    <div class="cmd">
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text}>Copy</CopyButton>
    </div>
  );
}
