// A copy of the sources to add something to: counts the files that this touches, and runs the result.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../..");
const COPIED = ["src", "drizzle", "scripts", "package.json", "tsconfig.json", "bunfig.toml"];

export class ScratchTree {
  readonly path = mkdtempSync(join(tmpdir(), "sluice-scratch-"));
  #touched = new Set<string>();

  constructor() {
    for (const name of COPIED) cpSync(join(root, name), join(this.path, name), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(this.path, "node_modules"));
  }

  /** The files that `change` writes, in the order of their names. */
  touchedBy(change: () => void): readonly string[] {
    this.#touched = new Set();
    change();
    return [...this.#touched].toSorted();
  }

  add(file: string, text: string): void {
    this.#touched.add(file);
    writeFileSync(join(this.path, file), text);
  }

  /** Replaces the only occurrence of each text. */
  edit(file: string, replacements: readonly (readonly [before: string, after: string])[]): void {
    let text = readFileSync(join(this.path, file), "utf8");
    for (const [before, after] of replacements) {
      if (text.split(before).length !== 2) throw new Error(`${file} has not one ${before}`);
      text = text.replace(before, () => after);
    }
    this.add(file, text);
  }

  /** Runs a program in the tree; throws with its output when it fails. */
  run(...command: string[]): string {
    const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: this.path });
    if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stdout}${stderr}`);
    return stdout.toString();
  }

  /** Throws with the first type errors. */
  checkTypes(): void {
    this.run(process.execPath, "check");
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
