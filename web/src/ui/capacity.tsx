/* The healthy nodes of a cluster before, during and after a repair, as bars over all nodes. */
import { count } from "../format";

const LABEL = 48;
const WIDTH = 150;
const LEAST = 4; /* what is out is never thinner */

function Row({ label, healthy, nodes, y }: { label: string; healthy: number; nodes: number; y: number }) {
  const out = Math.max(0, nodes - healthy);
  const gone = out === 0 ? 0 : Math.max(LEAST, (out / Math.max(1, nodes)) * WIDTH);
  return (
    <>
      <text class="capl" x="0" y={y + 9}>
        {label}
      </text>
      <rect class="cap1" x={LABEL} y={y} width={Math.max(0, WIDTH - gone)} height="10" />
      {gone > 0 && <rect class="cap0" x={LABEL + WIDTH - gone} y={y} width={gone} height="10" />}
      <text class="capn" x={LABEL + WIDTH + 8} y={y + 9}>
        {count(healthy)} of {count(nodes)}
      </text>
    </>
  );
}

export interface CapacityProps {
  before: number;
  during: number;
  after: number;
  nodes: number;
}

export function Capacity({ before, during, after, nodes }: CapacityProps) {
  return (
    <svg class="cap" viewBox="0 0 300 48" width="300" height="48" role="img" aria-label={`Healthy nodes: ${count(before)} now, ${count(during)} during the repair, ${count(after)} after it, of ${count(nodes)}`}>
      <Row label="now" healthy={before} nodes={nodes} y={2} />
      <Row label="during" healthy={during} nodes={nodes} y={18} />
      <Row label="after" healthy={after} nodes={nodes} y={34} />
    </svg>
  );
}
