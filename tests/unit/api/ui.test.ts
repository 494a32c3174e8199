// How the files of the web UI are served: only names of the manifest, negotiated Content-Encoding, Cache-Control.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { createUi } from "../../../src/api/ui.ts";

const PAGE = "<!doctype html><title>Sluice</title>";

function withUi<T>(run: (ui: ReturnType<typeof createUi>) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-ui-"));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, `${name}.zst`), zstdCompressSync(text));
    return { zstd: join(folder, `${name}.zst`), tag: name };
  };
  const files = { "index.html": file("index.html", PAGE), "a-1.js": file("a-1.js", "run()") };
  return run(createUi(async () => files)).finally(() => rmSync(folder, { recursive: true }));
}

const request = (headers: Record<string, string> = {}) =>
  new Request("http://localhost/", { headers });

test.each([
  { accepts: "gzip, zstd", coding: "zstd" as const },
  { accepts: "gzip, br", coding: "gzip" as const },
  { accepts: "zstd;q=0, gzip;q=0.5", coding: "gzip" as const },
  { accepts: "gzip;q=0", coding: null },
  { accepts: "", coding: null },
])("the content coding is one that the client accepts: $accepts", async ({ accepts, coding }) => {
  await withUi(async (ui) => {
    const { headers, ...response } = await ui
      .asset(request({ "accept-encoding": accepts }), "a-1.js")
      .then(async (answer) => ({ headers: answer.headers, bytes: await answer.bytes() }));
    expect(headers.get("content-encoding")).toBe(coding);
    expect(headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(headers.get("vary")).toBe("accept-encoding");
    const decoded = { zstd: Bun.zstdDecompressSync, gzip: Bun.gunzipSync, none: Buffer.from };
    const text = decoded[coding ?? "none"](response.bytes);
    expect(new TextDecoder().decode(text)).toBe("run()");
  });
});

test("clients revalidate the HTML each time and get 304 when it is unchanged", async () => {
  await withUi(async (ui) => {
    const page = await ui.page(request());
    expect(await page.text()).toBe(PAGE);
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const etag = page.headers.get("etag") ?? "";
    expect((await ui.page(request({ "if-none-match": etag }))).status).toBe(304);
    expect((await ui.page(request({ "if-none-match": '"other"' }))).status).toBe(200);
  });
});

test.each(["nope.js", "index.html", "../index.html", "__proto__", "constructor", ""])(
  "a path outside the manifest is not served: %s",
  async (name) => {
    await withUi(async (ui) => {
      expect(ui.asset(request(), name)).rejects.toThrow("there is no such path");
    });
  },
);

test("without a built UI the page says so and leads to the reference", async () => {
  const ui = createUi(async () => null);
  const page = await ui.page(request());
  expect(page.status).toBe(200);
  expect(await page.text()).toContain('href="/docs"');
  expect(ui.asset(request(), "a-1.js")).rejects.toThrow("there is no such path");
});
