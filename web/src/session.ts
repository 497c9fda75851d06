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
  await loadMe();
  return answer.data as Session;
}

export async function switchOrg(orgId: string): Promise<void> {
  await request<Session>("PUT", "/session", { body: { org_id: orgId } });
  forgetAll();
  navigate("/clusters");
  await loadMe();
}

export async function signOut(): Promise<void> {
  try {
    await request("DELETE", "/session");
  } finally {
    forgetAll();
    me.value = null;
    signedOut.value = true;
    navigate("/sign-in");
  }
}
