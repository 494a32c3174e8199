// Secrets that are unique to one run of a test, and the places where traces of them are looked for.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Values that must not appear anywhere, by what they are. */
export class Canaries {
  readonly #values = new Map<string, string>();

  /** A new text to plant. */
  make(what: string): string {
    return this.keep(what, `Canary-${crypto.randomUUID()}`);
  }

  /** Takes down a value that the gateway made. */
  keep(what: string, value: string): string {
    this.#values.set(what, value);
    return value;
  }

  get size(): number {
    return this.#values.size;
  }

  /** What is found in a place, in whatever spelling: `value of a secret (base64) in sluice.db`. */
  traces(place: string, content: string | Uint8Array): string[] {
    const bytes = Buffer.from(content);
    return [...this.#values].flatMap(([what, value]) =>
      [...spellings(value)]
        .filter(([, spelling]) => bytes.includes(spelling))
        .map(([name]) => `${what} (${name}) in ${place}`),
    );
  }
}

function spellings(value: string): Map<string, string> {
  const bytes = Buffer.from(value);
  return new Map([
    ["as it is", value],
    ["URL", encodeURIComponent(value)],
    ["base64", bytes.toString("base64").replace(/=+$/, "")],
    ["base64url", bytes.toString("base64url")],
    ["hexadecimal", bytes.toString("hex")],
  ]);
}

/** Contents of all files below a directory, by their path. */
export function filesIn(directory: string): Map<string, Uint8Array> {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => statSync(join(directory, name)).isFile());
  return new Map(files.map((name) => [name, new Uint8Array(readFileSync(join(directory, name)))]));
}
