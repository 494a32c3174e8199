// Path attacks against a listener with a raw route: nothing that another route protects is reached, and nothing is read as its path.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { H2Client } from "../../support/h2-client.ts";
import { type LenientOrigin, startLenientOrigin } from "../../support/lenient-origin.ts";
import { disguises, isUnder, readings } from "../../support/path-disguises.ts";
import { exchange } from "../../support/raw-exchange.ts";

let app: LenientOrigin;
let store: LenientOrigin;
let gateway: RunningDataPlane;
let client: H2Client;
beforeAll(async () => {
  app = startLenientOrigin();
  store = startLenientOrigin();
  const nobody = { config: { allow: ["192.0.2.1"] } };
  gateway = await startDataPlane({
    listener: { engine: "sluice", http2: true },
    services: [
      { name: "app", targets: [{ port: app.port }] },
      { name: "store", targets: [{ port: store.port }] },
    ],
    routes: [
      { name: "store", hosts: ["s3.test"], service_id: "store", path_handling: "raw" },
      { name: "admin", hosts: ["app.test"], paths: ["/admin"], service_id: "app" },
      { name: "public", hosts: ["app.test"], service_id: "app" },
      // The raw route precedes it: its host is exact.
      { name: "everywhere", paths: ["/admin"], service_id: "app" },
    ],
    plugins: [
      { id: "one", name: "ip-restriction", routeId: "admin", ...nobody },
      { id: "two", name: "ip-restriction", routeId: "everywhere", ...nobody },
    ],
    settings: { debug_headers: true },
  });
  client = await H2Client.connect({ port: gateway.port });
});
afterAll(async () => {
  client.close();
  await gateway.stop();
  app.stop();
  store.stop();
});

/** What the application has executed that some server would read as protected. */
const reached = () =>
  app.executed.flatMap(({ target }) =>
    readings(target).some((path) => isUnder(path, "/admin")) ? [target] : [],
  );

/** Heads that name both hosts, or none of them clearly. `target`: what is asked. */
const heads: Record<string, (target: string) => string> = {
  "the host of the store": (target) => `GET ${target} HTTP/1.1\r\nHost: s3.test`,
  "the host of the application": (target) => `GET ${target} HTTP/1.1\r\nHost: app.test`,
  "no known host": (target) => `GET ${target} HTTP/1.1\r\nHost: other.test`,
  "an absolute form for the store": (target) =>
    `GET http://s3.test${target} HTTP/1.1\r\nHost: app.test`,
  "an absolute form for the application": (target) =>
    `GET http://app.test${target} HTTP/1.1\r\nHost: s3.test`,
  "an authority as the first segment": (target) =>
    `GET //app.test${target} HTTP/1.1\r\nHost: s3.test`,
  "an absolute form inside of the path": (target) =>
    `GET /http://app.test${target} HTTP/1.1\r\nHost: s3.test`,
  "a user before the authority": (target) =>
    `GET http://s3.test@app.test${target} HTTP/1.1\r\nHost: s3.test`,
  "a backslash in the authority": (target) =>
    `GET http://s3.test\\.app.test${target} HTTP/1.1\r\nHost: s3.test`,
  "a path that names the scheme": (target) => `GET /../http:/${target} HTTP/1.1\r\nHost: s3.test`,
  "two hosts": (target) => `GET ${target} HTTP/1.1\r\nHost: s3.test\r\nHost: app.test`,
  "a forwarded host": (target) =>
    `GET ${target} HTTP/1.1\r\nHost: app.test\r\nX-Forwarded-Host: s3.test\r\nForwarded: host=s3.test`,
  "a trailing dot and a port": (target) => `GET ${target} HTTP/1.1\r\nHost: S3.TEST.:80`,
  "the application's with a dot": (target) => `GET ${target} HTTP/1.1\r\nHost: App.Test.:80`,
};
/** Of these, the requests for the store and what it must receive. */
const forStore: Record<string, (target: string) => string> = {
  "the host of the store": (target) => target,
  "an absolute form for the store": (target) => target,
  "a trailing dot and a port": (target) => target,
};

const targets = disguises.map(([target]) => target).filter((target) => target.startsWith("/"));

describe("HTTP/1.1", () => {
  test.each(Object.keys(heads))("with %s, no disguise reaches what is protected", async (name) => {
    for (const target of targets) {
      app.forget();
      store.forget();
      const head = heads[name]!(target);
      const { answers } = await exchange(`${head}\r\n\r\n`, { port: gateway.port });
      const status = answers[0]?.status ?? 0;
      expect({ head, reached: reached() }).toEqual({ head, reached: [] });
      const wanted = forStore[name]?.(target) ?? null;
      if (wanted === null) continue;
      // What the store does with it is its own matter: it has no other route's rules to meet.
      const isTarget = !/[^!-~]|#/.test(target) && !/%(?![0-9a-f]{2})/i.test(target);
      expect({ head, status }).toEqual({ head, status: isTarget ? 200 : status });
      if (isTarget) expect(store.executed.map((each) => each.target)).toEqual([wanted]);
      else expect(store.executed).toEqual([]);
      if (!isTarget) expect([400, 505]).toContain(status);
    }
  });

  test("pipelined behind each other, each request keeps its own rules", async () => {
    app.forget();
    store.forget();
    const requests = [
      "GET /x/../admin HTTP/1.1\r\nHost: s3.test\r\n\r\n",
      "GET /x/../admin HTTP/1.1\r\nHost: app.test\r\n\r\n",
      "GET /..%2fadmin HTTP/1.1\r\nHost: s3.test\r\n\r\n",
      "GET /..%2fadmin HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n",
    ];
    const { outcome } = await exchange(requests.join(""), { port: gateway.port, answers: 4 });
    expect(outcome).toBe("200 403 200 400");
    expect(store.executed.map(({ target }) => target)).toEqual(["/x/../admin", "/..%2fadmin"]);
    expect(app.executed).toEqual([]);
  });
});

describe("HTTP/2", () => {
  const lists: Record<string, (target: string) => readonly (readonly [string, string])[]> = {
    "the host of the store": (target) => [
      [":authority", "s3.test"],
      [":path", target],
    ],
    "the host of the application": (target) => [
      [":authority", "app.test"],
      [":path", target],
    ],
    "another Host": (target) => [
      [":authority", "s3.test"],
      [":path", target],
      ["host", "app.test"],
    ],
    "an absolute form": (target) => [
      [":authority", "s3.test"],
      [":path", `http://app.test${target}`],
    ],
    "an authority as the first segment": (target) => [
      [":authority", "s3.test"],
      [":path", `//app.test${target}`],
    ],
  };
  test.each(Object.keys(lists))("with %s, no disguise reaches what is protected", async (name) => {
    for (const target of targets) {
      app.forget();
      const stream = client.headers([
        [":method", "GET"],
        [":scheme", "http"],
        ...lists[name]!(target),
      ]);
      await client.result(stream);
      expect({ target, reached: reached() }).toEqual({ target, reached: [] });
    }
  });
});

test("the gateway's challenges are exact on the host of a raw route too", async () => {
  const path = "/.well-known/acme-challenge/";
  for (const target of [
    `${path}../x`,
    `${path}..%2fx`,
    `${path}%2e`,
    `/x/..${path}t`,
    `/${path}t`,
  ]) {
    store.forget();
    const head = `GET ${target} HTTP/1.1\r\nHost: s3.test\r\n\r\n`;
    expect((await exchange(head, { port: gateway.port })).outcome).toBe("200");
    expect(store.executed.map((each) => each.target)).toEqual([target]);
  }
});
