// bandwidth-limit: bodies pass no faster than so many bytes in a second.
import { Type as t } from "@sinclair/typebox";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { config, nullable } from "../pdk/fields.ts";
import { keyProblem, keyReader, requestKey } from "../pdk/request-key.ts";
import { Pace, pacedAnswer, pacedBody } from "./bandwidth-limit/pace.ts";

const bytes = (description: string) =>
  nullable(t.Integer({ minimum: 1, maximum: 1_000_000_000_000, description }));

const schema = config({
  download_bps: bytes("Bytes in a second to clients; null: no limit"),
  upload_bps: bytes("Bytes in a second from clients; null: no limit"),
  burst: bytes(
    "Bytes that may go at once after a time of rest; null: as many as go in a tenth of a second",
  ),
  key: requestKey("ip", "What shares a limit"),
});

export default definePlugin({
  name: "bandwidth-limit",
  summary: "Lets bodies pass no faster than so many bytes in a second",
  description: `The limits are in **bytes** per second and hold for all requests of one key together, over all workers: two downloads
of one address share what it has. Heads of requests and answers are not counted.

An answer goes out piece by piece, at most a tenth of a second's worth at a time, and without a Content-Length; the target is
read no faster than the client may read. Bytes are counted before compress makes fewer of them. Of a request that another plugin has read whole (such as a validation), the body is
there already and is not held back. While a body is held back, neither \`body_read_timeout\` nor \`body_min_rate\` counts. WebSockets and connections of stream routes are not limited.`,
  group: "traffic",
  order: 6800,
  phases: ["access", "response", "body", "log"],
  scopes: httpScopes,
  config: schema,
  example: { download_bps: 1_000_000 },
  onError: "open",
  check: ({ download_bps, upload_bps, key }) => {
    const problems: { path: string; message: string }[] = [];
    if (download_bps === null && upload_bps === null)
      problems.push({ path: "", message: "must have download_bps, upload_bps or both" });
    const problem = keyProblem(key);
    if (problem !== null) problems.push({ path: "key", message: problem });
    return problems;
  },
  create(own, { counters }) {
    const { download_bps: download, upload_bps: upload, burst } = own;
    const keyOf = keyReader(own.key);
    const place = {};
    const upwards = (context: RequestContext, bytesPerSecond: number): undefined => {
      if (!context.hasBody) return;
      const pace = new Pace(counters, `up ${keyOf(context)}`, { bytesPerSecond, burst });
      if (context.passBody((body) => pacedBody(body, pace))) context.memory.set(place, pace);
    };
    return {
      ...(upload === null
        ? {}
        : {
            access: (context) => upwards(context, upload),
            // Whoever waits for a body that nobody wants any more is let go.
            log: ({ memory }) => (memory.get(place) as Pace | undefined)?.end(),
          }),
      ...(download === null
        ? {}
        : {
            response(context, response) {
              if (!response.hasBody) return;
              const rate = { bytesPerSecond: download, burst };
              response.transformBody(
                pacedAnswer(new Pace(counters, `down ${keyOf(context)}`, rate)),
              );
            },
          }),
    };
  },
});
