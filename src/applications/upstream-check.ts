// Sends a test request to the upstream of a planned application and reports the result; changes nothing.
import type { Changes } from "../control/change.ts";
import type { Fetch } from "../dialer/dialer.ts";
import { destinationProblem } from "../net/destinations.ts";
import { Type as t } from "@sinclair/typebox";
import { reasonOf } from "../control/outgoing-request.ts";
import { quote } from "../net/quote.ts";
import { applicationInput } from "../model/application.ts";
import { decode } from "../model/decode.ts";
import { invalid } from "../model/error.ts";
import type { Check, TrialReport } from "../acme/dns/trial.ts";
import { parseUpstream } from "./upstream.ts";
import { asHostName } from "../model/host-name.ts";

/** The body of a check. */
export const upstreamCheckInput = t.Object(
  {
    upstream: asHostName(
      t.String({ maxLength: 2048, description: "URL, such as http://10.0.0.5:3000" }),
    ),
    host: t.Optional(
      asHostName(
        t.String({
          maxLength: 253,
          pattern: applicationInput.properties.domains.items.pattern ?? "",
          errorMessage: "must be a host name",
          description: "Host name of the application, sent as Host",
        }),
      ),
    ),
  },
  { additionalProperties: false, title: "UpstreamCheckInput" },
);

const TIMEOUT_MS = 5000;

/** Throws for an invalid or forbidden address; the report holds all other errors. */
export async function checkUpstream(
  body: unknown,
  changes: Pick<Changes, "dialer" | "destinationRules">,
): Promise<TrialReport> {
  const { upstream, host } = decode(upstreamCheckInput, body);
  const { pattern, errorMessage } = applicationInput.properties.upstream.anyOf[0];
  if (!new RegExp(pattern ?? "").test(upstream)) throw invalid("upstream", String(errorMessage));
  const { host: written, port } = parseUpstream(upstream);
  const url = URL.parse(upstream);
  if (url === null) throw invalid("upstream", "must be an address such as http://10.0.0.5:3000");
  const problem = destinationProblem({ host: written, port }, changes.destinationRules());
  if (problem !== null) throw invalid("upstream", problem);
  const check = await ask(upstream, { host, fetch: changes.dialer.fetch });
  return { ok: check.status !== "failed", checks: [check] };
}

interface Asked {
  readonly host: string | undefined;
  readonly fetch: Fetch;
}

async function ask(upstream: string, asked: Asked): Promise<Check> {
  const say = (status: Check["status"], message: string): Check => ({
    name: "upstream",
    status,
    message: `${upstream} ${message}`,
  });
  try {
    const { status, headers } = await responseHead(upstream, asked);
    const to = quote(headers.get("location"), []);
    if (status >= 500) return say("warning", `responds, but with status ${status}`);
    if (status >= 300 && status < 400 && to !== "")
      return say("ok", `responds with status ${status} and redirects to ${to}`);
    return say("ok", `responds with status ${status}`);
  } catch (error) {
    return say("failed", reasonOf(error, { timeoutMs: TIMEOUT_MS }));
  }
}

/** The response head; does not follow redirects or read the body. */
async function responseHead(upstream: string, { host, fetch: send }: Asked): Promise<Response> {
  const response = await send(upstream, {
    headers: host === undefined || host.includes("*") ? {} : { host },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  void response.body?.cancel().catch(() => undefined);
  return response;
}
