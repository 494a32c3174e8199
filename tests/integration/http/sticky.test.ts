// Sticky sessions: the client's cookie, its target, and what happens when that target cannot serve.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { override } from "../../../src/shared-memory/target-health.ts";
import { selfSigned } from "../../support/certificate.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { reply, startOrigin } from "../../support/origin.ts";
import { exchange } from "../../support/raw-exchange.ts";
import {
  request,
  startTargetScene,
  type TargetScene,
  type TargetSceneOptions,
} from "../../support/target-scene.ts";

type Service = NonNullable<TargetSceneOptions["service"]>;

const scenes: TargetScene[] = [];
/** Round-robin targets that respond with their number. */
async function start(service: Service = {}, targets = 3): Promise<TargetScene> {
  const sticky = { enabled: true, ...service.sticky };
  const scene = await startTargetScene({
    targets,
    service: { algorithm: "round_robin", ...service, sticky },
  });
  for (const [index, origin] of scene.origins.entries()) origin.answer = reply(String(index));
  scenes.push(scene);
  return scene;
}
afterAll(() => Promise.all(scenes.map((scene) => scene.stop())));

interface Visit {
  readonly target: string;
  /** Set-Cookie as sent; null when there was none. */
  readonly setCookie: string | null;
  /** What the browser sends next. */
  readonly cookie: string;
}

async function visit(scene: TargetScene, cookie = "", method = "GET"): Promise<Visit> {
  const fields = cookie === "" ? "" : `Cookie: ${cookie}\r\n`;
  const { answers } = await scene.send(request(method, `${fields}Content-Length: 0\r\n`));
  const setCookie = answers[0]?.header("set-cookie") ?? null;
  return {
    target: answers[0]?.body ?? "",
    setCookie,
    cookie: setCookie === null ? cookie : setCookie.slice(0, setCookie.indexOf(";")),
  };
}

/** A cookie that leads to that target. */
async function cookieOf(scene: TargetScene, target: string): Promise<string> {
  for (let turn = 0; turn < 100; turn++) {
    const first = await visit(scene);
    if (first.target === target) return first.cookie;
  }
  throw new Error(`no turn came to target ${target}`);
}

const sketches = (scene: TargetScene) => [...(scene.service.targets ?? [])];

