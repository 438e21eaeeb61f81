/** What all pictures share: escaped text, and the fonts that every system has. Pure. */

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (found) => ENTITIES[found] ?? "");

export const MONOSPACE = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace";
export const SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',Arial,sans-serif";

/** At most two digits after the point: a picture needs no more, and its file is smaller. */
export const round = (value: number): string => String(Math.round(value * 100) / 100);

export interface Described {
  /** Shown by screen readers, and by a browser under the pointer. */
  title: string;
  width: number;
  height: number;
  css: string;
  body: string;
}

/** A picture that loads nothing from elsewhere. */
export function svgOf({ title, width, height, css, body }: Described): string {
  const size = `width="${round(width)}" height="${round(height)}" viewBox="0 0 ${round(width)} ${round(height)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${css}</style>`,
    body,
    "</svg>",
    "",
  ].join("\n");
}
