import type { Server } from "node:http";
export const CSP: string;
export function createMock(options?: { dist?: string | null; sampleMs?: number; now?: number }): Server;
