/* A short table that becomes a list of blocks on a phone: what it is first, then each fact with its name, then what can be done. */
import type { JSX } from "preact";
import { narrow } from "../media";
import { Table, type Column } from "./table";

export type ListingProps<T> = Parameters<typeof Table<T>>[0];

/** The first column names the row; a column with the key "do" holds its buttons. */
export function Listing<T>(props: ListingProps<T>): JSX.Element {
  if (!narrow.value) {
    return <Table {...props} />;
  }
  const [title, ...rest] = props.columns as [Column<T>, ...Column<T>[]];
  const facts = rest.filter((column) => column.key !== "do");
  const actions = rest.find((column) => column.key === "do");
  return (
    <ul class="rows blocks" aria-label={props.name}>
      {props.rows.map((row) => {
        const buttons = actions?.cell(row);
        return (
          <li key={props.rowKey(row)} class={props.rowClass?.(row)}>
            {title.cell(row)}
            <dl>
              {facts.map((column) => (
                <div key={column.key} class={column.class?.includes("brk") ? "whole" : undefined}>
                  <dt>{column.head}</dt>
                  <dd>{column.cell(row)}</dd>
                </div>
              ))}
            </dl>
            {buttons && <div class="row8">{buttons}</div>}
          </li>
        );
      })}
    </ul>
  );
}
