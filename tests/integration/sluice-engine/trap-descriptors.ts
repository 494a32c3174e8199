// A server that runs out of descriptors, and one that limits its connections to fewer: in processes of their own, because the limit is of one.
import { connect } from "node:net";
import { ConnectionLimits } from "../../../src/dataplane/listener/connection-limits.ts";
import { decode } from "../../../src/model/decode.ts";
import { listenerInput } from "../../../src/model/listener.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { eventually } from "../../support/poll.ts";
import { atEnd } from "./trap-sockets.ts";
import type { Scene } from "./trap-scenes.ts";

const DESCRIPTORS = 64;
const CLIENTS = 100;
/** Processor time that no process uses that rests. */
const CPU_MS = 300;

/** Plays a server with a limit on its connections; 0: none. */
export function playCrowdedServer(max_connections: number): void {
  const limits = new ConnectionLimits(TargetBoard.create(1), 0);
  const identity = { id: "listener", created_at: "", updated_at: "" };
  const input = { name: "listener", address: "127.0.0.1", port: 1, max_connections };
  const listener = { ...decode(listenerInput, input), ...identity };
  let open = 0;
  let refused = 0;
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        if (typeof limits.admit(listener) !== "string") open++;
        else {
          refused++;
          socket.terminate();
        }
      },
      data(socket, chunk) {
        socket.write(chunk);
      },
    },
  });
  const report = () => {
    const { user, system } = process.cpuUsage();
    console.log(JSON.stringify({ port: server.port, open, refused, cpu: (user + system) / 1000 }));
  };
  report();
  process.stdin.on("data", report);
}

interface Report {
  readonly port: number;
  readonly open: number;
  readonly refused: number;
  readonly cpu: number;
}

/** Starts it with few descriptors, and a crowd of clients; `ask` has it report. */
async function crowded(maxConnections: number) {
  const program = JSON.parse(process.env["TRAP_PROGRAM"] ?? "[]") as string[];
  const child = Bun.spawn(
    ["sh", "-c", `ulimit -n ${DESCRIPTORS}; exec "$@"`, "sh", ...program, String(maxConnections)],
    { stdin: "pipe", stdout: "pipe", stderr: "inherit" },
  );
  atEnd(() => child.kill(9));
  const reports: Report[] = [];
  void (async () => {
    let text = "";
    for await (const chunk of child.stdout) {
      text += Buffer.from(chunk).toString();
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) reports.push(JSON.parse(line) as Report);
    }
  })();
  const { port } = await eventually(() => reports[0]);
  let closed = 0;
  for (let at = 0; at < CLIENTS; at++) {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => {});
    socket.on("close", () => closed++);
    atEnd(() => socket.destroy());
  }
  return {
    port,
    get closed() {
      return closed;
    },
    async ask(): Promise<Report> {
      const { length } = reports;
      child.stdin.write("\n");
      child.stdin.flush();
      return eventually(() => reports[length]);
    },
  };
}

export const descriptorScenes: readonly Scene[] = [
  {
    trap: 2,
    name: "bare: out of descriptors the accept loop uses the processor without end",
    async run() {
      const server = await crowded(0);
      await eventually(async () => (await server.ask()).open >= DESCRIPTORS / 2);
      const { cpu } = await server.ask();
      // Asked five times a second: a process that rests does not use as much within the deadline.
      const isBusy = async () => (await server.ask()).cpu - cpu >= CPU_MS;
      const used = await eventually(isBusy, { intervalMs: 200 });
      return { used, closed: server.closed };
    },
    expected: { used: true, closed: 0 },
  },
  {
    trap: 2,
    name: "ours: a limit below that of descriptors closes the others, and none is left to accept",
    async run() {
      const server = await crowded(20);
      await eventually(() => server.closed === CLIENTS - 20);
      const { open, refused } = await server.ask();
      return { open, refused };
    },
    expected: { open: 20, refused: CLIENTS - 20 },
  },
];
