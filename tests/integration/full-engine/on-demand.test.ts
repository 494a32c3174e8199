// A gateway that does not use the full engine does not load it.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

describe("Node's HTTP/2", () => {
  test("is imported by no source file, so that no thread loads it at its start", () => {
    const root = join(import.meta.dir, "../../../src");
    const transpilers = {
      ts: new Bun.Transpiler({ loader: "ts" }),
      tsx: new Bun.Transpiler({ loader: "tsx" }),
    };
    const importers = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(root)].filter((path) => {
      if (path.endsWith(".d.ts")) return false;
      const transpiler = transpilers[path.endsWith("x") ? "tsx" : "ts"];
      const imports = transpiler.scanImports(readFileSync(join(root, path), "utf8"));
      return imports.some((entry) => /^(?:node:)?http2$/.test(entry.path));
    });
    expect(importers).toEqual([]);
  });

  test("is loaded by the first HTTP/2 connection of a listener with the full engine", async () => {
    const worker = new Worker(new URL("./loaded-modules.ts", import.meta.url));
    const told = await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent) => resolve(data);
      worker.onerror = reject;
    });
    worker.terminate();
    expect(told).toEqual({
      answer: "hello",
      body: "hello",
      whenStarted: false,
      whenServed: false,
      whenBound: false,
      whenUsed: true,
    });
  });
});
