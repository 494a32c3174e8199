// Sends a test request to the upstream of a planned application and reports the result; changes nothing.
import { promises as dns } from "node:dns";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import { Type as t } from "@sinclair/typebox";
import { reasonOf } from "../control/outgoing-request.ts";
import { quote } from "../net/quote.ts";
import { applicationInput } from "../model/application.ts";
import { decode } from "../model/decode.ts";
import { invalid } from "../model/error.ts";
import { isMetadataAddress } from "../net/metadata-network.ts";
import { type ListenAddress, reaches } from "../snapshot/address-overlap.ts";
import type { Check, TrialReport } from "../acme/dns/trial.ts";
import { parseUpstream } from "./upstream.ts";

/** The body of a check. */
export const upstreamCheckInput = t.Object(
  {
    upstream: t.String({ maxLength: 2048, description: "URL, such as http://10.0.0.5:3000" }),
    host: t.Optional(
      t.String({
        maxLength: 253,
        pattern: applicationInput.properties.domains.items.pattern ?? "",
        errorMessage: "must be a host name",
        description: "Host name of the application, sent as Host",
      }),
    ),
  },
  { additionalProperties: false, title: "UpstreamCheckInput" },
);

const TIMEOUT_MS = 5000;

/** Throws for an invalid or forbidden address; the report holds all other errors. */
export async function checkUpstream(
  body: unknown,
  managementAddresses: readonly ListenAddress[],
): Promise<TrialReport> {
  const { upstream, host } = decode(upstreamCheckInput, body);
  const { pattern, errorMessage } = applicationInput.properties.upstream.anyOf[0];
  if (!new RegExp(pattern ?? "").test(upstream)) throw invalid("upstream", String(errorMessage));
  const { host: written, port } = parseUpstream(upstream);
  const url = URL.parse(upstream);
  if (url === null) throw invalid("upstream", "must be an address such as http://10.0.0.5:3000");
  const problemOf = (address: string) => targetProblem(address, port, managementAddresses);
  // Some programs read forms such as 0x7f.1 as addresses.
  const problem = problemOf(written) ?? problemOf(bare(url.hostname));
  if (problem !== null) throw invalid("upstream", problem);
  const check = await ask(upstream, { url, host, problemOf });
  return { ok: check.status !== "failed", checks: [check] };
}

const bare = (host: string) => host.replace(/^\[|\]$/g, "");

/** Why the address is forbidden for targets; null: allowed. */
function targetProblem(
  host: string,
  port: number,
  managementAddresses: readonly ListenAddress[],
): string | null {
  if (isMetadataAddress(host)) return "is link-local, which is forbidden for targets";
  return managementAddresses.some((bound) => reaches(host, port, bound))
    ? "is the management API itself, which must not be proxied"
    : null;
}

interface Asked {
  readonly url: URL;
  readonly host: string | undefined;
  readonly problemOf: (address: string) => string | null;
}

async function ask(upstream: string, asked: Asked): Promise<Check> {
  const say = (status: Check["status"], message: string): Check => ({
    name: "upstream",
    status,
    message: `${upstream} ${message}`,
  });
  try {
    const { statusCode: status = 0, headers } = await responseHead(asked);
    const to = quote(headers.location, []);
    if (status >= 500) return say("warning", `responds, but with status ${status}`);
    if (status >= 300 && status < 400 && to !== "")
      return say("ok", `responds with status ${status} and redirects to ${to}`);
    return say("ok", `responds with status ${status}`);
  } catch (error) {
    if (error instanceof Refused) return say("failed", error.message);
    return say("failed", reasonOf(error, { timeoutMs: TIMEOUT_MS }));
  }
}

/** A name resolves to a forbidden address. */
class Refused extends Error {}

/** The response head; does not follow redirects or read the body. */
async function responseHead({ url, host, problemOf }: Asked): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = (url.protocol === "https:" ? requestHttps : requestHttp)(
    url,
    {
      agent: false,
      headers: host === undefined || host.includes("*") ? {} : { host },
      lookup: allowedAddresses(problemOf),
    },
    (answer) => {
      answer.destroy();
      resolve(answer);
    },
  );
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  timeout.addEventListener("abort", () => {
    reject(timeout.reason);
    request.destroy();
  });
  request.on("error", reject);
  request.end();
  return await promise;
}

/** Resolves a name once and connects only to the checked addresses (against DNS rebinding). */
const allowedAddresses =
  (problemOf: Asked["problemOf"]): LookupFunction =>
  (name, _options, done) => {
    dns
      .lookup(name, { all: true })
      .then((found) => {
        for (const { address } of found) {
          const problem = problemOf(address);
          if (problem !== null) throw new Refused(`resolves to ${address}, which ${problem}`);
        }
        return found;
      })
      .then(
        (found) => done(null, found),
        (error: NodeJS.ErrnoException) => done(error, []),
      );
  };
