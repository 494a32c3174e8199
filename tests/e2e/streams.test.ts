// Streams at their real size: a Redis behind a stream route, a gigabyte each way past a slow reader, 5,000 idle connections.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/data-plane.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { untilListening } from "../support/listening.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterEach, beforeEach, test } = needs("executable");

const GIGABYTE = 1_073_741_824;
const IDLE_STREAMS = 5000;
const MOST_IDLE_MB = 60;
const MOST_MEMORY_MB = 160;

let gateway: Gateway;
let scratch = "";
const children: Bun.Subprocess[] = [];

// A gateway for each test: memory that one has freed would hide what the next one needs.
beforeEach(async () => {
  scratch = mkdtempSync(join(tmpdir(), "sluice-streams-"));
  gateway = await startGateway({ binary: executable, workers: 2 });
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await gateway?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

/** A stream route to a port of this machine; returns its own. */
async function routeTo(port: number, name: string): Promise<number> {
  const listen_port = freePort();
  const targets = [{ host: "127.0.0.1", port }];
  await gateway.ok("POST", "/api/v1/services", { name, protocol: "tcp", targets });
  const route = { name, service_id: name, listen_address: "127.0.0.1", listen_port };
  await gateway.ok("POST", "/api/v1/stream-routes", route);
  return listen_port;
}

/** A helper program in a separate process, so that its memory and time do not count here. */
function start(program: string): Bun.Subprocess {
  const child = Bun.spawn([process.execPath, "-e", program], {
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  children.push(child);
  return child;
}

async function residentMegabytes(): Promise<number> {
  const text = await Bun.file(`/proc/${gateway.pid}/status`).text();
  return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1]) / 1024;
}

async function run(command: readonly string[], input?: Uint8Array): Promise<string> {
  const child = Bun.spawn([...command], {
    stdin: input === undefined ? "ignore" : new Blob([input as BlobPart]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${err}${out}`);
  return out;
}

test(`${IDLE_STREAMS} idle streams cost at most ${MOST_IDLE_MB} MB`, async () => {
  const target = freePort();
  start(
    `Bun.listen({ hostname: "127.0.0.1", port: ${target}, socket: { data(s, c) { s.write(c); } } });`,
  );
  await untilListening(target);
  const port = await routeTo(target, "idle");
  const { id } = await gateway.ok("GET", "/api/v1/stream-routes/idle");
  const before = await residentMegabytes();
  start(`for (let n = 0; n < ${IDLE_STREAMS}; n++)
    await Bun.connect({ hostname: "127.0.0.1", port: ${port}, socket: {
      open(s) { s.write("hello"); }, data() {} } });
    setInterval(() => {}, 1000);`);
  const connections = async () =>
    await gateway.ok("GET", `/api/v1/stream-routes/${id}/connections`);
  await eventually(
    async () => {
      const open = await connections();
      return (
        open.length === IDLE_STREAMS &&
        open.every((one: { bytes_out: number }) => one.bytes_out === 5)
      );
    },
    { intervalMs: 500 },
  );
  const cost = (await residentMegabytes()) - before;
  console.log(`${IDLE_STREAMS} idle streams: ${cost.toFixed(1)} MB more`);
  expect(cost).toBeLessThan(MOST_IDLE_MB);
});

needs("executable", "redis-server").test(
  "Redis works through a stream route: values, messages, load",
  async () => {
    const redis = freePort();
    children.push(
      Bun.spawn(
        [
          "redis-server",
          ...["--port", String(redis), "--bind", "127.0.0.1", "--save", ""],
          ...["--appendonly", "no", "--dir", scratch],
        ],
        { stdin: "ignore", stdout: "ignore", stderr: "inherit" },
      ),
    );
    await untilListening(redis);
    const port = await routeTo(redis, "redis");
    const client = ["redis-cli", "-p", String(port)];
    expect(await run([...client, "SET", "name", "sluice"])).toBe("OK\n");
    expect(await run([...client, "GET", "name"])).toBe("sluice\n");
    const large = Buffer.alloc(20_000_000, "0123456789");
    expect(await run([...client, "-x", "SET", "large"], large)).toBe("OK\n");
    const back = await run([...client, "GET", "large"]);
    expect(Bun.hash(back.trimEnd())).toBe(Bun.hash(large));
    const listener = Bun.spawn([...client, "SUBSCRIBE", "news"], {
      stdin: "ignore",
      stdout: "pipe",
    });
    children.push(listener);
    await eventually(async () => (await run([...client, "PUBLISH", "news", "hi"])) === "1\n");
    const reader = listener.stdout.getReader();
    let heard = "";
    while (!heard.includes("hi")) {
      const { value, done } = await reader.read();
      if (done) break;
      heard += Buffer.from(value).toString();
    }
    expect(heard).toContain("hi");
    const load = ["redis-benchmark", "-p", String(port), "-c", "50", "-n", "20000", "-q"];
    const printed = await run([...load, "-t", "set,get", "-P", "4"]);
    expect(printed).toMatch(/SET: \d/);
    expect(printed).toMatch(/GET: \d/);
  },
  60_000,
);

test("a gigabyte in each direction with a slow reader arrives complete, in little memory", async () => {
  const target = freePort();
  start(`require("node:net").createServer((s) => { s.on("error", () => {}); s.pipe(s); })
    .listen(${target}, "127.0.0.1")`);
  await untilListening(target);
  const port = await routeTo(target, "bulk");
  const chunk = Buffer.alloc(1_048_576);
  const [wanted, found] = [new Bun.CryptoHasher("sha1"), new Bun.CryptoHasher("sha1")];
  let received = 0;
  let highest = 0;
  const sampler = setInterval(async () => {
    highest = Math.max(highest, await residentMegabytes());
  }, 50);
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    let nextRest = GIGABYTE / 20;
    socket.on("data", (part) => {
      found.update(part);
      received += part.length;
      if (received < nextRest) return;
      nextRest += GIGABYTE / 20;
      // Everything in between has to wait meanwhile.
      socket.pause();
      setTimeout(() => socket.resume(), 100);
    });
    socket.on("end", resolve);
    socket.on("error", reject);
    let sent = 0;
    const send = () => {
      while (sent < GIGABYTE / chunk.length) {
        chunk.writeUInt32LE(sent++);
        wanted.update(chunk);
        if (!socket.write(Buffer.from(chunk))) {
          socket.once("drain", send);
          return;
        }
      }
      socket.end();
    };
    send();
  });
  clearInterval(sampler);
  expect(received).toBe(GIGABYTE);
  expect(found.digest("hex")).toBe(wanted.digest("hex"));
  console.log(`a gigabyte each way: ${highest.toFixed(1)} MB at most`);
  expect(highest).toBeLessThan(MOST_MEMORY_MB);
});
