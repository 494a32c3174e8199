// The requests of another parser's tests: what is malformed is refused and leaves nothing at the origin, what is valid passes, but for a list.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { type LenientScene, startLenientScene } from "../../support/lenient-scene.ts";
import { type CorpusRequest, corpusRequests, unfinished } from "../../support/llhttp-corpus.ts";
import { exchange } from "../../support/raw-exchange.ts";
import { connectRaw } from "../../support/raw-http.ts";

const PIPELINED = "a second request behind one that is not answered: Bun closes the connection";

type Refusals = Record<string, readonly [outcome: string, why: string]>;

/** Valid blocks that Bun's engine refuses, with the response. */
const refusedByBun: Refusals = {
  "connection-2": ["400", `${PIPELINED}; the second one has no Host`],
  "content-length-26": ["400", "a GET with a body, which Bun hides"],
  "method-77": ["400", "`*` as target"],
  "method-84": ["505", "ICE, another protocol"],
  "method-85": ["505", "RTSP, another protocol"],
  "method-86": ["505", "RTSP, another protocol"],
  "pipelining-102": ["400", `${PIPELINED}; the others have no Host`],
  "sample-105": ["400", "a Host that is no authority"],
  "sample-106": ["400", "a Host that is no authority"],
  "sample-111": ["400", "an empty line first, which Bun does not skip"],
  "sample-112": ["505", "HTTP/0.9"],
  "sample-117": ["400", "an empty line first, which Bun does not skip"],
  "transfer-encoding-126": ["400", "trailers"],
  "transfer-encoding-130": ["400", "an escaped quote in a chunk extension"],
  "transfer-encoding-140": ["400", "a coding but chunked"],
  "transfer-encoding-141": ["400", "a coding but chunked"],
  "uri-154": ["400", "an empty line behind a request, taken for the next one"],
  "uri-159": ["400", "a fragment"],
};

/** The same of our own engine, of whose pipelined requests the first one is served. */
const refusedByOwn: Refusals = {
  "connection-2": ["200 400", "the second request has no Host"],
  "method-77": ["400", "`*` as target"],
  "method-84": ["400", "ICE, another protocol"],
  "method-85": ["400", "RTSP, another protocol"],
  "method-86": ["400", "RTSP, another protocol"],
  "pipelining-102": ["200 400", "the second request has no Host"],
  "sample-105": ["400", "a Host that is no authority"],
  "sample-106": ["400", "a Host that is no authority"],
  "sample-112": ["400", "HTTP/0.9"],
  "transfer-encoding-140": ["400", "a coding but chunked"],
  "transfer-encoding-141": ["400", "a coding but chunked"],
  "uri-159": ["400", "a fragment"],
  "uri-161": ["400", "a user in the target"],
};

/** Blocks that other parsers refuse and our own engine does not: their methods are tokens. */
const passingOwn: typeof passing = {
  "invalid-42": [["ANNOUNCE /music/sweet/music"], "a method of RTSP"],
  "invalid-52": [["MKCOLA /"], "an unknown method"],
};

/** Blocks without the last line end: our own engine waits for it. */
const unfinishedForOwn = ["invalid-57", "transfer-encoding-127", "transfer-encoding-130"];

/** Blocks with an error, or for lenient parsers only, of which something passes. */
const passing: Record<string, readonly [lines: readonly string[], why: string]> = {
  "connection-3": [["PUT /url"], "what follows is not read: HTTP/1.0 closes"],
  "connection-4": [["PUT /url"], "what follows is not read: HTTP/1.0 closes"],
  "connection-14": [
    ["PUT /url"],
    "an upgrade to something unknown is ignored, as RFC 9110 section 7.8 allows",
  ],
  "connection-15": [
    ["PUT /url"],
    "the same with a body; what follows is refused as the next request",
  ],
  "connection-17": [["POST /demo"], "the same; what follows is refused as the next request"],
  "lenient-headers-69": [["GET /url"], "the first of two requests is valid"],
  "transfer-encoding-129": [
    ["POST /chunked_w_unicorns_after_length"],
    "Bun takes an empty chunk extension, which is not passed on",
  ],
};

