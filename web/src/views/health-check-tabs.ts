/* What Settings > Health checks holds. */
import type { Tab } from "../ui/page";

const TABS: readonly [path: string, label: string][] = [["", "Checks"], ["own", "Own checks"]];

export function checkTabs(current: string): Tab[] {
  return TABS.map(([path, label]) => ({ href: path ? `/settings/checks/${path}` : "/settings/checks", label, current: path === current }));
}
