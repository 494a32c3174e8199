// Measures start-up and resident memory: idle, and while a long body passes to or from a slow side.
import { createServer, type Server, Socket } from "node:net";
import { join } from "node:path";

import { residentBytes, waitFor } from "./processes.ts";
import { type RunningSluice, startSluice } from "./sluice.ts";

export interface MemoryInput {
  readonly scratch: string;
  readonly command: readonly string[];
  readonly bytes: number;
}

export interface MemoryResult {
  readonly coldStartMs: number;
  readonly idleBytes: number;
  readonly downloadBytes: number;
  readonly uploadBytes: number;
}

const COLD_STARTS = 5;
const SETTLE_MS = 3_000;
/** The slow side reads this much, then rests for that long: 64 MB/s. */
const SIP_BYTES = 1_280_000;
const SIP_MS = 20;

/** Starts with an empty directory, several times, then keeps the last one for the memory figures. */
export async function measureMemory(input: MemoryInput): Promise<MemoryResult> {
  const times: number[] = [];
  for (let start = 0; start < COLD_STARTS; start += 1) {
    const sluice = await startEmpty(input, `cold-${start}`);
    times.push(sluice.readyMs);
    await sluice.program.stop();
  }
  times.sort((a, b) => a - b);
  const sluice = await startEmpty(input, "memory");
  try {
    await Bun.sleep(SETTLE_MS);
    const idleBytes = residentBytes(sluice.program.pid);
    const downloadBytes = await measureDownload(sluice, input.bytes);
    const uploadBytes = await measureUpload(sluice, input.bytes);
    return {
      coldStartMs: times[Math.floor(COLD_STARTS / 2)]!,
      idleBytes,
      downloadBytes,
      uploadBytes,
    };
  } finally {
    await sluice.program.stop();
  }
}

function startEmpty(input: MemoryInput, name: string): Promise<RunningSluice> {
  const dataDir = join(input.scratch, name);
  return startSluice({ command: input.command, dataDir, workers: 2, core: undefined });
}

async function routeTo(sluice: RunningSluice, name: string, port: number): Promise<void> {
  await sluice.api.createService(name, port);
  const route = { name, service_id: name, paths: [`/${name}`] };
  await sluice.api.send("POST", "/api/v1/routes", route);
}

async function measureDownload(sluice: RunningSluice, bytes: number): Promise<number> {
  const origin = await listen((socket) => {
    socket.once("data", () => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`);
      sendBytes(socket, bytes);
    });
  });
  try {
    await routeTo(sluice, "download", origin.port);
    return await highestMemory(sluice, async () => {
      const client = await dial(sluice.ports.http);
      client.write("GET /download HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
      const received = await sipToEnd(client, () => false);
      if (received < bytes) throw new Error(`the download ended after ${received} bytes`);
    });
  } finally {
    origin.server.close();
  }
}

async function measureUpload(sluice: RunningSluice, bytes: number): Promise<number> {
  const origin = await listen((socket) => {
    void sipToEnd(socket, (received) => received >= bytes).then(() =>
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"),
    );
  });
  try {
    await routeTo(sluice, "upload", origin.port);
    return await highestMemory(sluice, async () => {
      const client = await dial(sluice.ports.http);
      client.write(`POST /upload HTTP/1.1\r\nHost: bench\r\nContent-Length: ${bytes}\r\n`);
      client.write("Connection: close\r\n\r\n");
      const answer = readText(client);
      sendBytes(client, bytes);
      const text = await answer;
      if (!text.startsWith("HTTP/1.1 200"))
        throw new Error(`the upload got: ${text.slice(0, 200)}`);
    });
  } finally {
    origin.server.close();
  }
}

async function highestMemory(sluice: RunningSluice, work: () => Promise<void>): Promise<number> {
  let highest = 0;
  const sampler = setInterval(() => {
    highest = Math.max(highest, residentBytes(sluice.program.pid));
  }, 50);
  try {
    await work();
  } finally {
    clearInterval(sampler);
  }
  return highest;
}

async function listen(onSocket: (socket: Socket) => void) {
  const server: Server = createServer((socket) => {
    socket.on("error", () => {});
    onSocket(socket);
  });
  server.listen(0, "127.0.0.1");
  const port = await waitFor("a free port", 1_000, async () => {
    const address = server.address();
    return typeof address === "object" ? address?.port : undefined;
  });
  return { server, port };
}

function dial(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = new Socket();
    socket.once("error", reject);
    socket.connect(port, "127.0.0.1", () => resolve(socket));
  });
}

// Writes as fast as the other side takes it.
function sendBytes(socket: Socket, bytes: number): void {
  const chunk = Buffer.alloc(256 * 1024, 97);
  let left = bytes;
  const pump = (): void => {
    while (left > 0) {
      const part = left < chunk.length ? chunk.subarray(0, left) : chunk;
      left -= part.length;
      if (!socket.write(part)) return;
    }
  };
  socket.on("drain", pump);
  pump();
}

/** Reads in small sips until the other side ends or the body is complete; returns the bytes read. */
function sipToEnd(socket: Socket, isComplete: (received: number) => boolean): Promise<number> {
  return new Promise((resolve) => {
    let received = 0;
    let sinceRest = 0;
    socket.on("data", (chunk: Buffer) => {
      received += chunk.length;
      sinceRest += chunk.length;
      if (isComplete(received)) return resolve(received);
      if (sinceRest < SIP_BYTES) return;
      sinceRest = 0;
      socket.pause();
      setTimeout(() => socket.resume(), SIP_MS);
    });
    socket.on("close", () => resolve(received));
    socket.on("end", () => resolve(received));
  });
}

function readText(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
    socket.on("close", () => resolve(text));
    socket.on("end", () => resolve(text));
  });
}
