// Regenerates the table of phases in docs/request-life.md from src/dataplane/request/phases.ts; the text around it stays.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { phases } from "../src/dataplane/request/phases.ts";

const BEGIN = "<!-- phases -->";
const END = "<!-- /phases -->";

/** The table between its marks. */
export function phaseTable(): string {
  const head =
    "| phase | what runs | what may end the request | what it may change | file |\n| --- | --- | --- | --- | --- |";
  const rows = phases.map(
    ({ name, runs, ends, changes, file, isForPlugins }) =>
      `| ${isForPlugins ? `\`${name}\` (plugins)` : name} | ${runs} | ${ends} | ${changes} | \`${file}\` |`,
  );
  return [head, ...rows].join("\n");
}

/** `page` with the current table. */
export function withPhases(page: string): string {
  const [before = "", rest = ""] = page.split(BEGIN);
  const after = rest.split(END)[1] ?? "";
  return `${before}${BEGIN}\n\n${phaseTable()}\n\n${END}${after}`;
}

if (import.meta.main) {
  const path = join(import.meta.dir, "../docs/request-life.md");
  writeFileSync(path, withPhases(readFileSync(path, "utf8")));
}
