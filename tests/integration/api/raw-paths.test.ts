// Routes with path_handling "raw" in the management API: what is stored, explained and listed, and why other changes are refused.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { exchange } from "../../support/raw-exchange.ts";

let gateway: Gateway;
let origin: Origin;
let logFile = "";
beforeAll(async () => {
  origin = startOrigin({ answer: ({ target }) => reply(target) });
  gateway = await startGateway();
  await post("services", { name: "store", targets: [{ host: "127.0.0.1", port: origin.port }] });
  await post("routes", raw);
  await post("routes", { name: "app", service_id: "store", hosts: ["app.test"] });
  logFile = join(gateway.dataDir, "logs", "access.log");
  const sinks = [{ file: { path: "access.log", format: "combined" } }];
  await post("plugins", { name: "access-log", config: { sinks } });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

const raw = { name: "store", service_id: "store", hosts: ["s3.test"], path_handling: "raw" };
const post = (path: string, body: object) => gateway.ok("POST", `/api/v1/${path}`, body);
const refused = async (method: string, path: string, body: object) => {
  const response = await gateway.api(method, `/api/v1/${path}`, body);
  return [response.status, await response.text()] as const;
};
const ask = (target: string, host = "s3.test") =>
  exchange(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, { port: gateway.httpPort });

test("the field is stored, with canonical as its default", async () => {
  expect((await gateway.ok("GET", "/api/v1/routes/store")).path_handling).toBe("raw");
  expect((await gateway.ok("GET", "/api/v1/routes/app")).path_handling).toBe("canonical");
  const [status, text] = await refused("PATCH", "routes/app", { path_handling: "v1" });
  expect([status, text.includes("path_handling")]).toEqual([400, true]);
});

test.each([
  ["/a/../b%2f?x=../y", "s3.test", "raw", "/a/../b%2f?x=../y"],
  ["/..%2fb", "s3.test", "raw", "/..%2fb"],
  ["", "s3.test", "raw", "/"],
  ["?x#y", "s3.test", "raw", "/?x"],
  ["/a/../b%2f", "app.test", "canonical", "/b%2F"],
])("an explanation of %s for %s says that its path is %s", async (target, host, form, seen) => {
  const url = `http://${host}:${gateway.httpPort}${target}`;
  const explained = await post("routes/explain", { url });
  expect(explained).toMatchObject({ outcome: "proxy", path_handling: form });
  expect(/^http:\/\/[^/]+(.*)$/.exec(explained.upstream.url)?.[1]).toBe(seen);
  if (target.startsWith("/")) {
    const { answers } = await ask(target, host);
    expect(answers[0]?.body).toBe(seen);
  }
});

test("an explanation of what no target is says so", async () => {
  for (const host of ["s3.test", "app.test"]) {
    const url = `http://${host}:${gateway.httpPort}/%zz`;
    expect(await post("routes/explain", { url })).toMatchObject({
      outcome: "refused",
      status: 400,
    });
  }
  const url = "http://nowhere.test/";
  expect(await post("routes/explain", { url })).toMatchObject({ path_handling: null });
});

test("the list of requests and access logs have the path as it came, in one line each", async () => {
  const target = `/x/../"\\%0a%0dforged<b>?a="\\`;
  expect((await ask(target)).answers[0]?.body).toBe(target);
  const escaped = target.replaceAll(/["\\]/g, (character) => `\\${character}`);
  await eventually(() => readFileSync(logFile, "utf8").includes("forged"));
  const lines = readFileSync(logFile, "utf8").split("\n");
  expect(lines.filter((line) => line.includes("forged"))).toEqual([
    expect.stringContaining(`"GET ${escaped} HTTP/1.1" 200 `),
  ]);
  await eventually(async () => {
    const [newest] = await gateway.ok("GET", "/api/v1/requests?limit=1");
    return newest?.path === target;
  });
});

describe("a change is refused with the reason, at the object that is written", () => {
  const s3 = { hosts: ["s3.test"] };
  test.each([
    ["POST", "listeners", () => ({ name: "bun", port: quietPort(), engine: "bun" }), "engine"],
    ["POST", "plugins", () => ({ name: "waf-lite" }), "plugin waf-lite"],
    ["POST", "plugins", () => ({ name: "redirect", config: { to: "/x" } }), "plugin redirect"],
    ["POST", "routes", () => ({ ...s3, name: "admin", paths: ["/admin"] }), 'route \\"admin\\"'],
    ["PATCH", "services/store", () => ({ path: "/base" }), "path"],
    ["PATCH", "routes/store", () => ({ paths: ["/x"] }), "paths[0]"],
    ["PATCH", "routes/store", () => ({ hosts: [] }), "hosts"],
    ["PATCH", "routes/store", () => ({ strip_path: true }), "strip_path"],
  ])("%s %s", async (method, path, body, part) => {
    const [status, text] = await refused(method, path, body());
    expect(status).toBe(400);
    expect(text).toContain(part);
  });

  test("and accepted where it does not apply to the route", async () => {
    const other = { when: { not: { host: ["s3.test"] } } };
    const { id } = await post("plugins", { name: "waf-lite", ...other });
    const [status] = await refused("PATCH", `plugins/${id}`, { when: null });
    expect(status).toBe(400);
    expect((await ask("/../x")).outcome).toBe("200");
    await gateway.ok("DELETE", `/api/v1/plugins/${id}`);
  });
});
