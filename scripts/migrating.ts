// Regenerates what each importer cannot do in docs/migrating.md from the lists beside the importers; the text around them stays.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { importSources } from "../src/import/programs.ts";

const root = join(import.meta.dir, "..");

interface Gap {
  /** What of the source. */
  readonly part: string;
  /** `closed`: its routes respond 503; `changed`: imported with a difference. */
  readonly result: "closed" | "omitted" | "changed";
  readonly why: string;
}

export const gapsOf = (program: string): readonly Gap[] =>
  JSON.parse(readFileSync(join(root, `src/import/${program}/gaps.json`), "utf8")) as readonly Gap[];

function tableOf(program: string): string {
  const rows = gapsOf(program).map(({ part, result, why }) => `| ${part} | ${result} | ${why} |`);
  return [
    "| What is not converted | Result | What that means |",
    "| --- | --- | --- |",
    ...rows,
  ].join("\n");
}

/** `page` with the current lists. */
export function withGaps(page: string): string {
  let made = page;
  for (const program of importSources) {
    const [begin, end] = [`<!-- gaps ${program} -->`, `<!-- /gaps ${program} -->`];
    const [before, rest] = made.split(begin);
    const after = rest?.split(end)[1];
    if (before === undefined || after === undefined)
      throw new Error(`docs/migrating.md: ${begin} or ${end} is missing`);
    made = `${before}${begin}\n\n${tableOf(program)}\n\n${end}${after}`;
  }
  return made;
}

if (import.meta.main) {
  const path = join(root, "docs/migrating.md");
  writeFileSync(path, withGaps(readFileSync(path, "utf8")));
}
