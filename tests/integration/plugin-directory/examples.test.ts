// The example plugins as users run them: read from a directory by a real gateway, in front of a real origin.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { countryDatabase } from "../../support/mmdb.ts";
import { eventually } from "../../support/poll.ts";

const source = resolve(import.meta.dir, "../../../examples/plugins");
const names = readdirSync(source)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.slice(0, -3));
const directory = mkdtempSync(join(tmpdir(), "sluice-examples-"));
const received: { readonly url: URL; readonly headers: Headers; readonly body: string }[] = [];
let respond: (url: URL) => Response = () => new Response("ok");
let gateway: Gateway;

const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const url = new URL(request.url);
    received.push({ url, headers: request.headers, body: await request.text() });
    return respond(url);
  },
});

beforeAll(async () => {
  // A checkout may be writable for a group.
  cpSync(source, join(directory, "plugins"), { recursive: true });
  gateway = await startGateway({ args: ["--plugins-dir", join(directory, "plugins")] });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  for (const name of ["web", "other"])
    await gateway.ok("POST", "/api/v1/services", { name, targets });
  for (const name of names)
    await gateway.ok("POST", "/api/v1/routes", {
      name,
      service_id: "web",
      hosts: [`${name}.test`],
    });
});
afterAll(async () => {
  await gateway?.stop();
  await origin.stop(true);
  rmSync(directory, { recursive: true, force: true });
});

/** Sends a request to the route of a plugin. */
const send = (name: string, path = "/", init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
    redirect: "manual",
    ...init,
    headers: { Host: `${name}.test`, ...(init.headers as Record<string, string>) },
  });
const use = (name: string, config: object) =>
  gateway.ok("POST", "/api/v1/plugins", { name, route_id: name, config });
const last = () => received.at(-1);

test("all of them are listed beside the built-in ones", async () => {
  const listed: { name: string }[] = await gateway.ok("GET", "/api/v1/plugins/schemas");
  const present = listed.map((plugin) => plugin.name);
  expect(names).toHaveLength(10);
  for (const name of names) expect(present).toContain(name);
});

test("geo-redirect sends visitors of a country to their site, unless they stay", async () => {
  const country_db = join(directory, "countries.mmdb");
  writeFileSync(country_db, countryDatabase({ "127.0.0.0/8": "DE" }));
  await gateway.ok("PATCH", "/api/v1/settings", { geoip: { country_db } });
  await use("geo-redirect", { sites: [{ countries: ["DE", "AT"], to: "https://de.example.com" }] });
  const moved = await send("geo-redirect", "/a?b=1");
  expect(moved.status).toBe(307);
  expect(moved.headers.get("location")).toBe("https://de.example.com/a?b=1");
  expect((await send("geo-redirect", "/", { headers: { Cookie: "stay=1" } })).status).toBe(200);
});

test("maintenance-by-header lets only testers pass, and hides their key from the target", async () => {
  await use("maintenance-by-header", { value: "open sesame", retry_after: 60 });
  const closed = await send("maintenance-by-header");
  expect([closed.status, closed.headers.get("retry-after")]).toEqual([503, "60"]);
  const headers = { "X-Maintenance-Key": "open sesame" };
  expect((await send("maintenance-by-header", "/", { headers })).status).toBe(200);
  expect(last()?.headers.has("x-maintenance-key")).toBe(false);
  const wrong = { "X-Maintenance-Key": "open sesam" };
  expect((await send("maintenance-by-header", "/", { headers: wrong })).status).toBe(503);
});

test("ab-by-cookie keeps each visitor on a variant", async () => {
  await use("ab-by-cookie", { share_b: 100, service_b: "other" });
  const first = await send("ab-by-cookie", "/", { headers: { "X-Variant": "a" } });
  expect(first.headers.get("set-cookie")).toContain("variant=b; Path=/;");
  expect(last()?.headers.get("x-variant")).toBe("b");
  const again = await send("ab-by-cookie", "/", { headers: { Cookie: "variant=a" } });
  expect(again.headers.has("set-cookie")).toBe(false);
  expect(last()?.headers.get("x-variant")).toBe("a");
});

