// Keeps docs/benchmarks.md: each benchmark replaces its own section and leaves the other one as it was.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const HEAD = `# Benchmarks

Written by \`make bench\`, \`make bench-scale\`, \`make bench-fleet\`, \`make bench-counters\` and \`make bench-cache\`. The figures hold for the
machine that is named with them; compare only ratios with those of another one.
`;

const SECTIONS = [
  ...(["comparison", "streams", "content", "access-log", "grpc", "own-plugins", "scale"] as const),
  ...(["fleet", "fleet-simulation", "counters", "cache"] as const),
] as const;

export interface Section {
  readonly name: (typeof SECTIONS)[number];
  readonly text: string;
}

/** Writes one section between its two markers. */
export function writeSection(file: string, section: Section): void {
  const page = existsSync(file) ? readFileSync(file, "utf8") : "";
  writeFileSync(file, replaceSection(page, section));
}

/** The page with one section replaced; sections always stand in the same order. */
export function replaceSection(page: string, section: Section): string {
  const parts = SECTIONS.map((name) => {
    const text = name === section.name ? section.text : readSection(page, name);
    return text === undefined ? "" : `\n<!-- ${name} -->\n\n${text.trim()}\n\n<!-- /${name} -->\n`;
  });
  return HEAD + parts.join("");
}

function readSection(page: string, name: string): string | undefined {
  return new RegExp(`<!-- ${name} -->([\\s\\S]*?)<!-- /${name} -->`).exec(page)?.[1];
}