const isValid = ({ error, isLenient }: CorpusRequest) => error === null && !isLenient;
const named = (requests: readonly CorpusRequest[]) =>
  requests.map((request) => [request.id, request.error ?? "", request] as const);

describe.each([
  { name: "Bun's engine", engine: "bun", isTls: false },
  { name: "our own engine", engine: "sluice", isTls: false },
  { name: "our own engine over TLS", engine: "sluice", isTls: true },
] as const)("$name:", ({ engine, isTls }) => {
  let scene: LenientScene;
  beforeAll(async () => {
    scene = await startLenientScene({
      listener: { engine },
      ...(isTls ? { tls: await selfSigned() } : {}),
    });
  });
  afterAll(() => scene.stop());

  const isOwn = engine === "sluice";
  const refusedThoughValid = isOwn ? refusedByOwn : refusedByBun;
  const cut = new Set([...unfinished, ...(isOwn ? unfinishedForOwn : [])]);
  const finished = corpusRequests.filter(({ id }) => !cut.has(id));
  const passingHere = isOwn ? { ...passing, ...passingOwn } : passing;

  test("every exception matches a block, and only of its kind", () => {
    const valid = new Set(finished.filter(isValid).map(({ id }) => id));
    const invalid = new Set(finished.filter((request) => !isValid(request)).map(({ id }) => id));
    expect(Object.keys(refusedThoughValid).filter((id) => !valid.has(id))).toEqual([]);
    expect(Object.keys(passingHere).filter((id) => !invalid.has(id))).toEqual([]);
    expect(corpusRequests.length).toBe(162);
  });

  describe("valid", () => {
    const rows = finished.filter((request) => isValid(request));
    test.each(named(rows.filter(({ id }) => !(id in refusedThoughValid))))(
      "%s passes",
      async (_, __, { bytes }) => {
        const seen = await scene.probe(bytes);
        expect(seen).toMatchObject({ outcome: "200", ambiguous: [], canary: "200 /canary" });
        expect(seen.lines.length).toBe(1);
      },
    );

    test.each(named(rows.filter(({ id }) => id in refusedThoughValid)))(
      "%s is refused all the same",
      async (id, _, { bytes }) => {
        const [outcome] = refusedThoughValid[id]!;
        const seen = await scene.probe(bytes, { answers: outcome.split(" ").length });
        expect(seen).toMatchObject({ outcome, ambiguous: [], canary: "200 /canary" });
      },
    );
  });

  describe("malformed", () => {
    const rows = finished.filter((request) => !isValid(request));
    test.each(named(rows.filter(({ id }) => !(id in passingHere))))(
      "%s (%s) is refused",
      async (_, __, { bytes }) => {
        const seen = await scene.probe(bytes);
        expect(seen.outcome).toMatch(/^(?:4\d\d|505|closed)$/);
        expect(seen).toMatchObject({ lines: [], ambiguous: [], canary: "200 /canary" });
      },
    );

    test.each(named(rows.filter(({ id }) => id in passingHere)))(
      "%s (%s) passes in part",
      async (id, _, { bytes }) => {
        const seen = await scene.probe(bytes);
        const [lines] = passingHere[id]!;
        expect(seen).toMatchObject({ lines: [...lines], ambiguous: [], canary: "200 /canary" });
      },
    );
  });

  test.each([...cut])("%s, unfinished: nothing is executed", async (id) => {
    scene.origin.forget();
    const client = await connectRaw({ port: scene.gateway.port, tls: isTls });
    client.write(corpusRequests.find((request) => request.id === id)!.bytes);
    // The engine may wait for the rest until the client ends its side.
    if (isTls) client.close();
    else client.end();
    await client.untilClosed();
    const plain = await exchange("GET /canary HTTP/1.1\r\nHost: h\r\n\r\n", {
      port: scene.gateway.port,
      tls: isTls,
    });
    expect(plain.outcome).toBe("200");
    expect(scene.origin.lines).toEqual(["GET /canary"]);
    expect(scene.origin.ambiguous).toEqual([]);
  });
});
