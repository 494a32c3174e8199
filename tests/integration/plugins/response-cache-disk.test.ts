// Response caches with files: restarts, crashes, purges, full disks, ranges, slow clients, attacks on the directory.
import { afterEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, type GatewayOptions, startGateway } from "../../support/gateway.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw } from "../../support/raw-http.ts";

const KIB = 1024;
const MIB = 1_048_576;

const cleanups = cleanupsOf(afterEach);

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-cache-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** The body of a path `/<name>/<bytes>`; it differs by name and version. */
function bodyOf(path: string, version: number): Uint8Array {
  const [, name = "", bytes = "0"] = path.split("/");
  const body = new Uint8Array(Number(bytes));
  const seed = Number(Bun.hash.crc32(`${name} ${version}`));
  for (let at = 0; at < body.length; at++) body[at] = (at * 7 + seed + (at >> 11)) & 255;
  return body;
}

interface Scene {
  readonly gateway: Gateway;
  readonly pluginId: string;
  /** Paths that reached the origin, with the method. */
  readonly seen: string[];
  /** Of bodies from now on. */
  version: number;
  /** Of responses from now on. */
  headers: Record<string, string>;
  /** X-Cache-Status, after a comparison of the body with the present version. */
  get(path: string, headers?: Record<string, string>): Promise<string>;
  respond(path: string, init?: RequestInit): Promise<Response>;
  files(): string[];
}

async function start(
  config: Record<string, unknown> = {},
  options: GatewayOptions = {},
): Promise<Scene> {
  const own = { version: 1, headers: {} as Record<string, string> };
  const seen: string[] = [];
  const origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      seen.push(`${request.method} ${pathname}`);
      if (request.method !== "GET") return new Response(null, { status: 204 });
      const tag = `"${own.version}"`;
      const headers = new Headers({ "Cache-Control": "max-age=600", ETag: tag, ...own.headers });
      if (own.headers["ETag"] === "") headers.delete("ETag");
      if (request.headers.get("if-none-match") === tag)
        return new Response(null, { status: 304, headers });
      return new Response(bodyOf(pathname, own.version) as BodyInit, { headers });
    },
  });
  cleanups.push(() => origin.stop(true));
  const gateway = await startGateway(options);
  cleanups.push(() => gateway.stop());
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web" });
  const plugin = { name: "response-cache", config: { storage: "disk", ...config } };
  const { id } = await gateway.ok("POST", "/api/v1/plugins", plugin);
  const respond = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
      ...init,
      headers: { Connection: "close", ...(init.headers as Record<string, string>) },
    });
  return Object.assign(own, {
    gateway,
    pluginId: id,
    seen,
    respond,
    async get(path: string, headers: Record<string, string> = {}) {
      const response = await respond(path, { headers });
      const body = Buffer.from(await response.arrayBuffer());
      if (!body.equals(bodyOf(path, own.version))) return `other body, ${body.byteLength} bytes`;
      return response.headers.get("x-cache-status") ?? "";
    },
    files: () => filesIn(join(gateway.dataDir, "cache", id)),
  });
}

/** Of complete files. */
function filesIn(root: string): string[] {
  if (!existsSync(root)) return [];
  return readdirSync(root, { recursive: true })
    .map((name) => join(root, String(name)))
    .filter((path) => /-\d+$/.test(path) && statSync(path).isFile());
}

/** Stores it and waits for its file. */
async function store(scene: Scene, path: string): Promise<void> {
  expect(await scene.get(path)).toBe("MISS");
  await eventually(async () => (await scene.get(path)) === "HIT");
}

/** Descriptors of the gateway into its cache. */
const descriptors = ({ gateway }: Scene) =>
  readdirSync(`/proc/${gateway.pid}/fd`).filter((name) => {
    try {
      return readlinkSync(`/proc/${gateway.pid}/fd/${name}`).includes("/cache/");
    } catch {
      return false;
    }
  }).length;

const allClosed = (scene: Scene) => eventually(() => descriptors(scene) === 0);

async function crash(scene: Scene): Promise<void> {
  scene.gateway.signal("SIGKILL");
  await scene.gateway.exited();
  await scene.gateway.start();
}

