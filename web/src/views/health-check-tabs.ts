/* What Settings > Health checks holds. */
import type { Tab } from "../ui/page";

const TABS: readonly [path: string, label: string][] = [["", "Checks"]];

export function checkTabs(current: string): Tab[] {
  return TABS.length > 1 ? TABS.map(([path, label]) => ({ href: path ? `/settings/checks/${path}` : "/settings/checks", label, current: path === current })) : [];
}