describe("the cookie", () => {
  test("keeps its client on one target, is set once, and reveals nothing of the target", async () => {
    const scene = await start();
    const first = await visit(scene);
    expect(first.setCookie).toMatch(
      /^sluice_sticky=[A-Za-z0-9_-]{16}; Path=\/; HttpOnly; SameSite=Lax$/,
    );
    for (let turn = 0; turn < 6; turn++) {
      const next = await visit(scene, `theme=dark; ${first.cookie}; x=y`);
      expect([next.target, next.setCookie]).toEqual([first.target, null]);
    }
    const cookies = new Set<string>();
    for (const target of ["0", "1", "2"]) cookies.add(await cookieOf(scene, target));
    expect(cookies.size).toBe(3);
  });

  test.each([
    ["GET", "200"],
    ["POST", "200"],
    ["HEAD", "200"],
  ])("comes with the response to %s", async (method) => {
    const scene = await start({}, 1);
    if (method === "HEAD")
      scene.origins[0]!.answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    expect((await visit(scene, "", method)).setCookie).toStartWith("sluice_sticky=");
  });

  test("has the name and the lifetime that the service says", async () => {
    const scene = await start({ sticky: { cookie: "which", ttl: 3600 } });
    const first = await visit(scene);
    expect(first.setCookie).toMatch(
      /^which=[A-Za-z0-9_-]{16}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=3600$/,
    );
    expect((await visit(scene, first.cookie)).target).toBe(first.target);
  });

  test("is Secure when the client speaks HTTPS", async () => {
    const origin = startOrigin();
    const gateway = await startDataPlane({
      services: [{ name: "app", sticky: { enabled: true }, targets: [{ port: origin.port }] }],
      routes: [{ name: "all", service_id: "app" }],
      tls: await selfSigned(),
    });
    const { answers } = await exchange(request("GET"), { port: gateway.port, tls: true });
    expect(answers[0]?.header("set-cookie")).toEndWith("; SameSite=Lax; Secure");
    await gateway.stop();
    origin.stop();
  });

  test("stands beside the target's own, and other clients never see it", async () => {
    const scene = await start({}, 1);
    const headers = "Set-Cookie: own=1\r\nSet-Cookie: other=2\r\n";
    scene.origins[0]!.answer = reply("0", { headers });
    for (let turn = 0; turn < 3; turn++) {
      const { answers } = await scene.send(request("GET"));
      const cookies = answers[0]?.fields
        .filter(([name]) => name === "set-cookie")
        .map(([, value]) => value);
      expect(cookies?.slice(0, 2)).toEqual(["own=1", "other=2"]);
      expect(cookies?.[2]).toStartWith("sluice_sticky=");
      // Requests share the parsed head: nothing may be added to it.
      const known = await scene.send(request("GET", `Cookie: ${cookies?.[2]?.split(";")[0]}\r\n`));
      expect(known.answers[0]?.fields.filter(([name]) => name === "set-cookie").length).toBe(2);
      expect(known.answers[0]?.header("cache-control")).toBeNull();
    }
  });

  test.each([
    ["", "private"],
    ["public, max-age=60", "public, max-age=60, private"],
    ["max-age=60, private", "max-age=60, private"],
    ["no-store", "no-store"],
    ["Private", "Private"],
    ["x-private=1", "x-private=1, private"],
  ])("prevents shared caches from storing it: %p becomes %p", async (own, expected) => {
    const scene = await start({}, 1);
    scene.origins[0]!.answer = reply("0", {
      headers: own === "" ? "" : `Cache-Control: ${own}\r\n`,
    });
    const { answers } = await scene.send(request("GET"));
    expect(answers[0]?.header("cache-control")).toBe(expected);
  });

  test("is not set on local responses", async () => {
    const scene = await start({ retries: { count: 0 } }, 1);
    scene.origins[0]!.answer = "close";
    const { answers } = await scene.send(request("GET"));
    expect(answers[0]).toMatchObject({ status: 502 });
    expect(answers[0]?.header("set-cookie")).toBeNull();
  });
});

describe("a foreign cookie", () => {
  let scene: TargetScene;
  let foreign: string;
  beforeAll(async () => {
    scene = await start();
    // Another service with the same targets and the same key.
    await scene.gateway.apply({
      services: [{ ...scene.service, name: "other" }],
      routes: [{ name: "other", service_id: "other", paths: ["/other"] }],
    });
    const { answers } = await scene.send("GET /other HTTP/1.1\r\nHost: h\r\n\r\n");
    foreign = answers[0]!.header("set-cookie")!.split(";")[0]!;
  });

  test.each([
    ["of another service", () => foreign],
    ["made up", () => "sluice_sticky=AAAAAAAAAAAAAAAA"],
    ["the id of a target", () => "sluice_sticky=app-1"],
    ["empty", () => "sluice_sticky="],
    ["very long", () => `sluice_sticky=${"A".repeat(4000)}`],
    ["under another name", () => "xsluice_sticky=AAAAAAAAAAAAAAAA"],
  ])("%s: is ignored and replaced", async (_, cookie) => {
    const targets = new Set<string>();
    for (let turn = 0; turn < 3; turn++) {
      const { target, setCookie } = await visit(scene, cookie());
      targets.add(target);
      expect(setCookie).toStartWith("sluice_sticky=");
      expect(setCookie).not.toStartWith(`${cookie()};`);
    }
    expect(targets.size).toBe(3);
  });
});

async function drainSecond(scene: TargetScene): Promise<void> {
  const targets = sketches(scene).map((target, index) => ({
    ...target,
    weight: index === 1 ? 0 : 100,
  }));
  await scene.gateway.apply({ services: [{ ...scene.service, targets }] });
}

