export function firstLoad(folder?: string): { name: string; bytes: number }[];
