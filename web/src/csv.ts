/* Tables as comma-separated values (RFC 4180). */

/** A cell that begins like a formula is made plain text, since spreadsheets would run it. */
export function csvCell(value: string | number | boolean | null): string {
  if (value === null || value === undefined) {
    return "";
  }
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
