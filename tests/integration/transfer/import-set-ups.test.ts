// Whole set-ups of other programs, imported by the command and by the API: a folder, an archive, a form; hostile ones change nothing.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { entriesOf, tarOf, zipOf } from "../../support/set-up-files.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-set-up-"));
const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("here") });
let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
});
afterAll(async () => {
  await gateway.stop();
  await origin.stop(true);
  rmSync(directory, { recursive: true, force: true });
});

/** Names begin with `prefix`, so that tests do not share hosts. */
const traefik = (prefix: string): Record<string, string> => ({
  "traefik.yml": `
entryPoints:
  web: { address: ":80", http: { middlewares: ["from@file", "auth@file"] } }
providers: { file: { directory: /etc/traefik/dynamic } }
`,
  [`dynamic/${prefix}.yml`]: `
http:
  routers:
    ${prefix}: { rule: "Host(\`${prefix}.test\`)", entryPoints: [web], service: ${prefix} }
  services:
    ${prefix}: { loadBalancer: { servers: [{ url: "http://127.0.0.1:${origin.port}" }] } }
`,
  // a:right
  "dynamic/auth.yml":
    'http: { middlewares: { from: { headers: { customResponseHeaders: { X-From: traefik } } }, auth: { basicAuth: { users: ["a:{SHA}0nofEXcSAJSXFLGvmfBIpBb11vQ="] } } } }',
});

const status = async (host: string, headers: Record<string, string> = {}) =>
  (
    await fetch(`http://127.0.0.1:${gateway.httpPort}/`, {
      headers: { host, ...headers },
      redirect: "manual",
    })
  ).status;

async function isProtected(host: string): Promise<void> {
  const isAsked = async () => {
    const answer = await fetch(`http://127.0.0.1:${gateway.httpPort}/`, { headers: { host } });
    return answer.status === 401 && answer.headers.get("x-from") === "traefik";
  };
  // What the source sets on its own errors is on those of the gateway.
  await eventually(isAsked, { deadlineMs: 20_000 });
  await eventually(async () => (await status(host)) === 401);
  expect(await status(host, { authorization: `Basic ${btoa("a:wrong")}` })).toBe(401);
  expect(await status(host, { authorization: `Basic ${btoa("a:right")}` })).toBe(200);
}

const post = (body: Uint8Array | FormData, from: string): Promise<Response> =>
  fetch(`${gateway.admin}/api/v1/import?from=${from}`, {
    method: "POST",
    body: body instanceof FormData ? body : new Uint8Array(body),
  });

test("the command imports a folder, of whichever program it is", async () => {
  for (const [path, content] of Object.entries(traefik("folder"))) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
  const result = await runCommand(["import", directory], { env: { SLUICE_URL: gateway.admin } });
  expect([result.code, result.stderr]).toEqual([0, ""]);
  expect(result.stdout).toMatch(
    /^folder\.test {2}imported\n\d+ not imported, \d+ imported with differences: --details lists them\n\d+ created/,
  );
  await isProtected("folder.test");
});

test("the command imports an archive", async () => {
  const file = join(directory, "set-up.tar.gz");
  writeFileSync(file, gzipSync(tarOf(entriesOf(traefik("packed")))));
  const result = await runCommand(["import", file], { env: { SLUICE_URL: gateway.admin } });
  expect([result.code, result.stderr]).toEqual([0, ""]);
  await isProtected("packed.test");
});

test("the API imports an archive, and a form", async () => {
  const zip = await post(zipOf(entriesOf(traefik("zip"))), "auto");
  expect([zip.status, await zip.json()]).toEqual([
    200,
    expect.objectContaining({ report: expect.any(Array) }),
  ]);
  await isProtected("zip.test");
  const form = new FormData();
  for (const [path, content] of Object.entries(traefik("form")))
    form.append("file", new Blob([content]), path);
  expect((await post(form, "traefik")).status).toBe(200);
  await isProtected("form.test");
});

test.each([
  ["a link", tarOf([...entriesOf(traefik("a")), { name: "etc", type: "2" }]), "is a link"],
  ["a path out of it", zipOf([{ name: "../a.yml", content: "http: {}" }]), "leads out"],
  [
    "a million entries",
    zipOf(Array.from({ length: 65_000 }, (_, at) => ({ name: `${at}.yml` }))),
    "more than 10000 entries",
  ],
  ["a bomb", gzipSync(new Uint8Array(200_000_000)), "larger than"],
  [
    "a bomb of YAML",
    zipOf([
      {
        name: "a.yml",
        content: `http: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n${Array.from(
          { length: 9 },
          (_, at) => `k${at}: &k${at} [${Array(9).fill(`*${at === 0 ? "b" : `k${at - 1}`}`)}]`,
        ).join("\n")}`,
      },
    ]),
    "excessive aliasing",
  ],
  [
    "a text in another encoding",
    zipOf([{ name: "a.yml", content: new Uint8Array([0xff, 0xfe, 0x68]) }]),
    "not valid UTF-8",
  ],
] as const)(
  "%s: one sentence, nothing changes, and the API answers meanwhile",
  async (_, bytes, says) => {
    const before = await gateway.ok("GET", "/api/v1/routes");
    const sent = post(bytes, "traefik");
    const meanwhile = await fetch(`${gateway.admin}/readyz`);
    expect(meanwhile.status).toBe(200);
    const answer = await sent;
    const { error } = (await answer.json()) as { error: string };
    expect([400, 413]).toContain(answer.status);
    expect(error).toContain(says);
    expect(error.split("\n")).toHaveLength(1);
    expect(await gateway.ok("GET", "/api/v1/routes")).toEqual(before);
  },
);