test("aws-signing signs what the target gets", async () => {
  const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  await use("aws-signing", {
    host: "s3.test",
    region: "eu-central-1",
    service: "s3",
    access_key_id: "AKIDEXAMPLE",
    secret_access_key: secret,
  });
  await send("aws-signing", "/bucket/a%20b?z=1&a=x%2Fy", { method: "PUT", body: "content" });
  const { headers, url, body } = last() as (typeof received)[number];
  expect([headers.get("host"), body, url.pathname]).toEqual([
    "s3.test",
    "content",
    "/bucket/a%20b",
  ]);
  // By hand, as AWS documents it.
  const time = headers.get("x-amz-date") ?? "";
  const hash = createHash("sha256").update("content").digest("hex");
  const canonical = `PUT\n/bucket/a%20b\na=x%2Fy&z=1\nhost:s3.test\nx-amz-content-sha256:${hash}\nx-amz-date:${time}\n\nhost;x-amz-content-sha256;x-amz-date\n${hash}`;
  const scope = `${time.slice(0, 8)}/eu-central-1/s3/aws4_request`;
  const toSign = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${createHash("sha256").update(canonical).digest("hex")}`;
  const key = [...scope.split("/")].reduce<string | Buffer>(
    (before, part) => createHmac("sha256", before).update(part).digest(),
    `AWS4${secret}`,
  );
  const signature = createHmac("sha256", key).update(toSign).digest("hex");
  expect(headers.get("authorization")).toBe(
    `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/${scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=${signature}`,
  );
});

describe("webhook-signature", () => {
  const secret = "It's a Secret to Everybody";
  const post = (header: string, value: string, body = "Hello, World!") =>
    send("webhook-signature", "/hook", { method: "POST", body, headers: { [header]: value } });
  const sign = (text: string) => createHmac("sha256", secret).update(text).digest("hex");

  test("of GitHub, with the example of its documentation", async () => {
    const { id } = await use("webhook-signature", { sender: "github", secret });
    const valid = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    expect((await post("X-Hub-Signature-256", valid)).status).toBe(200);
    expect(last()?.body).toBe("Hello, World!");
    const count = received.length;
    expect((await post("X-Hub-Signature-256", valid, "Hello, World?")).status).toBe(401);
    expect((await post("X-Hub-Signature-256", "sha256=")).status).toBe(401);
    expect((await post("X-Other", valid)).status).toBe(401);
    expect(received).toHaveLength(count);
    await gateway.ok("DELETE", `/api/v1/plugins/${id}`);
  });

  test("of Stripe, whose signatures grow old", async () => {
    await use("webhook-signature", { sender: "stripe", secret });
    const now = Math.floor(Date.now() / 1000);
    const header = (time: number) => `t=${time},v0=00,v1=${sign(`${time}.Hello, World!`)}`;
    expect((await post("Stripe-Signature", header(now))).status).toBe(200);
    expect((await post("Stripe-Signature", header(now - 400))).status).toBe(401);
    expect((await post("Stripe-Signature", `t=${now},v1=${sign("other")}`)).status).toBe(401);
  });
});

test("insert-html changes pages and nothing else", async () => {
  await use("insert-html", { html: "<p>banner</p>", skip_paths: ["/raw"] });
  respond = () =>
    new Response("<html><body>page</body></html>", { headers: { "Content-Type": "text/html" } });
  const page = await send("insert-html");
  expect(await page.text()).toBe("<html><body>page<p>banner</p></body></html>");
  expect(await (await send("insert-html", "/raw")).text()).toBe("<html><body>page</body></html>");
  respond = () => Response.json({ html: "<body></body>" });
  expect(await (await send("insert-html")).json()).toEqual({ html: "<body></body>" });
});

test("image-cache sets what the application forgot, and respects what it said", async () => {
  await use("image-cache", { max_age: 60 });
  const cacheOf = async (path: string, headers: Record<string, string>) => {
    respond = () => new Response("x", { headers });
    return (await send("image-cache", path)).headers.get("cache-control");
  };
  const png = { "Content-Type": "image/png" };
  expect(await cacheOf("/a.png", png)).toBe("public, max-age=60");
  expect(await cacheOf("/app.3f9ac2d1.js", { "Content-Type": "text/javascript" })).toBe(
    "public, max-age=31536000, immutable",
  );
  expect(await cacheOf("/a.png", { ...png, "Cache-Control": "no-store" })).toBe("no-store");
  expect(await cacheOf("/a.png", { ...png, "Set-Cookie": "a=1" })).toBeNull();
  expect(await cacheOf("/a.html", { "Content-Type": "text/html" })).toBeNull();
});

test("slack-notify sends one message for many failures", async () => {
  const messages: string[] = [];
  const slack = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      messages.push(((await request.json()) as { text: string }).text);
      return new Response("ok");
    },
  });
  try {
    await use("slack-notify", {
      webhook: `http://127.0.0.1:${slack.port}/services/T/B/x`,
      interval: 3600,
    });
    respond = () => new Response("broken", { status: 500 });
    for (let time = 0; time < 5; time++) await send("slack-notify", "/private?token=1");
    await eventually(() => messages.length > 0);
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatch(/^500 on slack-notify \(request [0-9a-f-]+\)$/);
  } finally {
    await slack.stop(true);
  }
});

