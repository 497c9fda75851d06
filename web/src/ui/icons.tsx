/* The few icons, 16 px line drawings. They never stand alone for a word, save in square buttons with a label. */

const PATHS = {
  menu: "M2 4.5h12M2 8h12M2 11.5h12",
  down: "M4 6l4 4 4-4",
  close: "M4 4l8 8M12 4l-8 8",
  tick: "M3 8.5l3.2 3L13 4.5",
  warn: "M8 2.5L14.2 13H1.8zM8 6.5v3M8 11.3v.2",
  clock: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 4.5V8l2.5 1.5",
  lock: "M4 7.5h8v6H4zM5.5 7.5v-2a2.5 2.5 0 0 1 5 0v2",
  minus: "M4 8h8",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  back: "M10 3.5L5.5 8l4.5 4.5",
  forward: "M6 3.5L10.5 8 6 12.5",
  sun: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
  pulse: "M1.5 8.5h3l2-4.5 3 8 2-3.5h3",
  stop: "M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5zM5.5 8h5",
  info: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 7.5v3.5M8 5v.1",
} as const;

export type IconName = keyof typeof PATHS;
export type Tone = "good" | "bad" | "warn" | undefined;

export function Icon({ name, tone }: { name: IconName; tone?: Tone }) {
  return (
    <svg class={tone ? `ic ${tone}` : "ic"} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Brand() {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
      <path d="M1 1h4v4H1zM7 1h4v4H7zM13 1h4v4h-4zM1 7h4v4H1zM13 7h4v4h-4zM1 13h4v4H1zM13 13h4v4h-4z" />
    </svg>
  );
}
