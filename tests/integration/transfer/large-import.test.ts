// Documents of more than a megabyte: read in a thread of their own, imported like small ones, while the gateway continues to serve.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { startOrigin } from "../../support/origin.ts";

let gateway: Gateway;
const origin = startOrigin();

beforeAll(async () => {
  gateway = await startGateway();
  await gateway.ok("POST", "/api/v1/services", {
    name: "app",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

const COUNT = 3_000;
/** Makes the document large; each object has some of it. */
const padding = "x".repeat(400);

const routeOf = (index: number, fields: object = {}) => ({
  name: `r-${index}`,
  service_id: "app",
  hosts: [`site-${index}.test`],
  paths: ["/a"],
  description: padding,
  ...fields,
});

const documentOf = (fields: (index: number) => object = () => ({})) => ({
  format: 1,
  routes: Array.from({ length: COUNT }, (_, index) => routeOf(index, fields(index))),
});

const send = (body: BodyInit, query = "", headers: Record<string, string> = {}) =>
  fetch(`${gateway.admin}/api/v1/import${query}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });

const refused = async (body: BodyInit, query = "", headers: Record<string, string> = {}) => {
  const before = await revision();
  const response = await send(body, query, headers);
  const { error } = (await response.json()) as { error: string };
  expect(await revision()).toBe(before);
  return `${response.status} ${error}`;
};

const revision = async (): Promise<number> =>
  (await gateway.ok("GET", "/api/v1/admin/status")).revision;

test("every object in it is as if imported alone", async () => {
  const text = JSON.stringify(documentOf());
  expect(text.length).toBeGreaterThan(1_048_576);
  const response = await send(text);
  expect(response.status).toBe(200);
  const { changes } = (await response.json()) as { changes: { action: string }[] };
  expect(changes.filter(({ action }) => action === "create")).toHaveLength(COUNT);
  const created = await gateway.ok("POST", "/api/v1/routes", routeOf(COUNT));
  const imported = await gateway.ok("GET", `/api/v1/routes/r-${COUNT - 1}`);
  const differing = ["id", "name", "hosts", "created_at", "updated_at"];
  const rest = (route: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(route).filter(([name]) => !differing.includes(name)));
  expect(rest(imported)).toEqual(rest(created));
  const served = await fetch(`http://127.0.0.1:${gateway.httpPort}/a`, {
    headers: { host: `site-${COUNT - 1}.test` },
  });
  expect([served.status, await served.text()]).toEqual([200, "ok"]);
});

test("existing objects are unchanged, and an export imports again without a change", async () => {
  const before = await revision();
  const again = await send(JSON.stringify(documentOf()));
  expect(await again.json()).toEqual({ changes: [] });
  const exported = await fetch(`${gateway.admin}/api/v1/export`);
  const same = await send(await exported.text(), "?mode=replace");
  expect(await same.json()).toEqual({ changes: [] });
  expect(await revision()).toBe(before);
});

test("other requests are served meanwhile with the version before, and changes keep their order", async () => {
  const before = await revision();
  let isDone = false;
  const importing = send(JSON.stringify(documentOf((index) => ({ priority: index % 5 })))).finally(
    () => {
      isDone = true;
    },
  );
  let answers = 0;
  let seen = await revision();
  while (!isDone && seen === before) {
    expect((await fetch(`${gateway.admin}/healthz`)).status).toBe(200);
    answers++;
    seen = await revision();
  }
  const response = await importing;
  expect(response.status).toBe(200);
  expect(answers).toBeGreaterThan(5);
  // Asked for while another large one is under way: it is its turn when that is done.
  const next = send(JSON.stringify(documentOf((index) => ({ priority: 7 + (index % 3) }))));
  const patched = gateway.ok("PATCH", "/api/v1/routes/r-1", { priority: 100 });
  expect((await next).status).toBe(200);
  await patched;
  expect((await gateway.ok("GET", "/api/v1/routes/r-1")).priority).toBeOneOf([100, 8]);
  expect(await revision()).toBe(before + 3);
});

describe("its error", () => {
  test("has a location and a line", async () => {
    const document = documentOf((index) => (index === 2_500 ? { priority: "high" } : {}));
    const text = JSON.stringify(document, null, 1);
    const line = text.slice(0, text.indexOf('"high"')).split("\n").length;
    expect(await refused(text)).toBe(
      `400 routes[2500].priority: must be an integer from -1000000 to 1000000 (line ${line}, column 4)`,
    );
  });

  test("is the first one, also where another object would be invalid alone", async () => {
    const document = documentOf((index) => {
      if (index === 10) return { service_id: "nobody" };
      return index === 20 ? { hosts: ["not a host"] } : {};
    });
    expect(await refused(JSON.stringify(document))).toStartWith(
      '400 routes[10].service_id: service "nobody" does not exist (line 1, column ',
    );
  });

  test.each([
    ["a member twice", `,"name":"a","name":"b"`, "routes[3000].name: is given twice"],
    ["half a character", String.raw`,"name":"\ud800"`, "routes[3000].name: holds a lone surrogate"],
    ["an unknown field", `,"nonsense":1`, "routes[3000].nonsense: is not a known field"],
  ])("can be %s", async (_, members, message) => {
    const text = JSON.stringify(documentOf());
    const wrong = text.replace(/\]\}$/, `,{"hosts":["a.test"]${members}}]}`);
    expect(await refused(wrong)).toStartWith(`400 ${message}`);
  });

  test("can be invalid JSON, or binary data", async () => {
    const text = JSON.stringify(documentOf());
    expect(await refused(text.slice(0, -1))).toStartWith("400 ");
    const bytes = new TextEncoder().encode(text);
    bytes[bytes.length >> 1] = 0xff;
    expect(await refused(bytes)).toBe("400 the body is not valid UTF-8");
    expect(await refused(JSON.stringify([text]))).toBe(
      "400 the configuration file must be an object",
    );
    expect(await refused(JSON.stringify({ format: 1, routes: text }))).toStartWith(
      "400 routes: must be a list",
    );
  });
});

