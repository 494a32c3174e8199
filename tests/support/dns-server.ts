// A name server on 127.0.0.1 with records of a test, over UDP; supports the common types.
import dgram from "node:dgram";
import { once } from "node:events";

export interface DnsRecord {
  readonly type: "A" | "AAAA" | "SRV" | "TXT" | "NS" | "CNAME";
  /** An address, a name or a text; of SRV `priority weight port host`. */
  readonly value: string;
  /** Default 0, so that no resolver caches it. */
  readonly ttl?: number;
}

export interface DnsServer {
  /** `127.0.0.1:port`. */
  readonly address: string;
  /** Received queries, as `A name`. */
  readonly questions: string[];
  /** Records by name; other names do not exist. */
  readonly zone: Map<string, readonly DnsRecord[]>;
  /** How it answers: from the zone, with SERVFAIL, or not at all. */
  mode: "zone" | "failure" | "silence";
  stop(): void;
}

const TYPES = { A: 1, NS: 2, CNAME: 5, TXT: 16, AAAA: 28, SRV: 33 } as const;
const NAME_ERROR = 3;
const SERVER_FAILURE = 2;

export async function startDnsServer(
  zone: Readonly<Record<string, readonly DnsRecord[]>> = {},
  hostname = "127.0.0.1",
): Promise<DnsServer> {
  const socket = dgram.createSocket("udp4");
  socket.bind(0, hostname);
  await once(socket, "listening");
  const server: DnsServer = {
    address: `${hostname}:${socket.address().port}`,
    questions: [],
    zone: new Map(Object.entries(zone)),
    mode: "zone",
    stop: () => void socket.close(),
  };
  socket.on("message", (message, from) => {
    const { name, type, end } = readQuestion(message);
    const word = Object.entries(TYPES).find(([, code]) => code === type)?.[0] ?? String(type);
    server.questions.push(`${word} ${name}`);
    if (server.mode === "silence") return;
    const known = server.zone.get(name);
    const records = (known ?? []).filter((record) => record.type === word);
    const code = server.mode === "failure" ? SERVER_FAILURE : known === undefined ? NAME_ERROR : 0;
    const header = Buffer.alloc(12);
    header.writeUInt16BE(message.readUInt16BE(0), 0);
    header.writeUInt16BE(0x8580 | code, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(code === 0 ? records.length : 0, 6);
    const answers = code === 0 ? records.map(recordBytes) : [];
    socket.send(
      Buffer.concat([header, message.subarray(12, end), ...answers]),
      from.port,
      from.address,
    );
  });
  return server;
}

function readQuestion(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += length + 1;
  }
  return {
    name: labels.join(".").toLowerCase(),
    type: message.readUInt16BE(at + 1),
    end: at + 5,
  };
}

function recordBytes({ type, value, ttl = 0 }: DnsRecord): Buffer {
  const data = dataOf(type, value);
  const head = Buffer.alloc(12);
  // The name is that of the question.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(TYPES[type], 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function dataOf(type: DnsRecord["type"], value: string): Buffer {
  if (type === "A") return Buffer.from(value.split(".").map(Number));
  if (type === "AAAA") return ipv6Bytes(value);
  if (type === "TXT") return Buffer.from(`${String.fromCharCode(value.length)}${value}`, "latin1");
  if (type === "NS" || type === "CNAME") return nameBytes(value);
  const [priority = "0", weight = "0", port = "0", host = ""] = value.split(" ");
  const numbers = Buffer.alloc(6);
  for (const [index, number] of [priority, weight, port].entries())
    numbers.writeUInt16BE(Number(number), index * 2);
  return Buffer.concat([numbers, nameBytes(host)]);
}

function nameBytes(name: string): Buffer {
  const labels = name.split(".").map((label) => `${String.fromCharCode(label.length)}${label}`);
  return Buffer.from(`${labels.join("")}\0`, "latin1");
}

function ipv6Bytes(text: string): Buffer {
  const [left = "", right = ""] = text.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const missing = 8 - groups(left).length - groups(right).length;
  const all = [...groups(left), ...Array.from({ length: missing }, () => "0"), ...groups(right)];
  const bytes = Buffer.alloc(16);
  for (const [index, group] of all.entries())
    bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2);
  return bytes;
}
