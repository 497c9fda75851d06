/* The incident report as one HTML file that needs nothing else: made from the Markdown that the server writes. */

function escaped(text: string): string {
  return text.replace(/\\([!-/:-@[-`{-~])/g, "$1").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

const STYLE =
  "body{max-width:60rem;margin:2rem auto;padding:0 1rem;font:14px/1.5 system-ui,sans-serif;color:#14181d}h1{font-size:20px}h2{margin-top:2rem;font-size:15px}" +
  "table{border-collapse:collapse}td{padding:2px 16px 2px 0;border-bottom:1px solid #e3e6e9}td:last-child{text-align:right}pre{padding:8px 12px;background:#f6f7f8;white-space:pre-wrap}ul{padding-left:1.2rem}";

type Kind = "table" | "list" | "code" | "text";

function kindOf(line: string): Kind {
  return line.startsWith("|") ? "table" : line.startsWith("- ") ? "list" : line.startsWith("    ") ? "code" : "text";
}

function block(kind: Kind, lines: string[]): string {
  switch (kind) {
    case "table":
      return `<table>${lines
        .filter((line) => !/^[|:\- ]+$/.test(line))
        .map((line) => `<tr>${line.split("|").slice(1, -1).map((cell) => `<td>${escaped(cell.trim())}</td>`).join("")}</tr>`)
        .join("")}</table>`;
    case "list":
      return `<ul>${lines.map((line) => `<li>${escaped(line.slice(2))}</li>`).join("")}</ul>`;
    case "code":
      return `<pre>${lines.map((line) => escaped(line.slice(4))).join("\n")}</pre>`;
    default:
      return lines.map((line) => (line.startsWith("## ") ? `<h2>${escaped(line.slice(3))}</h2>` : line.startsWith("# ") ? `<h1>${escaped(line.slice(2))}</h1>` : `<p>${escaped(line)}</p>`)).join("\n");
  }
}

/** Headings, tables, lists, indented lines and paragraphs: all that the report is made of. Whatever else is shown as text. */
export function reportHtml(markdown: string, title: string): string {
  const blocks: string[] = [];
  let kind: Kind = "text";
  let lines: string[] = [];
  const flush = () => {
    if (lines.length > 0) {
      blocks.push(block(kind, lines));
    }
    lines = [];
  };
  for (const line of markdown.split("\n")) {
    if (line.trim() === "") {
      flush();
      continue;
    }
    if (kindOf(line) !== kind) {
      flush();
      kind = kindOf(line);
    }
    lines.push(line);
  }
  flush();
  return `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title><style>${STYLE}</style></head><body>\n${blocks.join("\n")}\n</body></html>\n`;
}