test("it can be YAML", async () => {
  const response = await send(Bun.YAML.stringify(documentOf(() => ({ priority: 3 }))), "", {
    "content-type": "application/yaml",
  });
  expect(response.status).toBe(200);
  expect((await gateway.ok("GET", "/api/v1/routes/r-77")).priority).toBe(3);
});

test("it can hold secrets, which are stored encrypted and stay when they are masked", async () => {
  const secrets = [{ name: "large", sealed_value: { plain: "very secret" } }];
  const response = await send(JSON.stringify({ ...documentOf(), secrets }));
  expect(response.status).toBe(200);
  const exported = await (await fetch(`${gateway.admin}/api/v1/export`)).text();
  expect(exported).not.toContain("very secret");
  const again = await send(exported, "?mode=replace");
  expect(await again.json()).toEqual({ changes: [] });
});

test("an encrypted one opens with its passphrase only", async () => {
  const passphrase = "correct horse battery";
  const exported = await fetch(`${gateway.admin}/api/v1/export?secrets=1`, {
    headers: { "x-passphrase": passphrase },
  });
  const text = await exported.text();
  expect(text.length).toBeGreaterThan(1_048_576);
  const wrong = { "x-passphrase": `${passphrase}!` };
  expect(await refused(text, "?mode=replace", wrong)).toBe(
    "400 the passphrase is wrong, or the document was changed",
  );
  expect(await refused(text, "?mode=replace")).toStartWith(
    "400 X-Passphrase: must be a passphrase of",
  );
  await gateway.ok("DELETE", "/api/v1/routes/r-5");
  const right = await send(text, "?mode=replace", { "x-passphrase": passphrase });
  const { changes } = (await right.json()) as { changes: { action: string; name: string }[] };
  expect(changes.map(({ action, name }) => `${action} ${name}`)).toEqual(["create r-5"]);
});

test("it can be the configuration of another program, with a report", async () => {
  const services = Array.from({ length: 2_500 }, (_, index) => ({
    name: `kong-${index}`,
    url: "http://127.0.0.1:9",
    routes: [
      { name: `kong-route-${index}`, hosts: [`kong-${index}.test`], paths: [`/${padding}`] },
    ],
  }));
  const text = JSON.stringify({ _format_version: "3.0", services });
  expect(text.length).toBeGreaterThan(1_048_576);
  const response = await send(text, "?from=kong&dry_run=1");
  expect(response.status).toBe(200);
  const { changes, report } = (await response.json()) as { changes: unknown[]; report: unknown[] };
  expect(changes.length).toBeGreaterThan(5_000);
  expect(report.length).toBeGreaterThan(0);
});

test("its change can be read in the history and reverted", async () => {
  const revisions = await gateway.ok("GET", "/api/v1/revisions");
  const first = revisions.find(({ summary }: { summary: string }) =>
    summary.startsWith(`import (merge): ${COUNT} created`),
  );
  const { changes } = await gateway.ok("GET", `/api/v1/revisions/${first.number}`);
  expect(changes).toHaveLength(COUNT);
  await gateway.ok("POST", `/api/v1/revisions/${first.number - 1}/restore`);
  expect(await gateway.ok("GET", "/api/v1/routes")).toHaveLength(0);
  await gateway.ok("POST", `/api/v1/revisions/${first.number}/restore`);
  expect(await gateway.ok("GET", "/api/v1/routes")).toHaveLength(COUNT);
  const { status } = await fetch(`http://127.0.0.1:${gateway.httpPort}/a`, {
    headers: { host: "site-17.test" },
  });
  expect(status).toBe(200);
});
