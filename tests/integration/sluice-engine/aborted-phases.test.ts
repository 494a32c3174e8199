// Clients and targets that leave in every phase with all plugins on: refusals, upgrades, waiting plugins, half a response; nothing stays.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type OriginConnection, type OriginRequest, reply } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { acceptOf } from "../websocket/peer.ts";
import {
  all,
  type AllPlugins,
  FIELDS,
  JSON_BODY,
  NEVER_STORED,
  startAllPlugins,
  ways,
} from "./all-plugins.ts";

const post = (fields: string, body: string) =>
  `POST /api/v1/a HTTP/1.1\r\n${fields}Content-Type: application/json\r\n\r\n${body}`;
const length = `Content-Length: ${JSON_BODY.length}\r\n`;
const chunked = `${JSON_BODY.length.toString(16)}\r\n${JSON_BODY}\r\n0\r\n\r\n`;
const get = `GET /api/v1/a HTTP/1.1\r\n${FIELDS}\r\n`;
/** A text "hello" of a client, and a ping. */
const FRAMES = "\x81\x85\0\0\0\0hello\x89\x80\0\0\0\0";
const upgrade = (protocol: string) =>
  `GET /api/v1/a HTTP/1.1\r\n${FIELDS}Connection: Upgrade\r\nUpgrade: ${protocol}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n${FRAMES}`;

const requests: Readonly<Record<string, string>> = {
  "refused with a length": post(FIELDS.replace("of alice", "of bob") + length, JSON_BODY),
  "refused with chunks": post(
    `${FIELDS.replace("of alice", "of bob")}Transfer-Encoding: chunked\r\n`,
    chunked,
  ),
  "expecting 100": post(`${FIELDS}${length}Expect: 100-continue\r\n`, JSON_BODY),
  pipelined: get + post(FIELDS + length, JSON_BODY) + get,
  WebSocket: upgrade("websocket"),
  "another upgrade": upgrade("tcp"),
};

const json = reply(JSON_BODY, { headers: `Content-Type: application/json\r\n${NEVER_STORED}` });
const inChunks = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${NEVER_STORED}Transfer-Encoding: chunked\r\n\r\n${chunked}`;
const switching = (protocol: string, key: string) =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n\x81\x7e\x01\x00${"a".repeat(256)}`;

const answerOf = ({ header }: OriginRequest): string => {
  const protocol = header("upgrade");
  return protocol === null ? json : switching(protocol, header("sec-websocket-key") ?? "");
};

/** How the target responds. */
let respond: (request: OriginRequest, connection: OriginConnection) => string | null = answerOf;
/** All responses, and what follows a 101, are longer than the product. */
const READS = 40;
const STEP = 5;
/** What plugins wait for that ask another server, and how many do. */
let isHeld = Promise.resolve();
let waiting = 0;

let scene: AllPlugins;
beforeAll(async () => {
  scene = await startAllPlugins(
    (request, connection) => respond(request, connection),
    async () => {
      waiting++;
      await isHeld;
    },
  );
});
afterAll(() => scene.stop());

const expectQuiet = () => scene.expectQuiet(get);

const rows = Object.keys(requests).flatMap((name) => ways.map((way) => [name, way] as const));

test.each(rows)(
  "a client that leaves after each byte of its request: %s, by %s",
  async (name, way) => {
    const request = requests[name] ?? "";
    await all(request.length + 1, (sent) => scene.leave(request, { sent, way }));
    await expectQuiet();
  },
);

test.each(rows)(
  "a client that leaves after bytes of the response: %s, by %s",
  async (name, way) => {
    const request = requests[name] ?? "";
    await all(READS, (at) => scene.leave(request, { read: 1 + at * STEP, way }));
    await expectQuiet();
  },
);

test.each(
  ways.flatMap((way) => [[get, way] as const, [post(FIELDS + length, JSON_BODY), way] as const]),
)("a client that leaves while a plugin waits: %j, by %s", async (request, way) => {
  const CLIENTS = 20;
  const { promise, resolve } = Promise.withResolvers<void>();
  isHeld = promise;
  waiting = 0;
  const left = Array.from({ length: CLIENTS }, () => scene.leave(request, { way }));
  await eventually(() => waiting > 0);
  if (way !== "end") await Promise.all(left);
  resolve();
  await Promise.all(left);
  await expectQuiet();
});

describe.each(["end", "reset"] as const)("a target that leaves by %s", (how) => {
  const answers = { json, inChunks, upgrade: switching("websocket", "dGhlIHNhbXBsZSBub25jZQ==") };

  test.each(Object.keys(answers) as (keyof typeof answers)[])(
    "after each byte of its response: %s",
    async (name) => {
      const answer = answers[name];
      const request = (name === "upgrade" ? (requests["WebSocket"] ?? "") : get).replace(
        "Host:",
        name === "upgrade" ? "Host:" : "Connection: close\r\nHost:",
      );
      let bytes = 0;
      respond = (_, connection) => {
        connection.write(answer.slice(0, bytes++ % answer.length));
        if (how === "end") connection.end();
        else connection.reset();
        return null;
      };
      await all(answer.length, () => scene.leave(request, { read: 100_000, way: "end" }));
      respond = answerOf;
      await expectQuiet();
    },
  );
});

test("no plugin has failed meanwhile", () => {
  expect(scene.failures()).toEqual([]);
});
