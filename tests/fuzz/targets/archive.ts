// Archives of set-ups: what is written is read back, and changed bytes are read or refused, within the limits.
import fc from "fast-check";
import { gzipSync } from "node:zlib";
import { unpacked } from "../../../src/import/set-up/archive.ts";
import type { SourceTree } from "../../../src/import/set-up/tree.ts";
import { ApiError } from "../../../src/model/error.ts";
import { tarOf, zipOf } from "../../support/set-up-files.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Input {
  readonly files: readonly { readonly name: string; readonly content: Uint8Array }[];
  readonly form: "tar" | "tar.gz" | "zip" | "stored";
  readonly changes: readonly { readonly at: number; readonly byte: number }[];
}

const LIMITS = { entries: 5, bytes: 2000, depth: 4 };

const step = fc.constantFrom("a", "b.conf", "ä", "..", ".", "", "long".repeat(20));

export const target = defineTarget<Input>({
  name: "archive",
  share: 20,
  inputs: fc.record({
    files: fc.array(
      fc.record({
        name: fc.array(step, { minLength: 1, maxLength: 6 }).map((steps) => steps.join("/")),
        content: fc.uint8Array({ maxLength: 700 }),
      }),
      { maxLength: 7 },
    ),
    form: fc.constantFrom("tar", "tar.gz", "zip", "stored"),
    changes: fc.array(fc.record({ at: fc.nat(4000), byte: fc.nat(255) }), { maxLength: 3 }),
  }),
  check({ files: given, form, changes }) {
    // A name of tar has 100 bytes.
    const isTar = form.startsWith("tar");
    const files = given.filter(
      ({ name }) => !isTar || new TextEncoder().encode(name).length <= 100,
    );
    const whole = pack(form, files);
    for (const { at, byte } of changes) if (at < whole.byteLength) whole[at] = byte;
    let tree: SourceTree | null;
    try {
      tree = unpacked(whole, LIMITS);
    } catch (error) {
      must(error instanceof ApiError, "an error that is none of the archive");
      return;
    }
    if (tree === null) return;
    const paths = tree.paths();
    must(paths.length <= LIMITS.entries, "more entries");
    const total = paths.reduce((sum, path) => sum + (tree.read(path)?.byteLength ?? 0), 0);
    must(total <= LIMITS.bytes, "more bytes");
    for (const path of paths) {
      const steps = path.split("/");
      must(steps.length <= LIMITS.depth, "deeper");
      must(!steps.some((one) => one === ".." || one === "" || one === "."), "a path outside");
    }
    if (changes.length > 0) return;
    const read = paths.map((path) => [...(tree.read(path) ?? [])]);
    const written = files
      .filter(({ name }) => !name.endsWith("/") && clean(name) !== "")
      .map(({ name, content }) => [clean(name), [...content]] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
    mustEqual(
      paths.map((path, at) => [path, read[at]]),
      written,
      "files",
    );
  },
});

const clean = (name: string): string =>
  name
    .split("/")
    .filter((one) => one !== "" && one !== ".")
    .join("/");

function pack(form: Input["form"], files: Input["files"]): Uint8Array {
  if (form === "zip" || form === "stored") return zipOf(files, { stores: form === "stored" });
  const tar = tarOf(files);
  return form === "tar" ? tar : new Uint8Array(gzipSync(tar));
}