describe("what is stored", () => {
  test("bodies from disk_above on are in files that only the gateway's user reads, shorter ones are not", async () => {
    const scene = await start({ disk_above: 50_000 });
    for (const path of ["/a/49999", "/b/50000", "/c/3000000"]) {
      expect(await scene.get(path)).toBe("MISS");
      await eventually(async () => (await scene.get(path)) === "HIT");
    }
    const files = scene.files();
    expect(files).toHaveLength(2);
    for (const file of files) expect(statSync(file).mode & 0o777).toBe(0o600);
    const root = join(scene.gateway.dataDir, "cache");
    const store = join(files[0] ?? "", "..");
    for (const path of [root, join(root, scene.pluginId), store])
      expect(statSync(path).mode & 0o777).toBe(0o700);
    await allClosed(scene);
  });

  test("nothing of a request is in the names of files", async () => {
    const scene = await start();
    await store(scene, "/secret/100000");
    const [file = ""] = scene.files();
    expect(file.slice(join(scene.gateway.dataDir, "cache").length)).toMatch(
      /^\/[\w-]+\/1-[0-9a-f]+\/[0-9a-f-]{36}-\d+$/,
    );
  });

  test("with storage memory there is no directory", async () => {
    const scene = await start({ storage: "memory" });
    expect(await scene.get("/a/100000")).toBe("MISS");
    expect(await scene.get("/a/100000")).toBe("HIT");
    expect(existsSync(join(scene.gateway.dataDir, "cache"))).toBe(false);
  });

  test("disk_total bounds the files, and the oldest go first", async () => {
    const scene = await start({ disk_total: MIB, max_body: MIB });
    for (let at = 0; at < 12; at++) await store(scene, `/${at}/200000`);
    await eventually(() => scene.files().length <= 5);
    const bytes = scene.files().reduce((sum, path) => sum + statSync(path).size, 0);
    expect(bytes).toBeLessThanOrEqual(MIB);
    expect(bytes).toBeGreaterThan(700_000);
    expect(await scene.get("/11/200000")).toBe("HIT");
    expect(await scene.get("/0/200000")).toBe("MISS");
  });

  test("a response that breaks off leaves nothing", async () => {
    const scene = await start({ max_body: 2 * MIB });
    // Longer than max_body: the file is begun, and given up.
    const response = await scene.respond(`/a/${3 * MIB}`);
    expect((await response.arrayBuffer()).byteLength).toBe(3 * MIB);
    const root = join(scene.gateway.dataDir, "cache");
    await eventually(() =>
      readdirSync(root, { recursive: true }).every((name) => !String(name).endsWith(".tmp")),
    );
    expect(scene.files()).toEqual([]);
    await allClosed(scene);
  });
});

describe("what is served", () => {
  test("ranges, HEAD and conditions of short and long files", async () => {
    const scene = await start({ max_body: 8 * MIB });
    for (const bytes of [100_000, 5 * MIB]) {
      const path = `/a/${bytes}`;
      const body = bodyOf(path, 1);
      await store(scene, path);
      for (const [range, from, to] of [
        ["bytes=0-0", 0, 1],
        ["bytes=70000-90000", 70_000, 90_001],
        ["bytes=-5", bytes - 5, bytes],
        ["bytes=10-", 10, bytes],
      ] as const) {
        const response = await scene.respond(path, { headers: { Range: range } });
        expect(response.status).toBe(206);
        expect(response.headers.get("content-range")).toBe(`bytes ${from}-${to - 1}/${bytes}`);
        const part = Buffer.from(await response.arrayBuffer());
        expect(part.equals(body.subarray(from, to))).toBe(true);
      }
      const unsatisfiable = await scene.respond(path, { headers: { Range: `bytes=${bytes}-` } });
      expect(unsatisfiable.status).toBe(416);
      const head = await scene.respond(path, { method: "HEAD" });
      expect([head.status, head.headers.get("content-length")]).toEqual([200, String(bytes)]);
      expect(head.headers.get("x-cache-status")).toBe("HIT");
      const known = await scene.respond(path, { headers: { "If-None-Match": '"1"' } });
      expect(known.status).toBe(304);
      await allClosed(scene);
    }
    expect(scene.seen.filter((line) => line.startsWith("GET"))).toHaveLength(2);
  });

  test("a stale file is validated and served again, and replaced when it has changed", async () => {
    const scene = await start({ max_body: 8 * MIB });
    scene.headers = { "Cache-Control": "max-age=0, must-revalidate" };
    // Stored only with freshness: the first response has some.
    for (const bytes of [100_000, 5 * MIB]) {
      const path = `/a/${bytes}`;
      scene.headers = { "Cache-Control": "max-age=1" };
      scene.version = 1;
      await store(scene, path);
      await eventually(async () => (await scene.get(path)) === "REVALIDATED");
      await allClosed(scene);
      scene.version = 2;
      await eventually(async () => (await scene.get(path)) === "EXPIRED");
      scene.headers = { "Cache-Control": "max-age=600" };
      await eventually(async () => (await scene.get(path)) === "HIT");
      await allClosed(scene);
    }
    await eventually(() => scene.files().length === 2);
  });

  test("a client that stops reading holds one descriptor, and one that goes away none", async () => {
    const scene = await start({ max_body: 64 * MIB });
    const path = `/a/${20 * MIB}`;
    await store(scene, path);
    await allClosed(scene);
    const host = `127.0.0.1:${scene.gateway.httpPort}`;
    const request = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    const clients = await Promise.all(
      Array.from({ length: 5 }, () => connectRaw({ port: scene.gateway.httpPort })),
    );
    for (const client of clients) {
      client.pause();
      client.write(request);
    }
    await eventually(() => descriptors(scene) === 5);
    const [first, ...others] = clients;
    // What is purged meanwhile is read to its end.
    await scene.gateway.ok("POST", "/api/v1/cache/purge", {});
    expect(scene.files()).toEqual([]);
    for (const client of others) client.reset();
    await eventually(() => descriptors(scene) === 1);
    first?.resume();
    await first?.until((received) => received.length > 20 * MIB);
    await allClosed(scene);
  });

  test("a file that is gone, cut, changed, or a link to another one is a miss", async () => {
    const scene = await start();
    const harm: ((file: string) => void)[] = [
      (file) => rmSync(file),
      (file) => writeFileSync(file, readFileSync(file).subarray(0, 1000)),
      (file) => {
        const bytes = readFileSync(file);
        bytes[70_000] = (bytes[70_000] ?? 0) ^ 1;
        writeFileSync(file, bytes);
      },
      (file) => {
        const copy = join(directory(), "copy");
        writeFileSync(copy, readFileSync(file));
        rmSync(file);
        symlinkSync(copy, file);
      },
      (file) => {
        rmSync(file);
        mkdirSync(file);
      },
    ];
    for (const [at, change] of harm.entries()) {
      const path = `/${at}/100000`;
      const before = scene.files();
      await store(scene, path);
      const [file = ""] = scene.files().filter((each) => !before.includes(each));
      change(file);
      expect(await scene.get(path)).toBe("MISS");
      await eventually(async () => (await scene.get(path)) === "HIT");
    }
    await allClosed(scene);
  });

  test("an update and a purge remove the file before the reply", async () => {
    const scene = await start();
    await store(scene, "/a/100000");
    expect((await scene.respond("/a/100000", { method: "POST" })).status).toBe(204);
    expect(scene.files()).toEqual([]);
    expect(await scene.get("/a/100000")).toBe("MISS");
    for (const which of [{ key: "/a/100000" }, { prefix: "/a" }, {}]) {
      // The file has its name before the entry is found.
      await eventually(async () => (await scene.get("/a/100000")) === "HIT");
      expect(scene.files()).toHaveLength(1);
      const { purged } = await scene.gateway.ok("POST", "/api/v1/cache/purge", which);
      expect([purged, scene.files()]).toEqual([1, []]);
      expect(await scene.get("/a/100000")).toBe("MISS");
    }
  });
});

