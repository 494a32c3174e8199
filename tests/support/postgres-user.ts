// Runs servers that refuse to be root as the user of the Debian package.
import { chownSync } from "node:fs";
import { pathOf } from "./needs.ts";

const isRoot = process.getuid?.() === 0;

/** The command that runs `program` as that user, when the tests run as root. */
export function asPostgres(program: string, ...words: string[]): string[] {
  const path = pathOf(program) ?? program;
  const prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"];
  return [...(isRoot ? prefix : []), path, ...words];
}

/** Makes that user the owner of a file or directory. */
export function giveToPostgres(path: string): void {
  if (!isRoot) return;
  const id = Number(Bun.spawnSync(["id", "-u", "postgres"]).stdout.toString().trim());
  chownSync(path, id, id);
}
