// maintenance-by-header: 503 for everyone but those who know a header's value.
import { createHash, timingSafeEqual } from "node:crypto";
import {
  config,
  definePlugin,
  headerName,
  httpScopes,
  integer,
  reject,
  secret,
  stays,
  t,
} from "@sluice/plugin";

const digest = (text: string) => createHash("sha256").update(text).digest();

export default definePlugin({
  name: "maintenance-by-header",
  summary: "Responds 503 except to testers with a secret header",
  description:
    "Enable the instance to begin maintenance, disable it to end it: both are live before the API responds.",
  group: "access",
  order: 9610,
  phases: ["pre_auth"],
  scopes: httpScopes,
  config: config({
    header: headerName({ default: "X-Maintenance-Key", description: "Header of testers" }),
    value: stays("it is only compared", secret({ description: "Value that lets a tester pass" })),
    retry_after: integer(300, {
      minimum: 1,
      maximum: 86_400,
      description: "Seconds after which clients may retry",
    }),
    message: t.String({
      default: "down for maintenance",
      maxLength: 200,
      description: "Half a sentence for clients",
    }),
  }),
  example: { value: "a long random text" },
  onError: "closed",
  create(own) {
    const wanted = digest(own.value);
    const name = own.header.toLowerCase();
    return {
      preAuth(context) {
        const sent = context.header(name);
        // Digests have one length, and are compared in constant time.
        if (sent !== null && timingSafeEqual(digest(sent), wanted)) {
          context.upstream.removeHeader(name);
          return undefined;
        }
        return reject(503, "maintenance.closed", {
          detail: own.message,
          headers: { "Retry-After": String(own.retry_after) },
        });
      },
    };
  },
});
