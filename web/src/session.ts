/* Who is signed in, in which org, and what they may do. The server decides; this only explains. */
import { computed, signal } from "@preact/signals";
import { ApiError, get, request, signedOut } from "./api";
import { navigate } from "./router";
import { forgetAll } from "./store";
import type { Me, Session } from "./types";

export const me = signal<Me | null>(null);
export const meError = signal<ApiError | null>(null);

export const mayWrite = computed(() => new Set(me.value?.permissions ?? []));

export function may(permission: string): boolean {
  return mayWrite.value.has(permission);
}

export async function loadMe(): Promise<void> {
  try {
    me.value = await get<Me>("/me");
    meError.value = null;
    signedOut.value = false;
  } catch (cause) {
    me.value = null;
    meError.value = cause instanceof ApiError && cause.status !== 401 ? cause : null;
  }
}

export async function signIn(token: string): Promise<Session> {
  const answer = await request<Session>("POST", "/session", { body: { token } });
  signOutError.value = null;
  await loadMe();
  return answer.data as Session;
}

export async function switchOrg(orgId: string): Promise<void> {
  await request<Session>("PUT", "/session", { body: { org_id: orgId } });
  forgetAll();
  navigate("/clusters");
  await loadMe();
}

/** Why the server did not take the last sign-out: the session may go on. */
export const signOutError = signal<ApiError | null>(null);

/** Signs out here, and where the identity provider has a page for it, there too. */
export async function signOut(): Promise<void> {
  signOutError.value = null;
  let there: string | null = null;
  try {
    there = (await request<{ url: string | null }>("POST", "/auth/sign-out", { outside: true, body: {} })).data?.url ?? null;
  } catch (cause) {
    const error = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    signOutError.value = error.status === 401 ? null : error;
  }
  forgetAll();
  me.value = null;
  signedOut.value = true;
  if (there) {
    location.assign(there);
    return;
  }
  navigate("/sign-in");
}
