// bandwidth-limit: limits the rate of request and response bodies.
import { Type as t } from "@sinclair/typebox";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { config, nullable } from "../pdk/fields.ts";
import { keyProblem, keyReader, requestKey } from "../pdk/request-key.ts";
import { Pace, pacedResponse, pacedBody } from "./bandwidth-limit/pace.ts";

const bytes = (description: string) =>
  nullable(t.Integer({ minimum: 1, maximum: 1_000_000_000_000, description }));

const schema = config({
  download_bps: bytes("Bytes per second to clients; null: no limit"),
  upload_bps: bytes("Bytes per second from clients; null: no limit"),
  burst: bytes("Burst in bytes after an idle period; null: a tenth of a second's worth"),
  key: requestKey("ip", "Key of the limit"),
});

export default definePlugin({
  name: "bandwidth-limit",
  summary: "Limits the bandwidth of request and response bodies",
  description: `The limits are in **bytes** per second and apply to all requests with the same key together, over all workers: two downloads from
one address share its bandwidth. Heads of requests and responses are not counted.

The gateway sends a response in chunks of at most a tenth of a second's worth, without a Content-Length, and reads the target no
faster than that. It counts bytes before compress shortens them. A request body that another plugin has read as a whole (such as
request-validation) is not delayed. While a body is delayed, \`body_read_timeout\` and \`body_min_rate\` do not apply. WebSockets and
connections of stream routes are not limited.`,
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
            // Releases a reader that waits for a body after the request has ended.
            log: ({ memory }) => (memory.get(place) as Pace | undefined)?.end(),
          }),
      ...(download === null
        ? {}
        : {
            response(context, response) {
              if (!response.hasBody) return;
              const rate = { bytesPerSecond: download, burst };
              response.transformBody(
                pacedResponse(new Pace(counters, `down ${keyOf(context)}`, rate)),
              );
            },
          }),
    };
  },
});
