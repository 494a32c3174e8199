// RFC 9113 section by section on both engines that have trailers, with raw frames; beside the full one Bun's own, in the same run.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { selfSigned } from "../../support/certificate.ts";
import { H2Client } from "../../support/h2-client.ts";
import { type LenientScene, startLenientScene } from "../../support/lenient-scene.ts";
import { eventually } from "../../support/poll.ts";
import { connectionRows } from "./rfc9113-connections.ts";
import { frameRows } from "./rfc9113-frames.ts";
import { messageRows } from "./rfc9113-messages.ts";
import { GET, NO_ERROR, PING, type Row } from "./rfc9113-row.ts";

const rows: readonly Row[] = [...connectionRows, ...frameRows, ...messageRows];

/** How long a server may say nothing about a stream before its verdict is `silence`. */
const SILENCE_MS = 1000;

interface To {
  readonly port: number;
  readonly tls: boolean;
}

/** The verdict on one row: what the server says of the stream, else of the connection. */
async function verdictOn(row: Row, to: To): Promise<string> {
  const client = await H2Client.connect({ ...to, isRaw: row.isRaw ?? false });
  try {
    const stream = await row.send(client);
    const pong = "row over";
    client.frame(PING, 0, 0, Buffer.from(pong));
    const isOver = () => client.goAway !== null || client.isClosed;
    const isJudged = () => {
      // Everything before the PING has been read by then.
      if (!client.pongs.includes(pong)) return false;
      if (stream === undefined) return true;
      const { isComplete, reset } = client.seen(stream);
      return isComplete || reset !== null;
    };
    await eventually(() => isOver() || isJudged(), {
      deadlineMs: SILENCE_MS,
      intervalMs: 1,
    }).catch(() => undefined);
    // GOAWAY without an error only announces the end.
    if (client.goAway !== null && client.goAway !== NO_ERROR) return `goaway ${client.goAway}`;
    const seen = stream === undefined ? null : client.seen(stream);
    if (seen?.outcome === "reset") return `reset ${seen.reset}`;
    if (client.isClosed) return "closed";
    if (seen?.isComplete) return String(seen.status);
    return client.goAway !== null ? "closed" : "silence";
  } finally {
    client.close();
  }
}

/** A connection may end before its GOAWAY has left. */
const alike = (verdict: string) => (verdict.startsWith("goaway") ? "closed" : verdict);

/** Bun's engine alone, with a handler that reads the body and responds. */
function startBare(tls: { cert: string; key: string } | null): Promise<http2.Http2Server> {
  const server = tls === null ? http2.createServer() : http2.createSecureServer(tls);
  server.on("stream", (stream) => {
    stream.on("error", () => undefined);
    stream.resume();
    stream.on("end", () => {
      if (!stream.destroyed) stream.respond({ ":status": 200 });
      stream.end("bare");
    });
  });
  server.on("sessionError", () => undefined);
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

describe.each([
  ["full", "http"],
  ["full", "https"],
  ["sluice", "http"],
  ["sluice", "https"],
] as const)("engine %s over %s", (engine, scheme) => {
  let scene: LenientScene;
  let bare: http2.Http2Server;
  const isTls = scheme === "https";
  const to = (port: number): To => ({ port, tls: isTls });

  beforeAll(async () => {
    const tls = await selfSigned();
    scene = await startLenientScene({ listener: { engine }, ...(isTls ? { tls } : {}) });
    bare = await startBare(isTls ? tls : null);
  });
  afterAll(async () => {
    bare?.close();
    await scene?.stop();
  });

  test.each(rows.map((row) => [row.section, row.what, row] as const))(
    "section %s: %s",
    async (_section, _what, row) => {
      scene.origin.forget();
      const verdict = await verdictOn(row, to(scene.gateway.port));
      if (row.isBun && engine === "full" && !row.is.test(verdict))
        expect(alike(verdict)).toBe(
          alike(await verdictOn(row, to((bare.address() as AddressInfo).port))),
        );
      else expect(verdict).toMatch(row.is);
      expect(scene.origin.ambiguous).toEqual([]);
      const client = await H2Client.connect(to(scene.gateway.port));
      expect(await client.result(client.headers(GET))).toMatchObject({ outcome: "200" });
      client.close();
    },
  );
});