test("openapi-mock responds with examples, and leaves the rest to the target", async () => {
  const operation = {
    responses: {
      200: { content: { "application/json": { example: { id: 1 } } } },
      404: { content: { "text/plain": { examples: { none: { value: "no such pet" } } } } },
    },
  };
  const description = JSON.stringify({
    paths: { "/pets/{id}": { get: operation }, "/pets/mine": { get: { responses: { 204: {} } } } },
  });
  await use("openapi-mock", { description, base_path: "/v1" });
  respond = () => new Response("from the target");
  const pet = await send("openapi-mock", "/v1/pets/7");
  expect([pet.status, await pet.json()]).toEqual([200, { id: 1 }]);
  expect((await send("openapi-mock", "/v1/pets/mine")).status).toBe(204);
  const missing = await send("openapi-mock", "/v1/pets/7", { headers: { Prefer: "code=404" } });
  expect([missing.status, await missing.text()]).toEqual([404, "no such pet"]);
  expect(await (await send("openapi-mock", "/v1/owners")).text()).toBe("from the target");
});

describe("llm-token-budget", () => {
  const json = () =>
    Response.json({
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: 30, total_tokens: 40 },
    });
  const events = () =>
    new Response(
      [
        { type: "message_start", message: { usage: { input_tokens: 25, output_tokens: 1 } } },
        { type: "content_block_delta", delta: { text: "Hello" } },
        { type: "message_delta", usage: { output_tokens: 15 } },
      ]
        .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
        .join(""),
      { headers: { "Content-Type": "text/event-stream" } },
    );
  const ask = async (key: string) => {
    const response = await send("llm-token-budget", "/", { headers: { "X-Team": key } });
    await response.text();
    return [response.status, response.headers.get("x-ratelimit-remaining-tokens")];
  };

  test("counts JSON and event streams per key, and rejects above the budget", async () => {
    await use("llm-token-budget", { tokens: 100, window: 86_400, key: "header:X-Team" });
    respond = json;
    expect(await ask("one")).toEqual([200, "100"]);
    expect(await ask("one")).toEqual([200, "60"]);
    respond = events;
    expect(await ask("one")).toEqual([200, "20"]);
    respond = json;
    await eventually(async () => (await ask("one"))[0] === 429);
    respond = events;
    expect(await ask("two")).toEqual([200, "100"]);
    expect(await ask("two")).toEqual([200, "60"]);
  });
});
