// Draws the badges of the README from package.json; run it with `make docs`. It uses no network.
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly packageManager: string;
}

/** Name and content of the file. */
export const badgesOf = (manifest: Manifest): ReadonlyMap<string, string> =>
  new Map([
    ["version.svg", draw("version", manifest.version)],
    ["licence.svg", draw("licence", manifest.license)],
    ["bun.svg", draw("runs on", manifest.packageManager.replace("bun@", "Bun "))],
  ]);

/** Pixels, for a sans-serif font of size 11; `textLength` squeezes longer texts. */
const widthOf = (text: string) => Math.round(text.length * 6.4) + 12;

function draw(label: string, value: string): string {
  const left = widthOf(label);
  const right = widthOf(value);
  const text = (words: string, { at, width }: { at: number; width: number }) =>
    `<text x="${at + width / 2}" y="14" textLength="${width - 12}">${words}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${value}">
<title>${label}: ${value}</title>
<clipPath id="c"><rect width="${left + right}" height="20" rx="3"/></clipPath>
<g clip-path="url(#c)"><rect width="${left}" height="20" fill="#444"/><rect x="${left}" width="${right}" height="20" fill="#1a6fa5"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">${text(label, { at: 0, width: left })}${text(value, { at: left, width: right })}</g>
</svg>
`;
}

if (import.meta.main) {
  const root = resolve(import.meta.dir, "..");
  const out = join(root, "docs/images/badges");
  await mkdir(out, { recursive: true });
  const manifest = (await Bun.file(join(root, "package.json")).json()) as Manifest;
  for (const [name, svg] of badgesOf(manifest)) await Bun.write(join(out, name), svg);
}
