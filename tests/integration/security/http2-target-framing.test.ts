// HTTP/1.1 requests of another parser's tests in front of an HTTP/2 target: it executes what an HTTP/1.1 target does, and nothing else.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type LenientScene, startLenientScene } from "../../support/lenient-scene.ts";
import { corpusRequests, unfinished } from "../../support/llhttp-corpus.ts";
import { exchange } from "../../support/raw-exchange.ts";
import { type Http2Target, startHttp2Target } from "../upstream-http2/target.ts";

interface Executed {
  readonly line: string;
  body: string;
}

let scene: LenientScene;
let target: Http2Target;
let gateway: RunningDataPlane;
let executed: Executed[] = [];

beforeAll(async () => {
  scene = await startLenientScene();
  target = await startHttp2Target((stream, fields) => {
    const request = { line: `${fields[":method"]} ${fields[":path"]}`, body: "" };
    stream.on("data", (piece: Buffer) => {
      request.body += piece.toString("latin1");
    });
    stream.on("end", () => {
      // Bun also ends the body of a stream that was reset.
      if (stream.aborted || stream.rstCode !== 0) return;
      executed.push(request);
      stream.respond({ ":status": 200, "content-type": "text/plain" });
      stream.end(fields[":path"]);
    });
  });
  gateway = await startDataPlane({
    services: [{ name: "origin", protocol: "h2c", targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "origin" }],
  });
});
afterAll(async () => {
  await gateway?.stop();
  target?.stop();
  await scene?.stop();
});

const finished = corpusRequests.filter(({ id }) => !unfinished.has(id));

test.each(finished.map((request) => [request.id, request.error ?? "valid", request] as const))(
  "%s (%s)",
  async (id, _error, { bytes }) => {
    executed = [];
    const methods = [bytes.slice(0, bytes.indexOf(" "))];
    const [http1, http2] = await Promise.all([
      scene.probe(bytes),
      exchange(bytes, { port: gateway.port, methods }),
    ]);
    expect(http2.outcome).toBe(http1.outcome);
    // Refused in its trailers, when each target may have its body already: reset and end race.
    if (http2.outcome !== "400" || executed.length === http1.lines.length) {
      expect(executed.map(({ line }) => line)).toEqual([...http1.lines]);
      expect(executed.map(({ body }) => body)).toEqual(http1.executed.map(({ body }) => body));
    } else expect(id).toBe("transfer-encoding-126");
    for (const fields of target.requests.splice(0))
      expect(fields).not.toContainAnyKeys(["connection", "transfer-encoding", "upgrade", "host"]);
  },
);