describe("restarts", () => {
  test("entries and their ages survive, expired ones that nobody can validate do not", async () => {
    const scene = await start();
    await store(scene, "/a/100000");
    await store(scene, "/b/2000000");
    scene.headers = { "Cache-Control": "max-age=1", ETag: "" };
    expect(await scene.get("/c/100000")).toBe("MISS");
    const ageOf = async () => Number((await scene.respond("/a/100000")).headers.get("age"));
    await eventually(async () => (await ageOf()) >= 2, { intervalMs: 200 });
    const [first] = scene.files();
    const before = scene.seen.length;
    await scene.gateway.restart();
    await eventually(async () => (await scene.get("/a/100000")) === "HIT");
    expect(await ageOf()).toBeGreaterThanOrEqual(2);
    expect(await scene.get("/b/2000000")).toBe("HIT");
    expect(scene.seen.length).toBe(before);
    expect(scene.files()).toHaveLength(2);
    expect(scene.files()).not.toContain(first);
  });

  test("after kill -9 too, and incomplete and unknown files are gone", async () => {
    const scene = await start();
    await store(scene, "/a/100000");
    const [file = ""] = scene.files();
    const folder = join(file, "..");
    for (const name of ["x.0.tmp", "x.9.tmp", "x.gone", "unknown"])
      writeFileSync(join(folder, name), "x");
    await crash(scene);
    await eventually(async () => (await scene.get("/a/100000")) === "HIT");
    await eventually(() => !existsSync(folder));
    const names = readdirSync(join(scene.gateway.dataDir, "cache", scene.pluginId), {
      recursive: true,
    });
    expect(names).toHaveLength(3);
  });

  test("what was purged, updated or softly purged before kill -9 is not served", async () => {
    const scene = await start();
    const paths = ["/key/100000", "/prefix/100000", "/tag/100000", "/post/100000", "/soft/100000"];
    scene.headers = { "Surrogate-Key": "t" };
    await store(scene, "/tag/100000");
    scene.headers = {};
    for (const path of paths) if (path !== "/tag/100000") await store(scene, path);
    const purge = (which: object) => scene.gateway.ok("POST", "/api/v1/cache/purge", which);
    await purge({ key: "/key/100000" });
    await purge({ prefix: "/prefix" });
    await purge({ tag: "t" });
    await scene.respond("/post/100000", { method: "PUT" });
    await purge({ prefix: "/soft", soft: true });
    await store(scene, "/new/100000");
    scene.version = 2;
    await crash(scene);
    // Stored after the soft purge.
    scene.version = 1;
    await eventually(async () => (await scene.get("/new/100000")) === "HIT");
    scene.version = 2;
    for (const path of paths) expect(await scene.get(path)).toBe("MISS");
  });

  test("a purge in the moment of kill -9, again and again, is never undone", async () => {
    const scene = await start();
    for (let round = 0; round < 4; round++) {
      scene.version = round * 2;
      const paths = Array.from({ length: 10 }, (_, at) => `/p${round}-${at}/70000`);
      for (const path of paths) await store(scene, path);
      const which = round % 2 === 0 ? { prefix: `/p${round}-` } : {};
      await scene.gateway.ok("POST", "/api/v1/cache/purge", which);
      scene.version++;
      await crash(scene);
      for (const path of paths) expect(await scene.get(path)).toBe("MISS");
    }
  });

  test("a changed instance begins with no file, and a removed one leaves none", async () => {
    const scene = await start();
    await store(scene, "/a/100000");
    const path = `/api/v1/plugins/${scene.pluginId}`;
    await scene.gateway.ok("PATCH", path, { config: { stale_if_error: 5 } });
    expect(await scene.get("/a/100000")).toBe("MISS");
    await eventually(() => scene.files().length === 1);
    // The first one's settings again: not its files.
    await scene.gateway.ok("PATCH", path, { config: { stale_if_error: 0 } });
    expect(await scene.get("/a/100000")).toBe("MISS");
    await eventually(() => scene.files().length === 1);
    await scene.gateway.ok("DELETE", path);
    await eventually(() => readdirSync(join(scene.gateway.dataDir, "cache")).length === 0);
  });

  test("directories of instances that do not exist are removed by the start", async () => {
    const scene = await start();
    const stray = join(scene.gateway.dataDir, "cache", "stray", "1-abc");
    mkdirSync(stray, { recursive: true });
    await scene.gateway.restart();
    expect(readdirSync(join(scene.gateway.dataDir, "cache"))).toEqual([scene.pluginId]);
  });
});

