// The servers behind acceptors, on 127.0.0.1: which listeners have them, and that nothing else on the machine reaches them.
import { expect } from "bun:test";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { Authority } from "../../support/authority.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { ask, GET, hold, mirrored, talk, useListeners } from "./world.ts";

const { api, listener } = useListeners();

/** Ports of 127.0.0.1 on which the gateway listens. */
function listeningPorts(): number[] {
  const { pid } = api.gateway;
  const inodes = new Set<string>();
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    try {
      inodes.add(/socket:\[(\d+)\]/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? "");
    } catch {
      // Closed in between.
    }
  }
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1);
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter((columns) => columns[3] === "0A" && inodes.has(columns[9] ?? ""))
    .map((columns) => Number.parseInt(columns[1]?.split(":")[1] ?? "", 16));
}

const onLinux = needs("linux");
const WORKERS = 2;

onLinux.test("only listeners that ask for it have a second server behind them", async () => {
  const before = listeningPorts().length;
  const port = await listener("direct");
  expect(listeningPorts().length - before).toBe(WORKERS);
  await api.call("PATCH /listeners/direct", { body: { max_connections: 5 } });
  // The old ones are gone as soon as their last connection is.
  await eventually(() => listeningPorts().length - before === 2 * WORKERS);
  expect(mirrored(await talk(port, [GET]))["x-real-ip"]).toBe("127.0.0.1");
  await api.call("PATCH /listeners/direct", { body: { max_connections: 0 } });
  await eventually(() => listeningPorts().length - before === WORKERS);
  expect(mirrored(await talk(port, [GET]))["x-real-ip"]).toBe("127.0.0.1");
  await api.call("DELETE /listeners/direct");
  await eventually(() => listeningPorts().length === before);
});

onLinux.test("no other program of the machine gets a response from the server behind", async () => {
  const before = new Set(listeningPorts());
  const port = await listener("guarded", { max_connections: 100 });
  const behind = listeningPorts().filter((one) => one !== port && !before.has(one));
  expect(behind.length).toBe(WORKERS);
  for (const one of behind) {
    expect(await talk(one, [GET])).toBe("");
    expect(await talk(one, [GET], "127.0.0.2")).toBe("");
  }
  // Also from the very source port, at another address, that a connection of the acceptor has.
  const kept = await hold(port);
  const sources = readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .slice(1)
    .map((row) => row.trim().split(/\s+/))
    .flatMap(([, local = "", remote = "", state]) => {
      const to = Number.parseInt(remote.split(":")[1] ?? "", 16);
      return state === "01" && behind.includes(to)
        ? [{ from: Number.parseInt(local.split(":")[1] ?? "", 16), to }]
        : [];
    });
  expect(sources.length).toBe(1);
  for (const { from, to } of sources) {
    const answer = await new Promise<string>((resolve) => {
      let text = "";
      const socket = connect(
        { port: to, host: "127.0.0.1", localAddress: "127.0.0.2", localPort: from },
        () => void socket.write(GET),
      );
      socket.on("data", (data) => (text += String(data)));
      socket.on(
        "error",
        (error: Error & { code?: string }) =>
          (text += error.code === "ECONNRESET" ? "" : error.code),
      );
      socket.on("close", () => resolve(text));
    });
    expect(answer).toBe("");
  }
  kept?.destroy();
});

onLinux.test("nor from those behind a listener that requests client certificates", async () => {
  const authority = await Authority.create("Clients");
  const leaf = await authority.sign({ names: ["alice"] });
  const before = new Set(listeningPorts());
  const port = await listener("asking", {
    protocol: "https",
    http2: false,
    client_auth: "request",
    client_ca: authority.cert,
  });
  const shown = { cert: leaf.cert, key: leaf.key };
  expect((await ask(port, shown)).text).toStartWith("HTTP/1.1 ");
  const behind = listeningPorts().filter((one) => one !== port && !before.has(one));
  // Where TLS ends, and where HTTP is spoken.
  expect(behind.length).toBe(2 * WORKERS);
  for (const one of behind) {
    expect(await talk(one, [GET])).toBe("");
    expect((await ask(one, shown)).text).toBe("");
  }
});

onLinux.test("listeners of our own engine have none", async () => {
  const before = listeningPorts().length;
  const limits = { engine: "sluice", max_connections: 5, strict_sni: true };
  const port = await listener("alone", { ...limits, protocol: "https" });
  expect((await ask(port, { servername: "localhost" })).text).toBe("");
  expect(listeningPorts().length - before).toBe(WORKERS);
});
