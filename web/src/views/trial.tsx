/* How a rule that is new or changed begins: in shadow for a while, or live at once for a reason. */
import { moment, now } from "../time";
import { SelectField } from "../ui/controls";
import { untilWords } from "./check-rules";

const DAY_S = 86_400;

export interface TrialFieldProps {
  /** "": as the server does it; "keep": to the end that stands; otherwise seconds in shadow */
  value: string;
  onChange: (value: string) => void;
  /** of the trial that runs now, in milliseconds; null: none runs */
  end: number | null;
  /** the rule differs from what is stored */
  changed: boolean;
  /** what goes on trial: "A change of the rule" */
  what: string;
  error?: string | null | undefined;
}

export function TrialField(props: TrialFieldProps) {
  const { end, changed } = props;
  const stays = end !== null && !changed;
  const choices = [
    { value: "", label: stays ? `${untilWords(end)}, as it is` : "in shadow for a day" },
    ...(end !== null && changed ? [{ value: "keep", label: `${untilWords(end)}, as before` }] : []),
    ...(stays ? [{ value: String(DAY_S), label: "in shadow for a day from now" }] : []),
    { value: String(7 * DAY_S), label: "in shadow for 7 days" },
    { value: "0", label: "live at once: say why below" },
  ];
  return <SelectField label="Begins" name="shadow_seconds" choices={choices} value={choices.some((one) => one.value === props.value) ? props.value : ""} onChange={props.onChange} help={props.error ?? (props.value === "0" ? "It has its effect at once; the reason stands in the audit log." : `${props.what} is in shadow for 24 h first: recorded, without effect. ${stays ? "" : `That is until ${moment(now.value + DAY_S * 1000, now.value)}.`}`.trim())} />;
}

/** The part of the body; end: of the trial that runs now. */
export function trialSeconds(value: string, end: number | null = null): { shadow_seconds?: number } {
  if (value === "") {
    return {};
  }
  return value === "keep" ? (end !== null ? { shadow_seconds: Math.max(1, Math.round((end - now.peek()) / 1000)) } : {}) : { shadow_seconds: Number(value) };
}