describe("when its target", () => {
  /** The client must move, stay on the new target, and not go back. */
  async function expectMove(scene: TargetScene, cookie: string, from: string): Promise<string> {
    const moved = await visit(scene, cookie);
    expect(moved.target).not.toBe(from);
    expect(moved.setCookie).toStartWith("sluice_sticky=");
    for (let turn = 0; turn < 4; turn++) {
      const next = await visit(scene, moved.cookie);
      expect([next.target, next.setCookie]).toEqual([moved.target, null]);
    }
    return moved.cookie;
  }

  test("is down, the client moves permanently", async () => {
    const scene = await start();
    const cookie = await cookieOf(scene, "1");
    const { targets: board } = scene.gateway;
    const rows = { target: board.rowOf("app-1"), service: board.rowOf("app") };
    override(board, rows, { state: "unhealthy", until: null, now: Date.now() });
    const moved = await expectMove(scene, cookie, "1");
    override(board, rows, { state: "auto", until: null, now: Date.now() });
    expect((await visit(scene, moved)).target).not.toBe("1");
  });

  test("refuses, the same request goes to another one", async () => {
    const scene = await start();
    const cookie = await cookieOf(scene, "2");
    scene.origins[2]!.stop();
    for (const connection of scene.origins[2]!.connections) connection.end();
    await expectMove(scene, cookie, "2");
  });

  test("returns 503, so too, with the cookie of the target that responded", async () => {
    const scene = await start();
    const cookie = await cookieOf(scene, "0");
    scene.origins[0]!.answer = reply("busy", { status: "503 Busy" });
    await expectMove(scene, cookie, "0");
  });

  test("is full, another one serves", async () => {
    const scene = await start({ max_connections_per_target: 1 });
    const cookie = await cookieOf(scene, "1");
    let release = () => {};
    scene.origins[1]!.answer = (_, connection) => {
      release = () => connection.write(reply("1"));
      return null;
    };
    const before = scene.counts()[1]!;
    const slow = visit(scene, cookie);
    await scene.origins[1]!.untilRequests(before + 1);
    expect((await visit(scene, cookie)).target).not.toBe("1");
    release();
    expect((await slow).target).toBe("1");
  });

  test("is drained, its clients stay, and no others come", async () => {
    const scene = await start();
    const cookie = await cookieOf(scene, "1");
    await drainSecond(scene);
    for (let turn = 0; turn < 4; turn++) {
      const next = await visit(scene, cookie);
      expect([next.target, next.setCookie]).toEqual(["1", null]);
      expect((await visit(scene)).target).not.toBe("1");
    }
  });

  test("is drained and fails, they move", async () => {
    const scene = await start();
    const cookie = await cookieOf(scene, "1");
    await drainSecond(scene);
    scene.origins[1]!.answer = "close";
    await expectMove(scene, cookie, "1");
  });

  test("is removed, the client moves", async () => {
    const scene = await start();
    const cookie = await cookieOf(scene, "2");
    await scene.gateway.apply({
      services: [{ ...scene.service, targets: sketches(scene).slice(0, 2) }],
    });
    await expectMove(scene, cookie, "2");
  });

  test("is of an unused tier, the client stays", async () => {
    const scene = await start();
    const targets = sketches(scene).map((target, index) => ({ ...target, priority: index }));
    const cookie = await cookieOf(scene, "2");
    await scene.gateway.apply({ services: [{ ...scene.service, targets }] });
    expect((await visit(scene)).target).toBe("0");
    expect((await visit(scene, cookie)).target).toBe("2");
  });

  test("stays and others change, the client stays", async () => {
    const scene = await start();
    const cookie = await cookieOf(scene, "0");
    await scene.gateway.apply({
      services: [{ ...scene.service, targets: sketches(scene).slice(0, 1) }],
    });
    expect((await visit(scene, cookie)).target).toBe("0");
    await scene.gateway.apply({ services: [scene.service] });
    for (let turn = 0; turn < 4; turn++) expect((await visit(scene, cookie)).target).toBe("0");
  });
});