test("a response is served to its end while the disk is too slow or gone, and one warning says so", async () => {
  const scene = await start();
  await store(scene, "/a/100000");
  const [file = ""] = scene.files();
  rmSync(join(file, ".."), { recursive: true });
  for (let at = 0; at < 5; at++) expect(await scene.get(`/b/${200_000 + at}`)).toBe("MISS");
  const warnings = () => scene.gateway.log.filter(({ message }) => message.includes("on the disk"));
  await eventually(() => warnings().length > 0);
  expect(await scene.get("/a/100000")).toBe("MISS");
  // One for each worker.
  expect(warnings().length).toBeLessThanOrEqual(2);
  expect(warnings()[0]).toMatchObject({ level: "warn", problem: "ENOENT" });
});

// Only root may mount a file system that is small enough to be filled.
needs("mount").test(
  "a full disk stores nothing more, serves everything, and recovers",
  async () => {
    const disk = directory();
    const dataDir = directory();
    expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk]).exitCode).toBe(
      0,
    );
    cleanups.push(() => Bun.spawnSync(["umount", "--lazy", disk]));
    mkdirSync(join(disk, "cache"));
    symlinkSync(join(disk, "cache"), join(dataDir, "cache"));
    const scene = await start({}, { dataDir });
    await store(scene, "/a/1000000");
    const ballast = join(disk, "ballast");
    fill(ballast);
    for (let at = 0; at < 5; at++) expect(await scene.get(`/b/${300_000 + at}`)).toBe("MISS");
    expect(await scene.get("/b/300000")).toBe("MISS");
    expect(await scene.get("/a/1000000")).toBe("HIT");
    await eventually(() =>
      scene.gateway.log.some(({ level, problem }) => level === "warn" && problem === "ENOSPC"),
    );
    await allClosed(scene);
    // A purge holds on a full disk too.
    await scene.gateway.ok("POST", "/api/v1/cache/purge", { prefix: "/a", soft: true });
    await crash(scene);
    scene.version = 2;
    expect(await scene.get("/a/1000000")).toBe("MISS");
    rmSync(ballast);
    await eventually(async () => (await scene.get("/b/300000")) === "HIT");
  },
);

function fill(path: string): void {
  for (const bytes of [64 * KIB, 4 * KIB, 1])
    try {
      for (;;) writeFileSync(path, Buffer.alloc(bytes), { flag: "a" });
    } catch {
      // Full.
    }
}
