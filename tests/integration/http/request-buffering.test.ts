// `request_buffering: "on"`: the body is read whole, in memory or in a file without a name, and sent with its length.
import { afterEach, describe, expect, test } from "bun:test";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../../support/cleanups.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { engines } from "../../support/engines.ts";
import { H2Client } from "../../support/h2-client.ts";
import { startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { needs } from "../../support/needs.ts";
import { connectRaw } from "../../support/raw-http.ts";

const cleanups = cleanupsOf(afterEach);

interface Got {
  readonly length: string | null;
  readonly coding: string | null;
  readonly bytes: number;
  readonly sum: string;
}

const sumOf = (bytes: Uint8Array | ArrayBuffer) =>
  new Bun.CryptoHasher("sha1").update(bytes).digest("hex");

/** Descriptors of files that the gateway buffers bodies in. */
const openBuffers = (pid: number | "self" = "self") =>
  readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/${pid}/fd/${fd}`);
      return path.includes("request-body") ? [path] : [];
    } catch {
      return [];
    }
  });

type Sketch = Parameters<typeof startDataPlane>[0];

async function start(
  options: Sketch = {},
  route: object = {},
  directory = mkdtempSync(join(tmpdir(), "sluice-bodies-")),
) {
  const got: Got[] = [];
  /** How many requests the origin breaks after it has read this much. */
  const faults = { left: 0 };
  const origins = [1, 2].map(() =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      maxRequestBodySize: 1e9,
      async fetch(request) {
        const bytes = await request.arrayBuffer();
        got.push({
          length: request.headers.get("content-length"),
          coding: request.headers.get("transfer-encoding"),
          bytes: bytes.byteLength,
          sum: sumOf(bytes),
        });
        if (faults.left === 0) return new Response("ok");
        faults.left--;
        return new Response("fault", { status: 503 });
      },
    }),
  );
  const plane = await startDataPlane({
    bodyDirectory: directory,
    services: [{ name: "origin", targets: origins.map(({ port }) => ({ port: port! })) }],
    ...options,
    routes: [{ name: "all", service_id: "origin", request_buffering: "on", ...route }],
  } as Sketch);
  cleanups.push(async () => {
    expect(await plane.drain(3000)).toBe(0);
    await Promise.all(origins.map((origin) => origin.stop(true)));
    rmSync(directory, { recursive: true });
  });
  return { plane, got, faults, directory, port: plane.port };
}

const chunk = (bytes: Uint8Array) =>
  Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);

async function putChunked(port: number, pieces: readonly Uint8Array[], fields = "") {
  const client = await connectRaw({ port });
  cleanups.push(() => client.close());
  client.write(`PUT /x HTTP/1.1\r\nHost: h\r\n${fields}Transfer-Encoding: chunked\r\n\r\n`);
  if (fields.includes("100-continue"))
    await eventually(() => client.received.startsWith("HTTP/1.1 100"));
  for (const piece of pieces) client.write(chunk(piece));
  client.write("0\r\n\r\n");
  await eventually(
    () => /HTTP\/1\.1 [2-5]\d\d [\s\S]*\r\n\r\n/.test(client.received) || client.isClosed,
  );
  return Number(/HTTP\/1\.1 ([2-5]\d\d)/.exec(client.received)?.[1]);
}

const SHORT = [Buffer.from("abc"), Buffer.from("def")];
const LONG = Array.from({ length: 40 }, (_, at) => Buffer.alloc(100_000, at));

describe.each(engines)("engine %s", (engine) => {
  test.each([
    ["an empty body", []],
    ["a short body, in memory", SHORT],
    ["a long one, in a file", LONG],
  ])("%s of unknown length arrives with its length", async (_, pieces) => {
    const { got, port, directory } = await start({ listener: { engine } });
    const whole = Buffer.concat(pieces);
    expect(await putChunked(port, pieces)).toBe(200);
    expect(got).toEqual([
      {
        length: String(whole.byteLength),
        coding: null,
        bytes: whole.byteLength,
        sum: sumOf(whole),
      },
    ]);
    await eventually(() => openBuffers().length === 0);
    expect(readdirSync(directory)).toEqual([]);
  });

  test("Expect: 100-continue gets its 100 from the gateway", async () => {
    const { got, port } = await start({ listener: { engine } });
    expect(await putChunked(port, SHORT, "Expect: 100-continue\r\n")).toBe(200);
    expect(got).toMatchObject([{ length: "6" }]);
  });

  test("a long body is sent again to a target that failed", async () => {
    const { got, port, faults } = await start(
      { listener: { engine } },
      { retries: { count: 1, on: ["503"] } },
    );
    faults.left = 1;
    expect(await putChunked(port, LONG)).toBe(200);
    const sum = sumOf(Buffer.concat(LONG));
    expect(got).toMatchObject([{ sum }, { sum }]);
    await eventually(() => openBuffers().length === 0);
  });

  test("a body over the listener's limit gets 413, and nothing stays", async () => {
    const { got, port } = await start({ listener: { engine, max_body_bytes: 1_000_000 } });
    expect(await putChunked(port, LONG)).toBe(413);
    expect(got).toEqual([]);
    await eventually(() => openBuffers().length === 0);
  });

  test("a body over the room on the disk gets 507, is logged, and nothing stays", async () => {
    const { got, port, plane } = await start({
      listener: { engine },
      settings: { limits: { request_buffer_disk_bytes: 1_000_000 } },
    });
    expect(await putChunked(port, LONG)).toBe(507);
    expect(await putChunked(port, SHORT)).toBe(200);
    expect(got).toMatchObject([{ length: "6" }]);
    expect(plane.log).toContainEqual(
      expect.objectContaining({
        level: "warn",
        fields: expect.objectContaining({
          status: 507,
          cause: "limits.request_buffer_disk_bytes is used up",
        }),
      }),
    );
    await eventually(() => openBuffers().length === 0);
  });

  test("a client that leaves midway frees file and room, again and again", async () => {
    const { got, port } = await start({
      listener: { engine },
      settings: { limits: { request_buffer_disk_bytes: 5_000_000 } },
    });
    for (let round = 0; round < 6; round++) {
      const client = await connectRaw({ port });
      client.write("PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (const piece of LONG.slice(0, 20)) client.write(chunk(piece));
      await eventually(() => openBuffers().length === 1);
      if (round % 2 === 0) client.close();
      else client.reset();
      await eventually(() => openBuffers().length === 0);
    }
    expect(await putChunked(port, LONG)).toBe(200);
    expect(got).toMatchObject([{ bytes: 4_000_000 }]);
  });
});

test("HTTP/2 bodies of unknown length arrive with it, too", async () => {
  const { got, port } = await start({ listener: { engine: "sluice", http2: true } });
  const client = await H2Client.connect({ port });
  cleanups.push(() => client.close());
  const stream = client.headers(
    [
      [":method", "PUT"],
      [":scheme", "http"],
      [":authority", "h"],
      [":path", "/x"],
    ],
    { isLast: false },
  );
  client.data(stream, "a".repeat(10_000), { isLast: false });
  client.data(stream, "b".repeat(10_000));
  expect((await client.result(stream)).status).toBe(200);
  expect(got).toMatchObject([{ length: "20000", bytes: 20_000 }]);
});

test("off, the body streams as it arrives", async () => {
  const { got, port } = await start(
    { listener: { engine: "sluice" } },
    { request_buffering: "off" },
  );
  expect(await putChunked(port, SHORT)).toBe(200);
  expect(got).toMatchObject([{ length: null, coding: "chunked" }]);
});

// Only root may mount a file system that is small enough to be filled.
needs("mount").test(
  "a full disk refuses the body with 507, and leaves room for others",
  async () => {
    const disk = mkdtempSync(join(tmpdir(), "sluice-bodies-"));
    expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk]).exitCode).toBe(
      0,
    );
    const { got, port, plane } = await start({}, {}, disk);
    cleanups.push(() => void Bun.spawnSync(["umount", "--lazy", disk]));
    expect(await putChunked(port, [...LONG, ...LONG])).toBe(507);
    expect(plane.log.map(({ fields }) => fields["cause"])).toContain("the disk is full");
    writeFileSync(join(disk, "other"), Buffer.alloc(4_000_000));
    await eventually(async () => (await putChunked(port, LONG.slice(0, 5))) === 200);
    expect(await putChunked(port, LONG)).toBe(507);
    expect(await putChunked(port, SHORT)).toBe(200);
    expect(got.map(({ bytes }) => bytes)).toEqual([500_000, 6]);
    await eventually(() => openBuffers().length === 0);
  },
);

test("an upload of 300 MB needs a file and little memory, and a crash leaves nothing", async () => {
  let bytes = 0;
  const origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: 1e9,
    async fetch(request) {
      for await (const piece of request.body ?? []) bytes += piece.byteLength;
      return new Response(request.headers.get("content-length"));
    },
  });
  const gateway = await startGateway({ workers: 1 });
  cleanups.push(async () => {
    await gateway.stop();
    await origin.stop(true);
  });
  await gateway.ok("PATCH", "/api/v1/listeners/http", { engine: "sluice", max_body_bytes: 0 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "s", targets });
  await gateway.ok("POST", "/api/v1/routes", { service_id: "s", request_buffering: "on" });
  const rss = () =>
    gateway.pid === 0
      ? 0
      : Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, "utf8"))?.[1]) /
        1000;
  expect(await putChunked(gateway.httpPort, LONG)).toBe(200);
  const before = rss();
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, rss())), 20);
  cleanups.push(() => clearInterval(watch));
  const piece = Buffer.alloc(100_000, 1);
  bytes = 0;
  expect(await putChunked(gateway.httpPort, new Array(3000).fill(piece))).toBe(200);
  expect(bytes).toBe(300_000_000);
  expect(most - before).toBeLessThan(150);
  await eventually(() => openBuffers(gateway.pid).length === 0);

  const client = await connectRaw({ port: gateway.httpPort });
  client.write("PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const part of LONG) client.write(chunk(part));
  await eventually(() => openBuffers(gateway.pid).length === 1);
  await gateway.kill9();
  client.close();
  expect(readdirSync(gateway.dataDir).filter((name) => name.includes("request-body"))).toEqual([]);
});
