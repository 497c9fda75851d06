/* Dialogs that the address names: ?do=what&id=of, so that a link opens them and Back closes them. */
import { query, setQuery } from "../router";
import { may } from "../session";
import { rolesWith } from "./roles";

/** The dialog that the address asks for, and the thing that it is about. */
export function asked(): { what: string | null; id: string | null } {
  return { what: query.value.get("do"), id: query.value.get("id") };
}

export function ask(what: string, id: string | null = null): void {
  setQuery({ do: what, id }, { replace: false });
}

export function askNothing(): void {
  setQuery({ do: null, id: null });
}

/** Why a control that needs a permission is off, or null. */
export function lacks(permission: string): string | null {
  return may(permission) ? null : `It needs the role ${rolesWith(permission)}.`;
}
