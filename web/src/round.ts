/* Round numbers for axes. */

/** A round number at or above n for the top of the axis. */
export function roundTop(n: number): number {
  if (n <= 0) {
    return 1;
  }
  const unit = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 4, 5, 8, 10].map((m) => m * unit).find((m) => m >= n) ?? 10 * unit;
}
