// RFC 9113 section by section, with raw frames.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { H2Client } from "../../support/h2-client.ts";
import { type LenientScene, startLenientScene } from "../../support/lenient-scene.ts";
import { eventually } from "../../support/poll.ts";
import { connectionRows } from "./rfc9113-connections.ts";
import { frameRows } from "./rfc9113-frames.ts";
import { messageRows } from "./rfc9113-messages.ts";
import { GET, NO_ERROR, PING, type Row } from "./rfc9113-row.ts";
import { suiteRows } from "./rfc9113-suite.ts";

const rows: readonly Row[] = [...connectionRows, ...frameRows, ...messageRows, ...suiteRows];

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

describe.each(["http", "https"])("over %s", (scheme) => {
  let scene: LenientScene;
  const isTls = scheme === "https";
  const to = (port: number): To => ({ port, tls: isTls });

  beforeAll(async () => {
    const tls = isTls ? { tls: await selfSigned() } : {};
    scene = await startLenientScene({ listener: { engine: "sluice" }, ...tls });
  });
  afterAll(() => scene?.stop());

  test.each(rows.map((row) => [row.section, row.what, row] as const))(
    "section %s: %s",
    async (_section, _what, row) => {
      scene.origin.forget();
      expect(await verdictOn(row, to(scene.gateway.port))).toMatch(row.is);
      expect(scene.origin.ambiguous).toEqual([]);
      const client = await H2Client.connect(to(scene.gateway.port));
      expect(await client.result(client.headers(GET))).toMatchObject({ outcome: "200" });
      client.close();
    },
  );
});
