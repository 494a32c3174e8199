// `sluice version --check` against scripted servers: what it sends, what it says, and that it asks only with the flag.
import { expect, test } from "bun:test";
import manifest from "../../../package.json" with { type: "json" };
import { runCommand } from "../../support/gateway.ts";

const PAGE = "https://example.com/releases/v99.0.0";

async function check(
  respond: (request: Request) => Response,
  words: readonly string[] = ["--check"],
) {
  const requests: string[] = [];
  await using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      requests.push(`${request.method} ${request.headers.get("user-agent")}`);
      return respond(request);
    },
  });
  const env = { SLUICE_RELEASES_URL: `http://127.0.0.1:${server.port}/latest` };
  return { ...(await runCommand(["version", ...words], { env })), requests };
}

const release = (tag_name: unknown, html_url: unknown = PAGE) =>
  Response.json({ tag_name, html_url });

test("a newer release is exit code 3, with its page", async () => {
  const { code, stdout, requests } = await check(() => release("v99.0.0"));
  expect([code, stdout]).toEqual([
    3,
    expect.stringContaining(`sluice 99.0.0 is available: ${PAGE}\n`),
  ]);
  expect(requests).toEqual(["GET sluice"]);
});

test.each([manifest.version, `v${manifest.version}`, "v0.0.1", `v${manifest.version}-rc.1`])(
  "%s is not newer",
  async (tag) => {
    const { code, stdout } = await check(() => release(tag));
    expect([code, stdout]).toEqual([0, expect.stringContaining("there is no newer release")]);
  },
);

test("both are one JSON object on request", async () => {
  const own = { version: manifest.version, bun: Bun.version, arch: process.arch };
  const plain = await check(() => release("v99.0.0"), ["--output", "json"]);
  expect([plain.code, JSON.parse(plain.stdout)]).toEqual([0, expect.objectContaining(own)]);
  const words = ["--check", "--output", "json"];
  const newer = await check(() => release("v99.0.0"), words);
  expect([newer.code, JSON.parse(newer.stdout)]).toEqual([
    3,
    expect.objectContaining({ ...own, newest: "99.0.0", is_newer: true }),
  ]);
});

test("no request is sent without --check", async () => {
  const { code, requests } = await check(() => release("v99.0.0"), []);
  expect([code, requests.length]).toEqual([0, 0]);
});

test.each([
  ["a status", () => new Response("", { status: 403 }), "it returned 403"],
  ["a redirect", () => Response.redirect("http://127.0.0.1:1/"), "does not say"],
  [
    "a response that is too large",
    () => new Response("x".repeat(1_048_577)),
    "more than 1048576 bytes",
  ],
  ["no JSON", () => new Response("<html>"), "no version in tag_name"],
  ["null", () => new Response("null"), "no version in tag_name"],
  ["a tag that is no version", () => release("v1.0.0\u001b[2J"), "no version in tag_name"],
])("%s is exit code 1", async (_, respond, says) => {
  const { code, stdout, stderr } = await check(respond);
  expect([code, stderr]).toEqual([1, expect.stringContaining(says)]);
  expect(stdout).not.toContain("\u001b");
});

test("a page that is no https address is not shown, and control characters are encoded", async () => {
  const plain = await check(() => release("99.0.0", "javascript:alert(1)"));
  expect(plain.stdout).toEndWith("sluice 99.0.0 is available\n");
  const encoded = await check(() => release("99.0.0", "https://example.com/\u001b[2J"));
  expect(encoded.stdout).toEndWith("available: https://example.com/%1B[2J\n");
});

test.each([
  [["--check"], {}, "give --releases-url URL"],
  [
    ["--check", "--releases-url", "file:///etc/passwd"],
    {},
    "must be an http:// or https:// address",
  ],
])("%j is a usage error", async (words, env, says) => {
  const { code, stderr } = await runCommand(["version", ...words], { env });
  expect([code, stderr]).toEqual([2, expect.stringContaining(says)]);
});
